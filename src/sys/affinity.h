// Which processors the system lets this process run on. For this room only.
#pragma once

#include <cstdint>
#include <vector>

namespace spillway::sys {

// Ascending; it follows taskset, cpusets and containers. Empty where the system doesn't say.
std::vector<uint32_t> allowed_processors();

}  // namespace spillway::sys
