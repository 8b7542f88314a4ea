#include "backend/host/host_queues.h"

#include <algorithm>
#include <cmath>
#include <system_error>

#include "base/assert.h"

namespace spillway::backend {
namespace {

// Nanoseconds; a rate of 0 is infinitely fast. 10^9 a second is one a nanosecond.
double time_ns(uint64_t amount, double giga_per_s) {
  return giga_per_s > 0 ? static_cast<double>(amount) / giga_per_s : 0;
}

uint64_t whole_ns(double ns) { return static_cast<uint64_t>(std::llround(ns)); }

}  // namespace

Result<std::unique_ptr<HostQueues>> HostQueues::start(const HostDeviceOptions& options) {
  std::unique_ptr<HostQueues> queues(new HostQueues(options));
  try {
    queues->stream_ = std::thread([raw = queues.get()] { raw->stream_thread(); });
    queues->link_ = std::thread([raw = queues.get()] { raw->link_thread(); });
  } catch (const std::system_error& error) {
    return fail(Error::Kind::kIo, "host device: its threads could not be started: {}", error.what());
  }
  return queues;
}

HostQueues::HostQueues(const HostDeviceOptions& options) : options_(options) {}

HostQueues::~HostQueues() {
  {
    const sys::MutexLock lock(mutex_);
    stop_ = true;
    changed_.wake_all();
  }
  if (stream_.joinable()) stream_.join();
  if (link_.joinable()) link_.join();
}

// ---- the engine's thread ----

void HostQueues::add(Item item) {
  ++enqueued_;
  pending_.push_back(std::move(item));
}

void HostQueues::enqueue(Operation operation) {
  add({.kind = Item::Kind::kOperation, .run = std::move(operation)});
}

Point HostQueues::mark() {
  add({.kind = Item::Kind::kMark});
  return {Point::Queue::kStream, enqueued_};
}

void HostQueues::stream_wait(Point link_point) {
  SW_ASSERT(link_point.value == 0 || link_point.queue == Point::Queue::kLink);
  SW_ASSERT(link_point.value <= copies_);  // a point that was given, so that no circle can arise
  add({.kind = Item::Kind::kWaitForLink, .link_value = link_point.value});
  if (link_point.value <= copies_before_operation()) return;
  stream_seen_copies_ = link_point.value;
  stream_waits_.push_back({enqueued_, link_point.value});
}

uint64_t HostQueues::operations_before_copy(Point after) const {
  return std::max({last_copy_after_, after.value, seen_operations_});
}

Point HostQueues::copy(std::function<void()> run, Point after, uint64_t bytes, bool pinned) {
  SW_ASSERT(after.value == 0 || after.queue == Point::Queue::kStream);
  SW_ASSERT(after.value <= enqueued_);
  last_copy_after_ = std::max(last_copy_after_, after.value);
  copy_after_.push_back(last_copy_after_);
  ++copies_;
  Copy copy{.run = std::move(run), .after = after.value, .from_ns = host_ns()};
  if (options_.rates) {
    const HostRates& rates = *options_.rates;
    const bool slow = !pinned && rates.link_pageable_gb_per_s > 0;
    copy.length_ns = whole_ns(rates.copy_us * 1e3 +
                              time_ns(bytes, slow ? rates.link_pageable_gb_per_s : rates.link_gb_per_s));
  }
  const sys::MutexLock lock(mutex_);
  if (!error_) copy_items_.push_back(std::move(copy));
  changed_.wake_all();
  return {Point::Queue::kLink, copies_};
}

void HostQueues::submit() {
  const uint64_t now_ns = host_ns();
  const sys::MutexLock lock(mutex_);
  for (Item& item : pending_) {
    item.from_ns = now_ns;
    if (!error_) items_.push_back(std::move(item));
  }
  pending_.clear();
  submitted_ = enqueued_;
  changed_.wake_all();
}

// The operations that must run before the point is reached.
uint64_t HostQueues::operations_before(Point point) const {
  if (point.queue == Point::Queue::kStream) return point.value;
  return point.value > seen_copies_ ? copy_after_[point.value - seen_copies_ - 1] : 0;
}

// Remembers what the host knows to be over once it has seen that the point was reached.
void HostQueues::see(Point point) {
  seen_operations_ = std::max(seen_operations_, operations_before(point));
  uint64_t copies = point.queue == Point::Queue::kLink ? point.value : 0;
  while (!stream_waits_.empty() && stream_waits_.front().operation <= seen_operations_) {
    copies = std::max(copies, stream_waits_.front().copy);
    stream_waits_.pop_front();
  }
  for (; seen_copies_ < copies; ++seen_copies_) copy_after_.pop_front();
}

bool HostQueues::is_over(Point point) const {
  return point.value <= (point.queue == Point::Queue::kStream ? operations_over_ : copies_over_);
}

bool HostQueues::reached(Point point) {
  SW_ASSERT(point.value <= (point.queue == Point::Queue::kStream ? enqueued_ : copies_));
  {
    const sys::MutexLock lock(mutex_);
    if (error_) return true;
    if (options_.clock == nullptr) {
      if (!is_over(point)) return false;
    } else {
      // The simulated time decides, not how far the threads are.
      if (operations_before(point) > submitted_) return false;
      if (!wait_until_over(point)) return true;
      if (interval_locked(point).end_ns > options_.clock->now_ns()) return false;
    }
  }
  see(point);
  return true;
}

// Once the device is lost, until both threads are idle.
Result<void> HostQueues::wait_until_over(Point point) {
  while (!error_ && !is_over(point)) changed_.wait(mutex_);
  if (!error_) return {};
  while (stream_busy_ || link_busy_) changed_.wait(mutex_);
  return std::unexpected(*error_);
}

Result<void> HostQueues::wait(Point point) {
  SW_ASSERT(point.value <= (point.queue == Point::Queue::kStream ? enqueued_ : copies_));
  submit();
  {
    const sys::MutexLock lock(mutex_);
    SW_TRY(wait_until_over(point));
    set_clock(interval_locked(point).end_ns);
  }
  see(point);
  return {};
}

Result<void> HostQueues::finish() {
  submit();
  const Point end{Point::Queue::kStream, enqueued_};
  {
    const sys::MutexLock lock(mutex_);
    SW_TRY(wait_until_over(end));
    set_clock(stream_times_.now_ns());
  }
  see(end);
  return {};
}

void HostQueues::set_clock(uint64_t ns) {
  if (options_.rates && options_.clock != nullptr && options_.clock->now_ns() < ns)
    options_.clock->advance_ns(ns - options_.clock->now_ns());
}

Interval HostQueues::interval_locked(Point point) const {
  return (point.queue == Point::Queue::kStream ? stream_times_ : link_times_).interval(point.value);
}

Interval HostQueues::interval(Point point) {
  const sys::MutexLock lock(mutex_);
  return interval_locked(point);
}

uint64_t HostQueues::operations_over() {
  const sys::MutexLock lock(mutex_);
  return operations_over_;
}

void HostQueues::lose(Error error) {
  const sys::MutexLock lock(mutex_);
  lose_locked(std::move(error));
}

// ---- the two threads ----

void HostQueues::lose_locked(Error error) {
  if (!error_) error_ = std::move(error);
  items_.clear();
  copy_items_.clear();
  changed_.wake_all();
}

uint64_t HostQueues::length_ns(const Work& work) const {
  const HostRates& rates = *options_.rates;
  return whole_ns(rates.operation_us * 1e3 + std::max(time_ns(work.bytes, rates.device_gb_per_s),
                                                      time_ns(work.multiply_adds, rates.device_gmac_per_s)));
}

void HostQueues::stream_thread() {
  for (uint64_t number = 1;; ++number) {
    Item item;
    {
      const sys::MutexLock lock(mutex_);
      while (!stop_ && items_.empty()) changed_.wait(mutex_);
      if (stop_) return;
      item = std::move(items_.front());
      items_.pop_front();
      stream_busy_ = true;
    }
    run_item(item, number);
    item = {};  // what it holds goes before anybody hears that it is over
    const sys::MutexLock lock(mutex_);
    stream_busy_ = false;
    operations_over_ = number;
    changed_.wake_all();
  }
}

void HostQueues::run_item(Item& item, uint64_t number) {
  {
    const sys::MutexLock lock(mutex_);
    if (options_.faults.lose_after_operations && number > *options_.faults.lose_after_operations)
      return lose_locked(
          {Error::Kind::kDeviceLost,
           fmt::format("host device: lost after operation {}, as this test asks", number - 1)});
    if (item.kind == Item::Kind::kWaitForLink) {
      while (going() && copies_over_ < item.link_value) changed_.wait(mutex_);
      if (going() && options_.rates) stream_times_.advance_to(link_times_.interval(item.link_value).end_ns);
      return;
    }
    if (item.kind == Item::Kind::kMark) {
      if (!options_.rates && !stream_times_.working()) stream_times_.advance_to(real_.now_ns());
      stream_times_.point(number);
      return;
    }
  }
  run_operation(item);
}

void HostQueues::run_operation(Item& item) {
  const uint64_t begin_ns = real_.now_ns();
  Result<Work> work = item.run();
  const uint64_t end_ns = real_.now_ns();
  const sys::MutexLock lock(mutex_);
  if (!work) return lose_locked(std::move(work).error());
  if (!options_.rates) return stream_times_.work(begin_ns, end_ns);
  const uint64_t start_ns = std::max(stream_times_.now_ns(), item.from_ns);
  stream_times_.work(start_ns, start_ns + length_ns(*work));
}

void HostQueues::link_thread() {
  for (uint64_t number = 1;; ++number) {
    Copy copy;
    {
      const sys::MutexLock lock(mutex_);
      while (!stop_ && copy_items_.empty()) changed_.wait(mutex_);
      if (stop_) return;
      copy = std::move(copy_items_.front());
      copy_items_.pop_front();
      link_busy_ = true;
    }
    run_copy(copy, number);
    const sys::MutexLock lock(mutex_);
    link_busy_ = false;
    copies_over_ = number;
    changed_.wake_all();
  }
}

void HostQueues::run_copy(Copy& copy, uint64_t number) {
  uint64_t after_ns = 0;
  {
    const sys::MutexLock lock(mutex_);
    while (going() && operations_over_ < copy.after) changed_.wait(mutex_);
    if (!going()) return;
    if (number == options_.faults.fail_copy)
      return lose_locked(
          {Error::Kind::kDeviceLost, fmt::format("host device: copy {} failed, as this test asks", number)});
    after_ns = stream_times_.interval(copy.after).end_ns;
  }
  const uint64_t begin_ns = real_.now_ns();
  copy.run();
  const uint64_t end_ns = real_.now_ns();
  const sys::MutexLock lock(mutex_);
  if (options_.rates) {
    const uint64_t start_ns = std::max({link_times_.now_ns(), copy.from_ns, after_ns});
    link_times_.work(start_ns, start_ns + copy.length_ns);
  } else {
    link_times_.work(begin_ns, end_ns);
  }
  link_times_.point(number);
}

}  // namespace spillway::backend
