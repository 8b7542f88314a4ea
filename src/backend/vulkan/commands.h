// What a queue is to do, as a list of plain bytes: written while operations are enqueued, turned into a
// command buffer later. Equal lists have equal bytes, so that a command buffer made once can be used again
// for every step that does the same (lane.h).
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/vulkan/context.h"
#include "backend/vulkan/memory.h"

namespace spillway::vulkan {

struct Groups {
  uint32_t x = 1, y = 1, z = 1;
};

// What the queue that a list is made for can do.
struct QueueStages {
  VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkAccessFlags writes = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  VkAccessFlags reads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;
};
inline constexpr QueueStages kCopiesOnly = {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                                            VK_ACCESS_TRANSFER_READ_BIT};

class CommandList {
 public:
  bool empty() const { return bytes_.empty(); }
  std::string_view bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

  // All that was enqueued before is done and visible to what follows.
  void barrier() { append(Kind::kBarrier); }
  // ... and to the host, once the batch is reached.
  void host_barrier() { append(Kind::kHostBarrier); }
  void dispatch(VkPipeline pipeline, Groups groups, std::span<const std::byte> push);
  // Requires: not empty, the regions do not overlap.
  void copy(VkBuffer from, VkBuffer to, std::span<const VkBufferCopy> regions);
  void copy(const Range& from, const Range& to);  // from.bytes
  // At most 65536 bytes, a multiple of 4.
  void update(const Range& to, std::span<const std::byte> bytes);
  void fill(const Range& to, uint32_t word);
  void timestamp(VkQueryPool pool, uint32_t query);

  // Records the list into a command buffer that has begun.
  static void record(std::string_view list, const Context& context, VkPipelineLayout layout,
                     const QueueStages& stages, VkCommandBuffer to);

 private:
  enum class Kind : uint32_t { kBarrier, kHostBarrier, kDispatch, kCopy, kUpdate, kFill, kTimestamp };

  void append(Kind kind) { append_value(kind); }
  template <class T>
  void append_value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  std::string bytes_;
};

}  // namespace spillway::vulkan
