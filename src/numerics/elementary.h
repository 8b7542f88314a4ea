// The elementary functions as written sequences: additions, subtractions and multiplications of float32 with
// one rounding each, compares with selects, and integer operations on bit patterns. The same sequence in SSE,
// AVX or GLSL gives the same bits. Constants are named so that kernels share them.
//
// Errors are stated in units in the last place (ulp) of the float32 result, measured against double libm over
// sweeps in tests/numerics/elementary_test.cc.
//
// An intermediate may be denormal in one place only: where it is then added to a number of order one, which
// absorbs it whether it was flushed or not.
#pragma once

#include "numerics/float_bits.h"

namespace spillway::numerics {

// b where a > b does not hold, so b where either is NaN, and b for equal values; x86's maxps and minps.
constexpr float max_select(float a, float b) { return a > b ? a : b; }
constexpr float min_select(float a, float b) { return a < b ? a : b; }

// ---- reciprocal ----
// The guess is 5.1 % off at most; a Newton step squares that: 2.6e-3, 6.7e-6, 4.5e-11.
inline constexpr uint32_t kReciprocalGuess = 0x7ef30000u;

// 1/x. Requires: 2^-100 <= x <= 2^100, or NaN (which gives NaN). Error below 1.2 ulp.
constexpr float reciprocal(float x) {
  float y = float_of(kReciprocalGuess - bits_of(x));
  y = y + y * (1.0f - x * y);
  y = y + y * (1.0f - x * y);
  y = y + y * (1.0f - x * y);
  return y;
}

// ---- reciprocal square root ----
inline constexpr uint32_t kRsqrtGuess = 0x5f374000u;
inline constexpr float kRsqrtLow = 0x1p-80f;
inline constexpr float kRsqrtHigh = 0x1p100f;

// 1/sqrt(x) with x first clamped to 2^-80..2^100 (so for 0, negatives and +inf too); NaN gives NaN. The guess
// is 3.5 % off at most; steps give 1.8e-3, 5e-6, 4e-11. Error below 1.3 ulp.
constexpr float rsqrt(float x) {
  x = x < kRsqrtLow ? kRsqrtLow : x;
  x = x > kRsqrtHigh ? kRsqrtHigh : x;
  float y = float_of(kRsqrtGuess - (bits_of(x) >> 1));
  y = y + (0.5f * y) * (1.0f - (x * y) * y);
  y = y + (0.5f * y) * (1.0f - (x * y) * y);
  y = y + (0.5f * y) * (1.0f - (x * y) * y);
  return y;
}

// ---- exp ----
// Below kExpLow the result is +0: exp(-41.5) is 2^-59.9, so that a result times a flushed number (2^-40) is
// at least 2^-100 and sums of those cannot cancel into the denormals. Against the largest term of a softmax
// (1), 2^24 terms of that size are 2^-36. Above kExpHigh, and for +inf, the result is exp(88) = 1.65e38.
inline constexpr float kExpLow = -41.5f;
inline constexpr float kExpHigh = 88.0f;
inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2High = 0.693359375f;    // nine bits: times an exponent it is exact
inline constexpr float kLn2Low = -2.12194440e-4f;  // ln 2 minus the above
// exp(r) = 1 + r + r^2 (c2 + c3 r + ...) for |r| <= ln(2)/2: interpolated at Chebyshev nodes, error 0.2 *
// 2^-24.
inline constexpr float kExpC2 = 0x1.000000p-1f;
inline constexpr float kExpC3 = 0x1.5554dcp-3f;
inline constexpr float kExpC4 = 0x1.55551ap-5f;
inline constexpr float kExpC5 = 0x1.120ba2p-7f;
inline constexpr float kExpC6 = 0x1.6d113cp-10f;

// e^x; NaN gives NaN, -inf gives +0. Error below 1.2 ulp between the bounds.
constexpr float exp(float x) {
  const float v = x > kExpHigh ? kExpHigh : x;
  const float n = v * kLog2E + kRoundMagic;  // low bits: the nearest integer, ties to even
  const float k = n - kRoundMagic;
  const float r = (v - k * kLn2High) - k * kLn2Low;
  float p = kExpC6;
  p = p * r + kExpC5;
  p = p * r + kExpC4;
  p = p * r + kExpC3;
  p = p * r + kExpC2;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // 2^k by its exponent bits. For a NaN or a very negative v this is some number: the NaN stays, the rest is
  // replaced.
  const float scale = float_of((bits_of(n) - bits_of(kRoundMagic) + 127u) << 23);
  const float y = p * scale;
  return x < kExpLow ? 0.0f : y;
}

// ---- functions of exp ----
// 1/(1 + e^-x), from e^-|x| so that both ends keep their relative accuracy: +0 below -41.5, 1 above 17. NaN
// gives NaN. Error below 3 ulp.
constexpr float sigmoid(float x) {
  const float e = exp(float_of(bits_of(x) | kSignMask));
  const float s = reciprocal(1.0f + e);
  return x < 0.0f ? e * s : s;
}

// flush(x) * sigmoid(x). -inf gives NaN (inf times 0), +inf gives +inf. Error below 3.5 ulp; -0 or +0 below
// -41.5.
constexpr float silu(float x) {
  const float v = flush(x);
  return v * sigmoid(v);
}

// The tanh form of gelu: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), written as x * sigmoid(twice that).
inline constexpr float kGeluA = 1.59576912f;  // 2 sqrt(2/pi)
inline constexpr float kGeluB = 0.044715f;
constexpr float gelu(float x) {
  const float v = flush(x);
  const float t = (v * kGeluA) * (1.0f + kGeluB * (v * v));
  return v * sigmoid(t);
}

}  // namespace spillway::numerics
