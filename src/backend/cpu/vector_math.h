// The elementary functions of numerics/elementary.h and numerics/float_bits.h over 16 lanes, operation for
// operation. Include one of lanes_avx512.h and lanes_avx2.h before this.
#pragma once

#include "numerics/elementary.h"

namespace spillway::cpu {
namespace {

SW_INLINE F32x16 flush(F32x16 x) {
  const U32x16 magnitude = bits_of(x) & splat(numerics::kMagnitudeMask);
  return keep(!less_magnitude(magnitude, splat(numerics::kFlushBits)), x);
}

SW_INLINE F32x16 reciprocal(F32x16 x) {
  const F32x16 one = splat(1.0f);
  F32x16 y = float_of(splat(numerics::kReciprocalGuess) - bits_of(x));
  y = y + y * (one - x * y);
  y = y + y * (one - x * y);
  y = y + y * (one - x * y);
  return y;
}

SW_INLINE F32x16 rsqrt(F32x16 x) {
  const F32x16 low = splat(numerics::kRsqrtLow), high = splat(numerics::kRsqrtHigh);
  const F32x16 one = splat(1.0f), half = splat(0.5f);
  x = select(less(x, low), low, x);
  x = select(less(high, x), high, x);
  F32x16 y = float_of(splat(numerics::kRsqrtGuess) - shift_right<1>(bits_of(x)));
  y = y + (half * y) * (one - (x * y) * y);
  y = y + (half * y) * (one - (x * y) * y);
  y = y + (half * y) * (one - (x * y) * y);
  return y;
}

SW_INLINE F32x16 exp(F32x16 x) {
  const F32x16 magic = splat(numerics::kRoundMagic);
  const F32x16 v = min_select(splat(numerics::kExpHigh), x);
  const F32x16 n = v * splat(numerics::kLog2E) + magic;
  const F32x16 k = n - magic;
  const F32x16 r = (v - k * splat(numerics::kLn2High)) - k * splat(numerics::kLn2Low);
  F32x16 p = splat(numerics::kExpC6);
  p = p * r + splat(numerics::kExpC5);
  p = p * r + splat(numerics::kExpC4);
  p = p * r + splat(numerics::kExpC3);
  p = p * r + splat(numerics::kExpC2);
  p = p * r + splat(1.0f);
  p = p * r + splat(1.0f);
  const U32x16 exponent = bits_of(n) - splat(numerics::bits_of(numerics::kRoundMagic) - 127u);
  return keep(!less(x, splat(numerics::kExpLow)), p * float_of(shift_left<23>(exponent)));
}

SW_INLINE F32x16 sigmoid(F32x16 x) {
  const F32x16 e = exp(float_of(bits_of(x) | splat(numerics::kSignMask)));
  const F32x16 s = reciprocal(splat(1.0f) + e);
  return select(less(x, zero()), e * s, s);
}

SW_INLINE F32x16 silu(F32x16 x) {
  const F32x16 v = flush(x);
  return v * sigmoid(v);
}

}  // namespace
}  // namespace spillway::cpu
