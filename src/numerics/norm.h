// RMS norm and softmax (docs/numerics.md).
#pragma once

#include <cstdint>

namespace spillway::numerics {

// y = rms_norm(x) * w, n values: ss = reduce_sum(flush(x)^2), s = rsqrt(ss * inv_n + eps),
// y = flush((flush(x) * s) * flush(w)); without w: y = flush(flush(x) * s). y may be x.
void rms_norm(const float* x, const float* w, uint32_t n, float eps, float* y);

// float32 nearest to 1/n, by the host's double division.
inline float inverse_of(uint32_t n) { return static_cast<float>(1.0 / n); }

// In place: m = maximum, p = exp(x - m), x = p * reciprocal(reduce_sum(p)). Any NaN, a +inf, or only -inf
// makes all of it NaN. Requires: n > 0.
void softmax(float* x, uint32_t n);

}  // namespace spillway::numerics
