// How the operations of a device are written into its stream.
#pragma once

#include <span>

#include "backend/vulkan/device.h"

namespace spillway::vulkan {

// Threads of the shaders that make one value, pair or word each.
inline constexpr uint32_t kThreads = 64;
inline uint32_t workgroups(uint32_t items) { return (items + kThreads - 1) / kThreads; }

template <class Push>
void VulkanDevice::run(std::string_view shader, std::vector<uint32_t> constants, Groups groups,
                       const Push& push, Before before) {
  static_assert(sizeof(Push) <= kPushBytes);
  if (groups.x == 0 || groups.y == 0) return;
  const auto pipeline = pipelines_.get(shader, std::move(constants));
  if (!pipeline) return lose(pipeline.error());
  CommandList& list = stream_list(keep_);
  if (before == Before::kBarrier) list.barrier();
  list.dispatch(*pipeline, groups, std::as_bytes(std::span(&push, 1)));
}

}  // namespace spillway::vulkan
