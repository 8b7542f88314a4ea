// How much memory this process may use: what the machine has free, within the limits of its control groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace spillway::sys {

struct MemoryLimits {
  uint64_t total_bytes = 0;      // of the machine, or of the tightest control group if that is less
  uint64_t available_bytes = 0;  // can be allocated now without swapping; clean file pages count as free
  std::optional<uint64_t> group_limit_bytes;  // the least limit of a control group, where there is one
  std::string explanation;                    // "available: 11.2 of 15.6 GiB (MemAvailable)"
};

// `root` is "" for this machine, or a folder with a made-up proc/ and sys/.
Result<MemoryLimits> read_memory_limits(const std::string& root = "");

}  // namespace spillway::sys
