# Ids compared with encoders of other origin. What they need besides this repository is optional: without it they say
# SKIPPED and why.
set(SPILLWAY_LLAMA_MODELS "" CACHE PATH "models/ of a llama.cpp checkout, for its ggml-vocab-*.gguf")
add_executable(encode_lines oracle/encode_lines.cc)
target_link_libraries(encode_lines PRIVATE spillway_text nlohmann_json::nlohmann_json)
find_program(SPILLWAY_NODE node)
find_program(SPILLWAY_DEBIAN_PYTHON python3 HINTS /usr/bin NO_DEFAULT_PATH)
function(oracle_test name)
  add_test(NAME oracle_${name} COMMAND ${ARGN})
  set_tests_properties(oracle_${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900)
endfunction()
set(oracle ${CMAKE_CURRENT_SOURCE_DIR}/oracle)
set(oracle_work ${PROJECT_SOURCE_DIR}/build/oracle)
if(SPILLWAY_NODE)
  oracle_test(tokenizers ${SPILLWAY_NODE} ${oracle}/tokenizers.mjs $<TARGET_FILE:encode_lines> ${oracle_work})
endif()
if(SPILLWAY_DEBIAN_PYTHON)
  oracle_test(sentencepiece ${SPILLWAY_DEBIAN_PYTHON} ${oracle}/sentencepiece_models.py $<TARGET_FILE:encode_lines>
              ${oracle_work})
  oracle_test(llama_vocabularies ${SPILLWAY_DEBIAN_PYTHON} ${oracle}/llama_vocabularies.py $<TARGET_FILE:encode_lines>
              ${oracle_work} --models=${SPILLWAY_LLAMA_MODELS})
endif()

spillway_fuzz(tokenizer LINK spillway_text)
spillway_fuzz_canary(tokenizer LINK spillway_text)
