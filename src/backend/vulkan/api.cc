#include "backend/vulkan/api.h"

namespace spillway::vulkan {

std::string_view result_name(VkResult result) {
  switch (result) {
    case VK_SUCCESS:
      return "success";
    case VK_NOT_READY:
      return "not ready";
    case VK_TIMEOUT:
      return "timeout";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "out of host memory";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "out of device memory";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "initialization failed";
    case VK_ERROR_DEVICE_LOST:
      return "device lost";
    case VK_ERROR_MEMORY_MAP_FAILED:
      return "memory map failed";
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "layer not present";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "extension not present";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "feature not present";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "incompatible driver";
    case VK_ERROR_TOO_MANY_OBJECTS:
      return "too many objects";
    case VK_ERROR_INVALID_EXTERNAL_HANDLE:
      return "invalid external handle";
    default:
      return "an unnamed error";
  }
}

Error error_of(VkResult result, std::string_view what) {
  const bool memory = result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
                      result == VK_ERROR_TOO_MANY_OBJECTS;
  return {memory ? Error::Kind::kNoMemory : Error::Kind::kIo,
          fmt::format("vulkan: cannot {}: {} ({})", what, result_name(result), static_cast<int>(result))};
}

}  // namespace spillway::vulkan
