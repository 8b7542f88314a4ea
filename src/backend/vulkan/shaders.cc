#include "backend/vulkan/shaders.h"

#include <algorithm>

#include "base/assert.h"

namespace spillway::vulkan {
namespace {

#define SW_SHADER(name) constexpr uint32_t k_##name[] = {
#define SW_SHADER_END \
  }                   \
  ;
#include <vulkan_shaders.inc>
#undef SW_SHADER
#undef SW_SHADER_END

constexpr ShaderModule kModules[] = {
#define SW_SHADER_NAME(name) {#name, k_##name},
#include <vulkan_shader_names.inc>
#undef SW_SHADER_NAME
};

// Numbers of the SPIR-V specification: opcodes, capabilities, execution modes.
constexpr uint32_t kHeaderWords = 5;
constexpr uint32_t kOpEntryPoint = 15, kOpExecutionMode = 16, kOpCapability = 17;
constexpr uint32_t kKeepSpecialCapability = 4466, kRoundToEvenCapability = 4467;
constexpr uint32_t kKeepSpecialMode = 4461, kRoundToEvenMode = 4462;

}  // namespace

std::span<const ShaderModule> shader_modules() { return kModules; }

std::span<const uint32_t> shader_words(std::string_view name) {
  const auto* found = std::find_if(std::begin(kModules), std::end(kModules),
                                   [&](const ShaderModule& module) { return module.name == name; });
  SW_ASSERT(found != std::end(kModules));
  return found->words;
}

std::vector<uint32_t> with_float_controls(std::span<const uint32_t> words, FloatControls controls) {
  std::vector<uint32_t> out(words.begin(), words.begin() + kHeaderWords);
  const auto capability = [&](bool wanted, uint32_t id) {
    if (wanted) out.insert(out.end(), {2u << 16 | kOpCapability, id});
  };
  capability(controls.keep_special, kKeepSpecialCapability);
  capability(controls.round_to_even, kRoundToEvenCapability);
  for (size_t at = kHeaderWords; at < words.size();) {
    const uint32_t length = words[at] >> 16, opcode = words[at] & 0xffff;
    SW_ASSERT(length > 0 && at + length <= words.size());
    out.insert(out.end(), words.begin() + at, words.begin() + at + length);
    if (opcode == kOpEntryPoint) {
      const uint32_t entry = words[at + 2];
      const auto mode = [&](bool wanted, uint32_t id) {
        if (wanted) out.insert(out.end(), {4u << 16 | kOpExecutionMode, entry, id, 32u});
      };
      mode(controls.keep_special, kKeepSpecialMode);
      mode(controls.round_to_even, kRoundToEvenMode);
    }
    at += length;
  }
  return out;
}

}  // namespace spillway::vulkan
