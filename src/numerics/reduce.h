// Sums and maxima over n values in the one order of docs/numerics.md, "Reductions".
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/elementary.h"

namespace spillway::numerics {

inline constexpr uint32_t kReductionLanes = 16;

// Lanes folded by halves: l + (l+8), l + (l+4), l + (l+2), l + (l+1). `lanes` (16) is overwritten.
inline float fold_lanes(float* lanes) {
  for (uint32_t half = kReductionLanes / 2; half > 0; half /= 2)
    for (uint32_t l = 0; l < half; ++l) lanes[l] = lanes[l] + lanes[l + half];
  return lanes[0];
}

// Sum of term(i) for i in 0..n-1: lane i mod 16 adds in ascending order from +0.
template <class Term>
float reduce_sum(size_t n, Term term) {
  float lanes[kReductionLanes] = {};
  for (size_t i = 0; i < n; ++i) lanes[i % kReductionLanes] = lanes[i % kReductionLanes] + term(i);
  return fold_lanes(lanes);
}

// The largest value, NaNs left out; -inf where there is none. Any order gives the same value (the sign of a
// zero may differ, and no rule here depends on it).
inline float reduce_max(const float* x, size_t n) {
  float m = float_of(kSignMask | kInfinityBits);
  for (size_t i = 0; i < n; ++i) m = max_select(x[i], m);
  return m;
}

}  // namespace spillway::numerics
