#include "sys/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

namespace spillway::sys {
namespace {

std::unique_ptr<ThreadPool> make_pool(uint32_t threads) {
  auto pool = ThreadPool::create(threads);
  EXPECT_TRUE(pool) << pool.error().message;
  return *std::move(pool);
}

TEST(ThreadPool, EveryIndexRunsOnceOnItsOwnThread) {
  for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
    const auto pool = make_pool(threads);
    ASSERT_EQ(pool->threads(), threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<int> calls(threads, 0);  // written without a lock: what the bodies write is visible after
      std::vector<std::thread::id> ids(threads);
      pool->run([&](uint32_t index) {
        ++calls[index];
        ids[index] = std::this_thread::get_id();
      });
      ASSERT_EQ(calls, std::vector<int>(threads, 1));
      ASSERT_EQ(ids[0], std::this_thread::get_id());
      for (uint32_t i = 1; i < threads; ++i) ASSERT_NE(ids[i], ids[i - 1]);
    }
  }
}

// Each thread sums what all wrote before the barrier. A barrier that lets one through early gives a wrong sum
// (and a data race for the thread sanitizer).
TEST(ThreadPool, BarriersSeparatePhases) {
  for (const uint32_t threads : {1u, 2u, 4u, 7u}) {
    const auto pool = make_pool(threads);
    std::vector<uint64_t> values(threads, 0), wrong(threads, 0);
    constexpr uint64_t kPhases = 300;
    pool->run([&](uint32_t index) {
      for (uint64_t phase = 1; phase <= kPhases; ++phase) {
        values[index] = phase * (index + 1);
        pool->barrier();
        const uint64_t sum = std::accumulate(values.begin(), values.end(), uint64_t{0});
        if (sum != phase * threads * (threads + 1) / 2) ++wrong[index];
        pool->barrier();
      }
    });
    EXPECT_EQ(wrong, std::vector<uint64_t>(threads, 0));
  }
}

TEST(ThreadPool, SleepersWakeUp) {
  const auto pool = make_pool(3);
  for (int round = 0; round < 5; ++round) {
    // Long enough for every worker to park, and for the others to park at the barrier and at the end.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> calls = 0;
    pool->run([&](uint32_t index) {
      if (index == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      pool->barrier();
      if (index == 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ++calls;
    });
    EXPECT_EQ(calls, 3);
  }
}

// With more threads than cores, a barrier that only spins costs a time slice (about 4 ms) for every thread
// that waits for a core.
TEST(ThreadPool, OversubscribedBarriersDoNotCollapse) {
  const uint32_t threads = 4 * std::max(2u, std::thread::hardware_concurrency());
  const auto pool = make_pool(std::min(threads, 64u));
  const auto start = std::chrono::steady_clock::now();
  pool->run([&](uint32_t) {
    for (int i = 0; i < 200; ++i) pool->barrier();
  });
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took, std::chrono::seconds(5));
}

TEST(ThreadPool, StartsAndStopsUnused) {
  for (int i = 0; i < 20; ++i) make_pool(4);
}

TEST(TaskCounter, HandsOutEveryTaskOnce) {
  const auto pool = make_pool(4);
  TaskCounter counter;
  for (const uint64_t n : {0u, 1u, 5u, 1000u}) {
    for (const uint64_t chunk : {1u, 3u, 64u}) {
      std::vector<std::atomic<int>> done(n);
      counter.reset(n);
      pool->run([&](uint32_t) {
        for (TaskCounter::Range range; !(range = counter.next(chunk)).empty();)
          for (uint64_t i = range.begin; i < range.end; ++i) ++done[i];
      });
      for (uint64_t i = 0; i < n; ++i) ASSERT_EQ(done[i], 1) << i;
      EXPECT_TRUE(counter.next(chunk).empty());
    }
  }
}

}  // namespace
}  // namespace spillway::sys
