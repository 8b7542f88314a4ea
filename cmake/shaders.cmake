# spillway_shaders(TARGET folder): compiles src/folder/shaders/*.comp and lets TARGET include them: "vulkan_shaders.inc" has
# the words of each between SW_SHADER(name) and SW_SHADER_END, "vulkan_shader_names.inc" a SW_SHADER_NAME(name) each. A
# shader that includes formats.glsl is compiled once for each weight type, as NAME_TYPE; one that calls dot4() a second
# time for each quantized type with the device's own integer dot product, as NAME_dot_TYPE.
set(SPILLWAY_WEIGHT_TYPES F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4)

# One SPIR-V module as a list of words in ${output}. Without -O: the optimiser's loop unrolling copies float operations
# but not their NoContraction, and then merges them into fused ones (tests/vulkan/shader_test); drivers optimise anyway.
function(spillway_compile_shader source output)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${GLSLC_PROGRAM} --target-env=vulkan1.2 -mfmt=num ${ARGN} -MD -MF ${output}.d -MT ${output} -o ${output} ${source}
    DEPENDS ${source} DEPFILE ${output}.d VERBATIM)
endfunction()

function(spillway_shaders target folder)
  find_program(GLSLC_PROGRAM glslc REQUIRED)
  set(from ${PROJECT_SOURCE_DIR}/src/${folder}/shaders)
  set(to ${CMAKE_CURRENT_BINARY_DIR}/${target}_shaders)
  file(MAKE_DIRECTORY ${to})
  file(GLOB sources CONFIGURE_DEPENDS ${from}/*.comp)
  set(list "")
  set(names "")
  set(outputs "")
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    file(STRINGS ${source} by_type REGEX "include \"formats.glsl\"")
    file(STRINGS ${source} by_dot REGEX "dot4\\(")
    set(variants "${name}")
    if(by_type)
      list(TRANSFORM SPILLWAY_WEIGHT_TYPES PREPEND "${name}_" OUTPUT_VARIABLE variants)
    endif()
    if(by_dot)
      set(dot_types ${SPILLWAY_WEIGHT_TYPES})
      list(REMOVE_ITEM dot_types F32 F16 BF16)
      list(TRANSFORM dot_types PREPEND "${name}_dot_")
      list(APPEND variants ${dot_types})
    endif()
    foreach(variant IN LISTS variants)
      set(defines "")
      if(by_type)
        string(REGEX REPLACE "^${name}_(dot_)?" "" type ${variant})
        list(APPEND defines -DTYPE_${type})
      endif()
      if(variant MATCHES "^${name}_dot_")
        list(APPEND defines -DINTEGER_DOT)
      endif()
      spillway_compile_shader(${source} ${to}/${variant}.words ${defines})
      list(APPEND outputs ${to}/${variant}.words)
      string(APPEND list "SW_SHADER(${variant})\n#include \"${variant}.words\"\nSW_SHADER_END\n")
      string(APPEND names "SW_SHADER_NAME(${variant})\n")
    endforeach()
  endforeach()
  file(GENERATE OUTPUT ${to}/vulkan_shaders.inc CONTENT "${list}")
  file(GENERATE OUTPUT ${to}/vulkan_shader_names.inc CONTENT "${names}")
  target_sources(${target} PRIVATE ${outputs})
  add_custom_target(${target}_words DEPENDS ${outputs})
  target_include_directories(${target} PRIVATE ${to})
endfunction()
