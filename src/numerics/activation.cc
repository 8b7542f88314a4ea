#include "numerics/activation.h"

#include <algorithm>

#include "base/assert.h"
#include "numerics/elementary.h"

namespace spillway::numerics {
namespace {

void quantize_row(const float* x, size_t n, size_t length, size_t sum_length, int8_t* q, float* d,
                  int16_t* sums) {
  SW_ASSERT(n % length == 0);
  for (size_t b = 0; b < n / length; ++b) quantize_block(x + b * length, length, q + b * length, d[b]);
  for (size_t s = 0; s < n / sum_length; ++s) {
    int sum = 0;
    for (size_t i = 0; i < sum_length; ++i) sum += q[s * sum_length + i];
    sums[s] = static_cast<int16_t>(sum);
  }
}

}  // namespace

void quantize_block(const float* x, size_t length, int8_t* q, float& dx) {
  uint32_t largest = 0;
  for (size_t i = 0; i < length; ++i) largest = std::max(largest, bits_of(flush(x[i])) & kMagnitudeMask);
  const float a = float_of(largest);
  dx = largest >= kHugeBits ? float_of(kNanBits) : flush(a * kInverse127);
  if (largest >= kHugeBits || dx == 0.0f) {
    std::fill_n(q, length, int8_t{0});
    return;
  }
  const float r = 127.0f * reciprocal(a);
  for (size_t i = 0; i < length; ++i)
    q[i] = static_cast<int8_t>(std::clamp(round_half_even(flush(x[i]) * r), -127, 127));
}

void quantize_row_32(const float* x, size_t n, int8_t* q, float* d, int16_t* sums) {
  quantize_row(x, n, 32, 32, q, d, sums);
}

void quantize_row_256(const float* x, size_t n, int8_t* q, float* d, int16_t* sums) {
  quantize_row(x, n, 256, 16, q, d, sums);
}

void flush_row(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; ++i) y[i] = flush(x[i]);
}

}  // namespace spillway::numerics
