// Gated activations of the feed-forward part and the adds of the residual stream (docs/numerics.md). n values
// each, in place in the first argument.
#pragma once

#include <cstddef>

#include "numerics/elementary.h"

namespace spillway::numerics {

// gate = silu(gate) * flush(up)
inline void silu_mul(float* gate, const float* up, size_t n) {
  for (size_t i = 0; i < n; ++i) gate[i] = silu(gate[i]) * flush(up[i]);
}

// gate = gelu(gate) * flush(up), the tanh form
inline void gelu_mul(float* gate, const float* up, size_t n) {
  for (size_t i = 0; i < n; ++i) gate[i] = gelu(gate[i]) * flush(up[i]);
}

// One value of gpt-oss's clamped gate: g = min(gate, limit), u = clamp(up, -limit, limit),
// (g * sigmoid(alpha * g)) * (u + 1). Its alpha is 1.702 and its limit 7. NaN stays NaN.
constexpr float clamped_swiglu(float gate, float up, float alpha, float limit) {
  const float g = flush(gate > limit ? limit : gate);
  const float low = up < -limit ? -limit : up;
  const float u = low > limit ? limit : low;
  return (g * sigmoid(g * alpha)) * flush(u + 1.0f);
}

inline void clamped_swiglu_mul(float* gate, const float* up, size_t n, float alpha, float limit) {
  for (size_t i = 0; i < n; ++i) gate[i] = clamped_swiglu(gate[i], up[i], alpha, limit);
}

// y = y + x
inline void add(float* y, const float* x, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = y[i] + x[i];
}

// y = y + flush(scale) * flush(x)
inline void add_scaled(float* y, const float* x, float scale, size_t n) {
  const float s = flush(scale);
  for (size_t i = 0; i < n; ++i) y[i] = y[i] + s * flush(x[i]);
}

}  // namespace spillway::numerics
