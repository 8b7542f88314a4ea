// When the work of one queue ran, point by point, in measured or simulated nanoseconds.
#pragma once

#include <algorithm>
#include <vector>

#include "backend/device.h"

namespace spillway::backend {

class Timeline {
 public:
  Timeline() : points_(Device::kTimedPoints) {}

  // The end of what was done so far.
  uint64_t now_ns() const { return now_ns_; }
  void advance_to(uint64_t ns) { now_ns_ = std::max(now_ns_, ns); }
  // Whether work ran since the last point.
  bool working() const { return working_; }

  // Work ran, the next in order.
  void work(uint64_t begin_ns, uint64_t end_ns) {
    if (!working_) begin_ns_ = begin_ns;
    working_ = true;
    advance_to(end_ns);
  }

  // A point after all work so far. Requires: values ascend.
  void point(uint64_t value) {
    points_[count_++ % points_.size()] = {value, {working_ ? begin_ns_ : now_ns_, now_ns_}};
    working_ = false;
  }

  // Of the work before that point; zeros where it is unknown or more than kTimedPoints ago.
  Interval interval(uint64_t value) const {
    uint64_t low = count_ - std::min<uint64_t>(count_, points_.size()), high = count_;
    while (low < high) {
      const uint64_t middle = (low + high) / 2;
      const Timed& timed = points_[middle % points_.size()];
      if (timed.value == value) return timed.interval;
      timed.value < value ? low = middle + 1 : high = middle;
    }
    return {};
  }

 private:
  struct Timed {
    uint64_t value = 0;
    Interval interval;
  };
  std::vector<Timed> points_;  // a ring
  uint64_t count_ = 0;
  uint64_t now_ns_ = 0;
  uint64_t begin_ns_ = 0;
  bool working_ = false;
};

}  // namespace spillway::backend
