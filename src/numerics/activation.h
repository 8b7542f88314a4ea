// The activation quantizer: float32 rows to int8 blocks with a float32 scale and sums (docs/numerics.md). The
// only lossy step of a quantized product.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spillway::numerics {

inline constexpr float kInverse127 = 1.0f / 127.0f;  // rounded to float32 once, here

// One block of `length` values (32 or 256): a = the largest |flush(x)|, compared as integers.
//   a >= 2^100 (so for an infinity or a NaN too): dx = NaN, q = 0
//   else dx = flush(a * (1/127)); where that is 0, q = 0
//   else q = clamp(round_half_even(flush(x) * (127 * reciprocal(a))), -127, 127)
void quantize_block(const float* x, size_t length, int8_t* q, float& dx);

// A row of n values in blocks of L: q (n), d (n/L), and the sums of q over each 16 values for L = 256 (n/16)
// or over the block for L = 32 (n/32). Requires: n % L == 0.
void quantize_row_32(const float* x, size_t n, int8_t* q, float* d, int16_t* sums);
void quantize_row_256(const float* x, size_t n, int8_t* q, float* d, int16_t* sums);

// The activations of F32, F16 and BF16 weights: y = flush(x). y may be x.
void flush_row(const float* x, size_t n, float* y);

}  // namespace spillway::numerics
