// A mutex, its guard and a condition variable with clang's thread-safety attributes, so that
// `clang++ -Wthread-safety` checks which lock guards which field. Other compilers see plain standard types.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define SW_ATTRIBUTE(x) __attribute__((x))
#else
#define SW_ATTRIBUTE(x)
#endif
#define SW_GUARDED_BY(mutex) SW_ATTRIBUTE(guarded_by(mutex))
#define SW_REQUIRES(mutex) SW_ATTRIBUTE(requires_capability(mutex))
#define SW_EXCLUDES(mutex) SW_ATTRIBUTE(locks_excluded(mutex))

namespace spillway::sys {

class SW_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() SW_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() SW_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

// Holds the mutex for as long as it lives.
class SW_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SW_ATTRIBUTE(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() SW_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class Condition {
 public:
  // Sleeps until woken, possibly for no reason: look at what is waited for in a loop, where the analysis sees
  // that the lock is held.
  void wait(Mutex& mutex) SW_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  void wake_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace spillway::sys
