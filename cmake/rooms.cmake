# spillway_room(NAME [FOLDER folder] DEPENDS room... LINK target... EXCEPT file...): the static library of one room, from
# every .cc file of its folder (but EXCEPT) and its SUBFOLDERS.
# A room includes headers as "room/file.h". tests/layers_test checks the include graph against DEPENDS.
function(spillway_room name)
  cmake_parse_arguments(ROOM "" "FOLDER" "DEPENDS;LINK;EXCEPT;SUBFOLDERS" ${ARGN})
  if(NOT ROOM_FOLDER)
    set(ROOM_FOLDER ${name})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${ROOM_FOLDER}/*.cc)
  foreach(folder IN LISTS ROOM_SUBFOLDERS)
    file(GLOB more CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${ROOM_FOLDER}/${folder}/*.cc)
    list(APPEND sources ${more})
  endforeach()
  foreach(file IN LISTS ROOM_EXCEPT)
    list(FILTER sources EXCLUDE REGEX "/${file}$")
  endforeach()
  if(NOT sources)
    message(FATAL_ERROR "room ${name} has no sources in src/${ROOM_FOLDER}")
  endif()
  add_library(spillway_${name} STATIC ${sources})
  target_include_directories(spillway_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(spillway_${name} PUBLIC fmt::fmt ${ROOM_LINK})
  # Sources with flags of their own (an instruction set each) can't take it.
  if(NOT name STREQUAL "cpu")
    target_precompile_headers(spillway_${name} PRIVATE <fmt/format.h> <algorithm> <expected> <functional> <memory> <string> <vector>)
  endif()
  foreach(room IN LISTS ROOM_DEPENDS)
    target_link_libraries(spillway_${name} PUBLIC spillway_${room})
  endforeach()
endfunction()

# spillway_tests(ROOM [LINK target...]): one test program from tests/ROOM/*_test.cc.
function(spillway_tests name)
  cmake_parse_arguments(TESTS "" "" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${name}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name}_tests ${sources})
  target_include_directories(${name}_tests PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name}_tests PRIVATE ${TESTS_LINK} GTest::gtest GTest::gtest_main)
  target_precompile_headers(${name}_tests PRIVATE <gtest/gtest.h> <fmt/format.h> <string> <vector>)
  target_compile_definitions(${name}_tests PRIVATE SPILLWAY_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                   SPILLWAY_BINARY_DIR="${PROJECT_BINARY_DIR}")
  include(GoogleTest)
  gtest_discover_tests(${name}_tests NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT ${SPILLWAY_TEST_SECONDS})
endfunction()

# spillway_fuzz(NAME LINK target...): tests/fuzz/NAME_fuzz.cc, with libFuzzer where SPILLWAY_FUZZ is on, else with a
# plain main that replays files; the corpus in tests/fuzz/corpus/NAME runs as a test in every build.
function(spillway_fuzz name)
  cmake_parse_arguments(FUZZ "" "" "LINK" ${ARGN})
  add_executable(${name}_fuzz ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}_fuzz.cc)
  target_link_libraries(${name}_fuzz PRIVATE ${FUZZ_LINK})
  add_dependencies(fuzz_targets ${name}_fuzz)
  if(SPILLWAY_FUZZ)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name}_fuzz PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
  endif()
  add_test(NAME fuzz_corpus_${name} COMMAND ${name}_fuzz -runs=0 ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
endfunction()

# spillway_fuzz_canary(NAME LINK target...): the same target with SPILLWAY_FUZZ_CANARY, which plants a fault; the input
# tests/fuzz/canary/NAME must be caught, so that a fuzz run that finds nothing means something.
function(spillway_fuzz_canary name)
  cmake_parse_arguments(FUZZ "" "" "LINK" ${ARGN})
  add_executable(${name}_fuzz_canary ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}_fuzz.cc
                                     ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
  target_link_libraries(${name}_fuzz_canary PRIVATE ${FUZZ_LINK})
  target_compile_definitions(${name}_fuzz_canary PRIVATE SPILLWAY_FUZZ_CANARY)
  # Through grep, since ctest counts an abort as a failure even where one is wanted.
  add_test(NAME fuzz_canary_${name}
           COMMAND sh -c "\"$0\" \"$1\" 2>&1 | grep 'fuzz: caught'" $<TARGET_FILE:${name}_fuzz_canary>
                   ${PROJECT_SOURCE_DIR}/tests/fuzz/canary/${name})
endfunction()
