#include "numerics/norm.h"

#include "numerics/elementary.h"
#include "numerics/reduce.h"

namespace spillway::numerics {

void rms_norm(const float* x, const float* w, uint32_t n, float eps, float* y) {
  const float ss = reduce_sum(n, [x](size_t i) { return flush(x[i]) * flush(x[i]); });
  const float s = rsqrt(ss * inverse_of(n) + eps);
  for (uint32_t i = 0; i < n; ++i) {
    const float scaled = flush(x[i]) * s;
    y[i] = flush(w != nullptr ? scaled * flush(w[i]) : scaled);
  }
}

void softmax(float* x, uint32_t n) {
  const float m = reduce_max(x, n);
  for (uint32_t i = 0; i < n; ++i) x[i] = exp(x[i] - m);
  const float r = reciprocal(reduce_sum(n, [x](size_t i) { return x[i]; }));
  for (uint32_t i = 0; i < n; ++i) x[i] = x[i] * r;
}

}  // namespace spillway::numerics
