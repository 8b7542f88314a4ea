#include "tune/memory_reader.h"

#include <atomic>

#include "sys/clock.h"

namespace spillway::tune {
namespace {

// Eight independent sums, so that the loads and not the additions set the pace.
uint64_t read_all(const uint64_t* data, size_t n) {
  uint64_t sum[8] = {};
  for (size_t i = 0; i + 8 <= n; i += 8)
    for (size_t lane = 0; lane < 8; ++lane) sum[lane] += data[i + lane];
  return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

}  // namespace

double read_once_s(sys::ThreadPool& pool, std::span<const std::byte> memory, uint64_t& sum) {
  const size_t part = memory.size() / pool.threads() / 64 * 64;
  std::atomic<uint64_t> all = 0;
  const sys::MonotonicClock clock;
  const double begin_s = clock.now_s();
  pool.run([&](uint32_t t) {
    all.fetch_add(read_all(reinterpret_cast<const uint64_t*>(memory.data() + t * part), part / 8),
                  std::memory_order_relaxed);
  });
  const double end_s = clock.now_s();
  sum += all.load(std::memory_order_relaxed);
  return end_s - begin_s;
}

}  // namespace spillway::tune
