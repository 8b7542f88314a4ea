#include "sys/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

#include "base/assert.h"
#include "base/limits.h"

namespace spillway::sys {
namespace {

// How long a waiting thread looks before it sleeps. Threads with nearly equal work meet well within it;
// waking a sleeper costs 5 to 50 us. Longer waits (a sampler, a device, a prompt to come) are worth a sleep.
constexpr std::chrono::microseconds kSpinTime(50);

// Looks between two readings of the clock: about 1 us, as a pause is 15 to 50 ns.
constexpr int kPauses = 32;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // `yield` does nothing on most cores
#endif
}

}  // namespace

// A number that threads wait on.
class alignas(64) WaitWord {
 public:
  uint32_t get() const { return value_.load(std::memory_order_acquire); }
  // Not a signal: for before anybody waits.
  void set(uint32_t value) { value_.store(value, std::memory_order_relaxed); }
  uint32_t add(uint32_t n) { return value_.fetch_add(n, std::memory_order_seq_cst) + n; }

  // Wakes those that sleep. Call after a change that they wait for. The change and this look are seq_cst, and
  // so are a sleeper's count and its last look at the value: one of the two sees the other.
  void wake() {
    if (sleepers_.load(std::memory_order_seq_cst) > 0) futex(FUTEX_WAKE_PRIVATE, INT32_MAX);
  }

  // Returns when done(value) holds.
  template <class Done>
  void wait(Done done) {
    const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
    do {
      for (int i = 0; i < kPauses; ++i) {
        if (done(get())) return;
        pause();
      }
    } while (std::chrono::steady_clock::now() < deadline);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    for (uint32_t value; !done(value = value_.load(std::memory_order_seq_cst));)
      futex(FUTEX_WAIT_PRIVATE, value);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  void futex(int operation, uint32_t value) {
    static_assert(sizeof(value_) == 4 && std::atomic<uint32_t>::is_always_lock_free);
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value_), operation, value, nullptr, nullptr, 0);
  }

  std::atomic<uint32_t> value_ = 0;
  std::atomic<uint32_t> sleepers_ = 0;
};

struct ThreadPool::State {
  WaitWord region;   // counts regions; a change starts one
  WaitWord running;  // workers that have not finished this region
  WaitWord passed;   // counts barriers that were passed
  alignas(64) std::atomic<uint32_t> arrived = 0;
  // Written before `region` changes, read by workers after.
  alignas(64) Call call = nullptr;
  void* context = nullptr;
  bool stop = false;
  std::vector<std::thread> workers;
};

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(uint32_t threads) {
  SW_ASSERT(threads >= 1 && threads <= limits::kMaxThreads);
  std::unique_ptr<ThreadPool> pool(new ThreadPool(threads, std::make_unique<State>()));
  for (uint32_t index = 1; index < threads; ++index) {
    try {
      pool->state_->workers.emplace_back([raw = pool.get(), index] { raw->worker(index); });
    } catch (const std::system_error& error) {
      return fail(
          Error::Kind::kIo,
          "thread {} of {} could not be started: {}; ask for fewer threads or raise the limit (ulimit -u)",
          index + 1, threads, error.what());
    }
    pthread_setname_np(pool->state_->workers.back().native_handle(),
                       fmt::format("spillway-{}", index).c_str());
  }
  return pool;
}

ThreadPool::ThreadPool(uint32_t threads, std::unique_ptr<State> state)
    : threads_(threads), state_(std::move(state)) {}

ThreadPool::~ThreadPool() {
  state_->stop = true;
  state_->region.add(1);
  state_->region.wake();
  for (std::thread& worker : state_->workers) worker.join();
}

void ThreadPool::run_region(Call call, void* context) {
  State& state = *state_;
  SW_ASSERT(state.call == nullptr);  // a region inside a region, or two callers
  state.call = call;
  state.context = context;
  if (threads_ > 1) {
    state.running.set(threads_ - 1);
    state.region.add(1);
    state.region.wake();
  }
  call(context, 0);
  if (threads_ > 1) state.running.wait([](uint32_t left) { return left == 0; });
  state.call = nullptr;
}

void ThreadPool::worker(uint32_t index) {
  State& state = *state_;
  uint32_t seen = 0;
  while (true) {
    state.region.wait([seen](uint32_t region) { return region != seen; });
    ++seen;
    if (state.stop) return;
    state.call(state.context, index);
    if (state.running.add(~0u) == 0) state.running.wake();
  }
}

void ThreadPool::barrier() {
  if (threads_ == 1) return;
  State& state = *state_;
  const uint32_t before = state.passed.get();
  if (state.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    state.arrived.store(0, std::memory_order_relaxed);
    state.passed.add(1);
    state.passed.wake();
  } else {
    state.passed.wait([before](uint32_t passed) { return passed != before; });
  }
}

}  // namespace spillway::sys
