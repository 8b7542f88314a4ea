#include "backend/vulkan/context.h"

#include <algorithm>

namespace spillway::vulkan {

Result<std::unique_ptr<Context>> Context::create(std::unique_ptr<Instance> instance, PhysicalDevice physical,
                                                 const VulkanOptions& options) {
  if (!physical.unusable.empty())
    return unsupported("{} ({}) cannot be used: {}", physical.info.id, physical.info.name, physical.unusable);
  std::unique_ptr<Context> self(new Context(std::move(instance), std::move(physical)));
  const PhysicalDevice& device = self->physical_;
  if (options.link == VulkanOptions::Link::kInStream) self->physical_.link_family.reset();
  self->physical_.info.copy_queue = device.link_family.has_value();
  self->link_beside_ = options.link == VulkanOptions::Link::kBeside || device.link_family.has_value();

  self->integer_dot_ =
      (options.integer_dot == VulkanOptions::IntegerDot::kAuto && device.fast_integer_dot) ||
      (options.integer_dot == VulkanOptions::IntegerDot::kWherePossible && device.integer_dot);

  const float priority = 1.0f;
  std::vector<VkDeviceQueueCreateInfo> queues = {{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                                  .queueFamilyIndex = device.stream_family,
                                                  .queueCount = 1,
                                                  .pQueuePriorities = &priority}};
  if (device.link_family) {
    queues.push_back(queues[0]);
    queues[1].queueFamilyIndex = *device.link_family;
  }
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
      .shaderIntegerDotProduct = VK_TRUE};
  VkPhysicalDeviceVulkan12Features features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                               .pNext = self->integer_dot_ ? &dot : nullptr,
                                               .hostQueryReset = device.host_query_reset,
                                               .timelineSemaphore = VK_TRUE,
                                               .bufferDeviceAddress = VK_TRUE};
  std::vector<const char*> extensions;
  if (device.host_import) extensions.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  if (self->integer_dot_) extensions.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  const VkDeviceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &features,
                                     .queueCreateInfoCount = static_cast<uint32_t>(queues.size()),
                                     .pQueueCreateInfos = queues.data(),
                                     .enabledExtensionCount = static_cast<uint32_t>(extensions.size()),
                                     .ppEnabledExtensionNames = extensions.data()};
  SW_TRY(check(vkCreateDevice(device.handle, &create, nullptr, &self->device_),
               fmt::format("open {} ({})", device.info.id, device.info.name)));
  volkLoadDeviceTable(&self->vk_, self->device_);
  self->vk_.vkGetDeviceQueue(self->device_, device.stream_family, 0, &self->stream_queue_);
  self->vk_.vkGetDeviceQueue(self->device_, self->link_family(), 0, &self->link_queue_);
  return self;
}

Context::~Context() {
  if (device_ != nullptr) vk_.vkDestroyDevice(device_, nullptr);
}

std::optional<uint32_t> Context::memory_type(uint32_t allowed, VkMemoryPropertyFlags wanted,
                                             VkMemoryPropertyFlags preferred, FromHeap heap) const {
  for (const VkMemoryPropertyFlags flags : {wanted | preferred, wanted})
    for (uint32_t i = 0; i < physical_.memory.memoryTypeCount; ++i) {
      const VkMemoryType& type = physical_.memory.memoryTypes[i];
      if (heap == FromHeap::kDevice && type.heapIndex != physical_.memory_heap) continue;
      if ((allowed & (1u << i)) != 0 && (type.propertyFlags & flags) == flags) return i;
    }
  return std::nullopt;
}

}  // namespace spillway::vulkan
