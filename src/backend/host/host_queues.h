// The two queues of the pretended device, a thread each: the stream runs operations in order, the link
// copies. Times are measured or simulated (HostDeviceOptions).
//
// A point's value is the number of the operation or copy that it stands behind, counted from 1.
//
// All calls come from one thread, the engine's. When an operation, a copy or a fault loses the device, both
// threads drop what they have and do nothing more; wait() and finish() return only when both are idle, so
// that nothing of the caller's is touched any more.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "backend/host/host_device.h"
#include "backend/host/timeline.h"
#include "sys/mutex.h"

namespace spillway::backend {

// What an operation took of the device, for simulated times.
struct Work {
  uint64_t bytes = 0;  // of weights and KV read
  uint64_t multiply_adds = 0;
};

class HostQueues {
 public:
  using Operation = std::function<Result<Work>()>;

  static Result<std::unique_ptr<HostQueues>> start(const HostDeviceOptions& options);
  ~HostQueues();

  // The number that the next enqueue(), mark() or stream_wait() gives.
  uint64_t next_operation() const { return enqueued_ + 1; }
  uint64_t copies() const { return copies_; }
  uint64_t operations_over();

  // Up to which number things are over because somebody waits or waited for them (slot_watch.h): operations
  // when the next copy starts, given its `after`; copies when the next operation starts; operations that the
  // host has waited for.
  uint64_t operations_before_copy(Point after) const;
  uint64_t copies_before_operation() const { return std::max(seen_copies_, stream_seen_copies_); }
  uint64_t seen_operations() const { return seen_operations_; }

  void enqueue(Operation operation);
  Point mark();
  void stream_wait(Point link_point);
  // `bytes` from pinned or other memory take simulated time.
  Point copy(std::function<void()> run, Point after, uint64_t bytes, bool pinned);
  void submit();
  bool reached(Point point);
  Result<void> wait(Point point);
  Result<void> finish();
  Interval interval(Point point);

  // Loses the device for a reason that was found outside.
  void lose(Error error);

 private:
  struct Item {
    enum class Kind : uint8_t { kOperation, kMark, kWaitForLink };
    Kind kind;
    Operation run;
    uint64_t link_value = 0;
    uint64_t from_ns = 0;  // simulated: handed over then
  };
  struct Copy {
    std::function<void()> run;
    uint64_t after = 0;
    uint64_t length_ns = 0;
    uint64_t from_ns = 0;
  };

  explicit HostQueues(const HostDeviceOptions& options);
  void add(Item item);
  void see(Point point);
  uint64_t operations_before(Point point) const;
  uint64_t host_ns() const { return options_.clock != nullptr ? options_.clock->now_ns() : 0; }
  uint64_t length_ns(const Work& work) const;

  void stream_thread();
  void link_thread();
  void run_item(Item& item, uint64_t number);
  void run_operation(Item& item);
  void run_copy(Copy& copy, uint64_t number);
  bool going() const SW_REQUIRES(mutex_) { return !stop_ && !error_; }
  void lose_locked(Error error) SW_REQUIRES(mutex_);
  bool is_over(Point point) const SW_REQUIRES(mutex_);
  Result<void> wait_until_over(Point point) SW_REQUIRES(mutex_);
  Interval interval_locked(Point point) const SW_REQUIRES(mutex_);
  void set_clock(uint64_t ns);

  const HostDeviceOptions options_;
  const sys::MonotonicClock real_;

  // Of the engine's thread alone.
  std::vector<Item> pending_;  // enqueued, not handed over
  uint64_t enqueued_ = 0;
  uint64_t submitted_ = 0;
  uint64_t copies_ = 0;
  uint64_t seen_operations_ = 0, seen_copies_ = 0;
  uint64_t stream_seen_copies_ = 0;
  // Of the copies that were not seen yet: up to which operation they and those before them wait.
  std::deque<uint64_t> copy_after_;
  uint64_t last_copy_after_ = 0;
  struct StreamWait {
    uint64_t operation;
    uint64_t copy;
  };
  std::deque<StreamWait> stream_waits_;  // that were not seen yet

  sys::Mutex mutex_;
  sys::Condition changed_;
  std::deque<Item> items_ SW_GUARDED_BY(mutex_);
  std::deque<Copy> copy_items_ SW_GUARDED_BY(mutex_);
  uint64_t operations_over_ SW_GUARDED_BY(mutex_) = 0;
  uint64_t copies_over_ SW_GUARDED_BY(mutex_) = 0;
  bool stream_busy_ SW_GUARDED_BY(mutex_) = false;
  bool link_busy_ SW_GUARDED_BY(mutex_) = false;
  bool stop_ SW_GUARDED_BY(mutex_) = false;
  std::optional<Error> error_ SW_GUARDED_BY(mutex_);
  Timeline stream_times_ SW_GUARDED_BY(mutex_);
  Timeline link_times_ SW_GUARDED_BY(mutex_);

  std::thread stream_, link_;
};

}  // namespace spillway::backend
