#include "cli/read_bandwidth.h"

#include <cstring>

#include "sys/memory.h"
#include "tune/memory_reader.h"

namespace spillway::cli {
namespace {

// Beyond the last-level cache of any machine this runs on (the largest have 1 GiB; those read it in parts per
// thread).
constexpr size_t kBytes = size_t{512} << 20;
constexpr int kPasses = 5;

}  // namespace

Result<double> measure_read_bandwidth(uint32_t threads) {
  SW_ASSIGN(sys::Allocation memory, sys::Allocation::create(kBytes, sys::Pages::kPreferHuge));
  SW_ASSIGN(const auto pool, sys::ThreadPool::create(threads));
  const size_t part = kBytes / threads / 64 * 64;
  pool->run([&](uint32_t t) { std::memset(memory.data() + t * part, 1, part); });
  double best = 0;
  uint64_t sum = 0;
  for (int pass = 0; pass < kPasses; ++pass)
    best = std::max(best, static_cast<double>(part * threads) /
                              tune::read_once_s(*pool, memory.bytes().first(part * threads), sum));
  if (sum == 0) return fail(Error::Kind::kIo, "the memory that was written does not read back");
  return best;
}

}  // namespace spillway::cli
