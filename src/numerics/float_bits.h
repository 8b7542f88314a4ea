// Number formats by integer operations, so that every target gives the same bits: half, bfloat16 and
// power-of-two scales to float32, float32 to half, and the flush that keeps denormals out of reach
// (docs/numerics.md).
#pragma once

#include <bit>
#include <cstdint>

namespace spillway::numerics {

inline constexpr uint32_t kSignMask = 0x80000000u;
inline constexpr uint32_t kMagnitudeMask = 0x7fffffffu;
inline constexpr uint32_t kInfinityBits = 0x7f800000u;
inline constexpr uint32_t kNanBits = 0x7fc00000u;          // the NaN that our own rules produce
inline constexpr uint32_t kFlushBits = (127u - 40) << 23;  // 2^-40: smaller magnitudes read as +0
inline constexpr uint32_t kHugeBits = (127u + 100) << 23;  // 2^100: the activation quantizer's upper bound

constexpr uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
constexpr float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }

constexpr bool is_nan(float x) { return (bits_of(x) & kMagnitudeMask) > kInfinityBits; }

// +0 where |x| < 2^-40, else x; NaN and infinities stay. (An integer compare of the magnitude.)
constexpr float flush(float x) {
  const uint32_t bits = bits_of(x);
  return float_of((bits & kMagnitudeMask) < kFlushBits ? 0u : bits);
}

// The nearest integer, ties to even. Requires: |x| <= 2^22, not NaN. Adding 1.5 * 2^23 leaves no fraction
// bits, and the addition's own rounding is the wanted one; the sum's low bits are the integer.
inline constexpr float kRoundMagic = 12582912.0f;
constexpr int32_t round_half_even(float x) {
  return static_cast<int32_t>(bits_of(x + kRoundMagic) - bits_of(kRoundMagic));
}

// IEEE half: 1 sign, 5 exponent (bias 15), 10 fraction bits. A denormal half is normal in float32. Infinities
// stay; a NaN keeps its sign and payload.
constexpr float f16_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t fraction = half & 0x3ffu;
  if (exponent == 31) return float_of(sign | kInfinityBits | (fraction << 13));
  if (exponent != 0) return float_of(sign | ((exponent + 112) << 23) | (fraction << 13));
  if (fraction == 0) return float_of(sign);
  const int shift = std::countl_zero(fraction) - 21;  // brings the leading one to bit 10
  return float_of(sign | (static_cast<uint32_t>(113 - shift) << 23) | (((fraction << shift) & 0x3ffu) << 13));
}

// Round half to even; 65520 and above become infinity; denormal halves are made; below 2^-25 (and 2^-25
// itself) a signed zero. Every NaN becomes the quiet NaN 0x7e00 with its sign.
constexpr uint16_t f32_to_f16(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & kMagnitudeMask;
  if (magnitude > kInfinityBits) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520
  if (magnitude < 0x33000000u) return static_cast<uint16_t>(sign);             // 2^-25
  uint32_t kept;  // the half's exponent and fraction before rounding, with `drop` bits cut off
  uint32_t rest;
  uint32_t halfway;
  if (magnitude >= 0x38800000u) {  // 2^-14: a normal half
    kept = (magnitude >> 13) - (112u << 10);
    rest = magnitude & 0x1fffu;
    halfway = 0x1000u;
  } else {
    const uint32_t drop = 126 - (magnitude >> 23);  // 14..24: one unit of the result is 2^-24
    const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    kept = significand >> drop;
    rest = significand & ((1u << drop) - 1);
    halfway = 1u << (drop - 1);
  }
  if (rest > halfway || (rest == halfway && (kept & 1u) != 0))
    ++kept;  // may carry into the exponent, as it should
  return static_cast<uint16_t>(sign | kept);
}

// bfloat16 is the upper half of a float32.
constexpr float bf16_to_f32(uint16_t half) { return float_of(static_cast<uint32_t>(half) << 16); }

// MXFP4's block scale, an exponent byte: 2^(e - 128) (half of the format's 2^(e-127), because our table of
// values is doubled). e = 0 and 1 would be denormal. 255, the OCP specification's NaN, counts as an ordinary
// exponent, as ggml has it.
constexpr float e8m0_half_to_f32(uint8_t e) {
  return float_of(e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23);
}

}  // namespace spillway::numerics
