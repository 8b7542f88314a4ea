// Vulkan devices: what there are, and one opened as a backend::Device. Works where Vulkan is missing: then
// there are none.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "backend/device.h"

namespace spillway::vulkan {

struct VulkanOptions {
  // Where copies run. kAuto: on a transfer queue of their own where the device has one. kBeside uses the
  // rules of a second queue even where both are the same one, for tests.
  enum class Link { kAuto, kInStream, kBeside };
  Link link = Link::kAuto;
  // Called with the messages of the validation layer, which is loaded only when this is set.
  std::function<void(std::string_view)> on_validation;
  // Whether products use the device's integer dot product: kAuto where it is faster than what replaces it.
  enum class IntegerDot { kAuto, kNever, kWherePossible };
  IntegerDot integer_dot = IntegerDot::kAuto;
  bool pipeline_cache = true;  // keep compiled pipelines in ${XDG_CACHE_HOME:-~/.cache}/spillway
};

// All devices with a driver, in the order of their indices; empty where there is no loader or driver. One
// that cannot be used says why in its notes.
std::vector<backend::DeviceInfo> vulkan_devices();

// kNotFound where there is no such device, kUnsupported where it lacks what is needed.
Result<std::unique_ptr<backend::Device>> open_vulkan(uint32_t index, const VulkanOptions& options = {});

}  // namespace spillway::vulkan
