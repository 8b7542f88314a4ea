# The vector elementary functions, compiled per instruction set as the kernels are, and the check of their symbols.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2_math ${CMAKE_CURRENT_LIST_DIR}/vector_math_avx2.cc)
  set(avx512_math ${CMAKE_CURRENT_LIST_DIR}/vector_math_avx512.cc)
  get_source_file_property(avx2_options ${PROJECT_SOURCE_DIR}/src/backend/cpu/avx2.cc
                           DIRECTORY ${PROJECT_SOURCE_DIR}/src COMPILE_OPTIONS)
  get_source_file_property(avx512_options ${PROJECT_SOURCE_DIR}/src/backend/cpu/avx512.cc
                           DIRECTORY ${PROJECT_SOURCE_DIR}/src COMPILE_OPTIONS)
  set_source_files_properties(${avx2_math} PROPERTIES COMPILE_OPTIONS "${avx2_options}" SKIP_PRECOMPILE_HEADERS ON)
  set_source_files_properties(${avx512_math} PROPERTIES COMPILE_OPTIONS "${avx512_options}" SKIP_PRECOMPILE_HEADERS ON)
  target_sources(cpu_tests PRIVATE ${avx2_math} ${avx512_math})

  if(NOT SPILLWAY_SANITIZE)
    add_test(NAME cpu_symbols COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/symbols_test.sh $<TARGET_OBJECTS:spillway_cpu>
             COMMAND_EXPAND_LISTS)
    set_tests_properties(cpu_symbols PROPERTIES SKIP_RETURN_CODE 77)
  endif()
endif()
