// What hit rate to expect of a cache before anything has run, for planning only; every use of it is labelled
// *estimated*.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "experts/slots.h"

namespace spillway {
namespace experts {

// Of a cache that holds `fraction` (0..1) of the experts, shared by layers. Between the points: a straight
// line. 12, 20 and 30 % are the replay of public route traces of a model with 128 experts a layer (CRF: 65,
// 78 and 87 %); 50 and 75 % continue that curve toward 100 %.
inline double expected_hit_rate(double fraction) {
  struct At {
    double fraction, hits;
  };
  constexpr std::array<At, 7> kCurve = {
      {{0, 0}, {0.12, 0.65}, {0.20, 0.78}, {0.30, 0.87}, {0.50, 0.95}, {0.75, 0.985}, {1, 1}}};
  if (!(fraction > 0)) return 0;
  for (size_t i = 1; i < kCurve.size(); ++i)
    if (fraction <= kCurve[i].fraction) {
      const At &a = kCurve[i - 1], &b = kCurve[i];
      return a.hits + (b.hits - a.hits) * (fraction - a.fraction) / (b.fraction - a.fraction);
    }
  return 1;
}

// Of `n_layers` layers of this shape whose cache has `slots`: layers beyond the floors have no part of it
// (slots.h).
inline double expected_hit_rate(uint32_t n_layers, uint32_t n_experts, uint32_t n_used, uint32_t slots) {
  const uint32_t served = plan_floors(n_layers, n_experts, n_used, slots).n_layers;
  if (served == 0) return 0;
  return static_cast<double>(served) / n_layers *
         expected_hit_rate(static_cast<double>(slots) / (static_cast<double>(served) * n_experts));
}

}  // namespace experts
}  // namespace spillway
