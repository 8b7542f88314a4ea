// A fixed CPU share of the misses with an accumulated remainder: of 3 misses at a share of 0.5 the CPU gets
// 1, then of the next 3 it gets 2. Parts per billion, so that decimal shares are exact and nothing drifts.
#pragma once

#include <cstdint>

#include "experts/arithmetic.h"

namespace spillway {
namespace experts {

class CpuShare {
 public:
  // Requires: 0 <= share <= 1.
  explicit CpuShare(double share) : parts_(round_up_half(share * kWhole)) {}

  // How many of these misses the CPU computes.
  uint32_t take(uint32_t misses) {
    remainder_ += parts_ * misses;
    const uint64_t whole = remainder_ / kWhole;
    remainder_ -= whole * kWhole;
    return static_cast<uint32_t>(whole);
  }

 private:
  static constexpr uint64_t kWhole = 1'000'000'000;
  uint64_t parts_;
  uint64_t remainder_ = 0;
};

}  // namespace experts
}  // namespace spillway
