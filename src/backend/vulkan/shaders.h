// The embedded SPIR-V modules (shaders/*.comp, compiled by cmake/shaders.cmake).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace spillway::vulkan {

struct ShaderModule {
  std::string_view name;  // "norm", "product_Q4_K"
  std::span<const uint32_t> words;
};
std::span<const ShaderModule> shader_modules();

// The module of this name. Requires: there is one.
std::span<const uint32_t> shader_words(std::string_view name);

// What a device may be asked to keep in float32 arithmetic (SPV_KHR_float_controls).
struct FloatControls {
  bool round_to_even = false;
  bool keep_special = false;  // signed zeros, infinities and NaNs
};
// The module with the execution modes added. Requires: a valid module of one entry point.
std::vector<uint32_t> with_float_controls(std::span<const uint32_t> words, FloatControls controls);

}  // namespace spillway::vulkan
