// Vulkan's results as Errors.
#pragma once

#include <volk.h>

#include <string_view>

#include "base/result.h"

namespace spillway::vulkan {

std::string_view result_name(VkResult result);

// kNoMemory where memory ran out, else kIo. `what` says what was tried: "allocate 12 bytes".
Error error_of(VkResult result, std::string_view what);

inline Result<void> check(VkResult result, std::string_view what) {
  if (result >= 0) return {};
  return std::unexpected(error_of(result, what));
}

}  // namespace spillway::vulkan
