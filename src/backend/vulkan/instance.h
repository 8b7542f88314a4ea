// The Vulkan instance and what its devices are and can do.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backend/device.h"
#include "backend/vulkan/api.h"
#include "backend/vulkan/vulkan_device.h"

namespace spillway::vulkan {

// What the backend uses of a device.
struct PhysicalDevice {
  VkPhysicalDevice handle = nullptr;
  backend::DeviceInfo info;
  std::string unusable;  // why it can't be used; empty where it can
  VkPhysicalDeviceMemoryProperties memory = {};
  uint32_t api_version = 0;
  uint32_t vendor = 0, device = 0;
  uint8_t cache_id[VK_UUID_SIZE] = {};
  uint32_t stream_family = 0;
  std::optional<uint32_t> link_family;  // of a transfer queue
  uint32_t stream_timestamp_bits = 0, link_timestamp_bits = 0;
  double timestamp_ns = 0;
  bool host_query_reset = false;
  bool host_import = false;  // VK_EXT_external_memory_host
  uint64_t host_import_alignment = 0;
  bool round_to_even = false;     // the shaders can ask for it
  bool keep_special = false;      // signed zeros, infinities and NaNs likewise
  bool integer_dot = false;       // VK_KHR_shader_integer_dot_product
  bool fast_integer_dot = false;  // of four packed signed bytes, in hardware
  uint32_t memory_heap = 0;       // the device's own
};

class Instance {
 public:
  // kNotFound without a loader or a driver.
  static Result<std::unique_ptr<Instance>> create(const VulkanOptions& options);
  ~Instance();
  Instance(const Instance&) = delete;

  std::vector<PhysicalDevice> devices() const;

 private:
  Instance() = default;
  VkInstance instance_ = nullptr;
  VkDebugUtilsMessengerEXT messenger_ = nullptr;
  PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger_ = nullptr;  // volk's are those of the last instance
  std::function<void(std::string_view)> on_validation_;
};

}  // namespace spillway::vulkan
