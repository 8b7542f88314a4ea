// Numbered moments of a lane (backend::Point), with time stamps where the device has them.
#pragma once

#include <deque>

#include "backend/vulkan/lane.h"

namespace spillway::vulkan {

class Points {
 public:
  Points(const Context& context, Lane& lane, uint32_t timestamp_bits)
      : context_(context), lane_(lane), timestamp_bits_(timestamp_bits) {}
  ~Points();
  Points(const Points&) = delete;
  Result<void> create();

  // Work that belongs to the next point begins; called before it is enqueued, as often as one likes.
  void begin_work() {
    if (!begun_) begin();
  }
  // The number of the point after all that was enqueued.
  uint64_t mark();

  // The lane's batch whose end reaches the point; 0 where it is known to be reached.
  uint64_t batch_of(uint64_t point) const;
  // Of a point that was reached, at most kTimedPoints ago; both 0 where there are no stamps.
  backend::Interval interval(uint64_t point) const;

 private:
  static constexpr uint64_t kRing = backend::Device::kTimedPoints;

  void begin();
  void forget_reached();

  const Context& context_;
  Lane& lane_;
  const uint32_t timestamp_bits_;
  VkQueryPool queries_ = nullptr;  // 2 a point: begin, end
  bool begun_ = false;
  uint64_t last_ = 0;
  std::deque<uint64_t> batches_;  // of points first_ ..
  uint64_t first_ = 1;
};

}  // namespace spillway::vulkan
