#include "cli/read_bandwidth.h"

#include <chrono>
#include <cstring>
#include <vector>

#include "sys/memory.h"
#include "sys/thread_pool.h"

namespace spillway::cli {
namespace {

// Beyond the last-level cache of any machine this runs on (the largest have 1 GiB; those read it in parts per
// thread).
constexpr size_t kBytes = size_t{512} << 20;
constexpr int kPasses = 5;

// Eight independent sums, so that the loads and not the additions set the pace.
uint64_t read_all(const uint64_t* data, size_t n) {
  uint64_t sum[8] = {};
  for (size_t i = 0; i + 8 <= n; i += 8)
    for (size_t lane = 0; lane < 8; ++lane) sum[lane] += data[i + lane];
  return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

}  // namespace

Result<double> measure_read_bandwidth(uint32_t threads) {
  SW_ASSIGN(sys::Allocation memory, sys::Allocation::create(kBytes, sys::Pages::kPreferHuge));
  SW_ASSIGN(const auto pool, sys::ThreadPool::create(threads));
  const size_t part = kBytes / threads / 64 * 64;
  std::vector<uint64_t> sums(threads * 8);  // a cache line apart
  pool->run([&](uint32_t t) { std::memset(memory.data() + t * part, 1, part); });
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    pool->run([&](uint32_t t) {
      sums[t * 8] +=
          read_all(reinterpret_cast<const uint64_t*>(memory.data() + t * part), part / sizeof(uint64_t));
    });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, static_cast<double>(part * threads) / seconds);
  }
  for (uint32_t t = 0; t < threads; ++t)
    if (sums[t * 8] == 0) return fail(Error::Kind::kIo, "the memory that was written does not read back");
  return best;
}

}  // namespace spillway::cli
