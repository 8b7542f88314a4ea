// Time, behind an interface so that what decides by the clock can be tested with one that stands still.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace spillway::sys {

class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds from some fixed start; never goes back. Any thread.
  virtual uint64_t now_ns() const = 0;

  double now_s() const { return static_cast<double>(now_ns()) * 1e-9; }
};

class MonotonicClock final : public Clock {
 public:
  uint64_t now_ns() const override {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
  }
};

// Goes on only when told to.
class FakeClock final : public Clock {
 public:
  uint64_t now_ns() const override { return now_ns_.load(std::memory_order_relaxed); }
  void advance_ns(uint64_t step) { now_ns_.fetch_add(step, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> now_ns_ = 0;
};

}  // namespace spillway::sys
