// Reads memory as fast as the threads of a pool can: what everything that reads weights is measured against.
#pragma once

#include <span>

#include "sys/thread_pool.h"

namespace spillway::tune {

// Seconds that one pass over all of it takes. `sum` takes a value that depends on every word, so that no
// compiler leaves the reading out. Requires: 64 bytes a thread or more, aligned to 8.
double read_once_s(sys::ThreadPool& pool, std::span<const std::byte> memory, uint64_t& sum);

}  // namespace spillway::tune
