// How fast this machine's memory can be read: the speed of light for decoding.
#pragma once

#include "base/result.h"

namespace spillway::cli {

// Bytes per second that `threads` threads together read from memory far larger than the caches: the best of a
// few passes.
Result<double> measure_read_bandwidth(uint32_t threads);

}  // namespace spillway::cli
