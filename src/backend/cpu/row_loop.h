// Work of well under a microsecond a row, on the pool where that pays.
#pragma once

#include <cstdint>

#include "sys/thread_pool.h"

namespace spillway::cpu {

// Rows below which waking the pool costs more than it gains.
inline constexpr uint32_t kMinParallelRows = 4;

// Calls body(row) for each row of 0..n-1.
template <class Body>
void for_rows(sys::ThreadPool& pool, sys::TaskCounter& counter, uint32_t n, Body&& body) {
  if (n < kMinParallelRows) {
    for (uint32_t r = 0; r < n; ++r) body(r);
    return;
  }
  counter.reset(n);
  pool.run([&](uint32_t) {
    for (auto range = counter.next(4); !range.empty(); range = counter.next(4))
      for (uint64_t r = range.begin; r < range.end; ++r) body(static_cast<uint32_t>(r));
  });
}

}  // namespace spillway::cpu
