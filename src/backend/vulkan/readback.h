// Results on their way to the host: copied by the device into memory that the host sees, and from there to
// where the caller wants them once the batch is done.
#pragma once

#include <vector>

#include "backend/vulkan/lane.h"
#include "backend/vulkan/memory.h"

namespace spillway::vulkan {

class Readback {
 public:
  Result<void> create(const Context& context, uint64_t bytes);

  // Enqueues the copy of `rows` rows of row_bytes, from `from` every from_stride bytes, to `to` every
  // to_stride bytes. Waits and delivers first where there is no room. Requires: rows * row_bytes fit in at
  // all.
  struct Rows {
    Range from;
    uint64_t from_stride = 0;
    uint32_t rows = 0;
    uint64_t row_bytes = 0;
    std::byte* to = nullptr;
    uint64_t to_stride = 0;
  };
  Result<void> read(Lane& lane, Lane::Keep keep, const Rows& rows);

  // Hands out what is there.
  void deliver(const Lane& lane);

 private:
  struct Pending {
    uint64_t batch = 0;
    uint64_t offset = 0;
    Rows rows;
  };
  Buffer buffer_;
  uint64_t bytes_ = 0, used_ = 0;
  std::vector<Pending> pending_;
  std::vector<VkBufferCopy> regions_;
};

// The regions of `rows` rows between two strided places.
void row_regions(std::vector<VkBufferCopy>& regions, uint64_t from, uint64_t from_stride, uint64_t to,
                 uint64_t to_stride, uint64_t row_bytes, uint32_t rows);

}  // namespace spillway::vulkan
