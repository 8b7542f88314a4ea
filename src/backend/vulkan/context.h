// A logical device: its functions, queues and memory types. Everything else of the backend holds a reference.
#pragma once

#include <memory>

#include "backend/vulkan/instance.h"

namespace spillway::vulkan {

class Context {
 public:
  static Result<std::unique_ptr<Context>> create(std::unique_ptr<Instance> instance, PhysicalDevice physical,
                                                 const VulkanOptions& options);
  ~Context();
  Context(const Context&) = delete;

  VkDevice device() const { return device_; }
  const VolkDeviceTable& vk() const { return vk_; }
  const PhysicalDevice& physical() const { return physical_; }
  VkQueue stream_queue() const { return stream_queue_; }
  VkQueue link_queue() const { return link_queue_; }
  uint32_t link_family() const { return physical_.link_family.value_or(physical_.stream_family); }
  bool link_beside() const { return link_beside_; }  // copies follow the rules of a queue of their own

  bool integer_dot() const { return integer_dot_; }  // products use it

  // The first memory type of `allowed` with all of `wanted`, best also with `preferred`. kDevice: only of the
  // heap whose size is the device's memory (a small window into it for the host is a heap of its own).
  enum class FromHeap : uint8_t { kAny, kDevice };
  std::optional<uint32_t> memory_type(uint32_t allowed, VkMemoryPropertyFlags wanted,
                                      VkMemoryPropertyFlags preferred, FromHeap heap) const;

 private:
  Context(std::unique_ptr<Instance> instance, PhysicalDevice physical)
      : instance_(std::move(instance)), physical_(std::move(physical)) {}
  std::unique_ptr<Instance> instance_;
  PhysicalDevice physical_;
  VkDevice device_ = nullptr;
  VolkDeviceTable vk_ = {};
  VkQueue stream_queue_ = nullptr, link_queue_ = nullptr;
  bool link_beside_ = false, integer_dot_ = false;
};

}  // namespace spillway::vulkan
