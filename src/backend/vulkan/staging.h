// A ring of host memory that the device copies from. A piece is free again when the batch that it was taken
// for is done.
#pragma once

#include <deque>

#include "backend/vulkan/lane.h"
#include "backend/vulkan/memory.h"

namespace spillway::vulkan {

class Staging {
 public:
  Result<void> create(const Context& context, uint64_t bytes);
  uint64_t bytes() const { return bytes_; }

  // Room that the lane's open batch reads. Waits for earlier batches where the ring is full. Requires: bytes
  // <= bytes(), and that the caller enqueues its reading before the lane is submitted.
  Result<Range> take(Lane& lane, uint64_t bytes);

 private:
  struct Taken {
    uint64_t end = 0;  // counted on without wrapping
    uint64_t batch = 0;
  };
  Buffer buffer_;
  uint64_t bytes_ = 0;
  uint64_t head_ = 0, tail_ = 0;  // taken: tail_ .. head_, modulo bytes_
  std::deque<Taken> taken_;
};

}  // namespace spillway::vulkan
