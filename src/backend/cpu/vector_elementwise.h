// The activation quantizer, norms, softmax, rope, gates and adds over 16 lanes. Each is its numerics/
// definition with lane i mod 16 in the place of value i; the ends of a row use the loads and stores of n < 16
// values, whose other lanes are +0 (which adds nothing to a sum from +0).
#pragma once

#include "backend/cpu/kernels.h"
#include "numerics/activation.h"

namespace spillway::cpu {
namespace {

// Calls whole(i) for each i = 0, 16, ... with 16 values left, then rest(i, n) for the last n < 16.
template <class Whole, class Rest>
SW_INLINE void for_lanes(uint32_t count, Whole whole, Rest rest) {
  uint32_t i = 0;
  for (; count - i >= 16; i += 16) whole(i);
  if (i < count) rest(i, count - i);
}

void quantize_f32(const float* x, uint32_t count, float* y) {
  for_lanes(
      count, [=](uint32_t i) { store(y + i, flush(load(x + i))); },
      [=](uint32_t i, uint32_t n) { store_n(y + i, flush(load_n(x + i, n)), n); });
}

// Blocks of kLength values; sums of q over each kSumLength.
template <uint32_t kLength, uint32_t kSumLength>
void quantize_blocks(const float* x, uint32_t blocks, int8_t* q, float* d, int16_t* sums) {
  constexpr uint32_t kRegisters = kLength / 16;
  for (uint32_t b = 0; b < blocks; ++b, x += kLength, q += kLength, sums += kLength / kSumLength) {
    U32x16 largest = splat(0u);
#pragma GCC unroll 16
    for (uint32_t k = 0; k < kRegisters; ++k)
      largest = max_magnitude(largest, bits_of(load(x + k * 16)) & splat(numerics::kMagnitudeMask));
    const uint32_t a = fold_max_magnitude(largest);
    const F32x16 amax = flush(float_of(splat(a)));
    const float dx = first(flush(amax * splat(numerics::kInverse127)));
    if (a >= numerics::kHugeBits || dx == 0.0f) {
      d[b] = dx == 0.0f ? 0.0f : __builtin_nanf("");
#pragma GCC unroll 16
      for (uint32_t k = 0; k < kRegisters; ++k) store_rounded_i8(q + k * 16, zero());
      for (uint32_t k = 0; k < kLength / kSumLength; ++k) sums[k] = 0;
      continue;
    }
    d[b] = dx;
    const F32x16 r = splat(127.0f) * reciprocal(amax);
    U32x16 sum = splat(0u);
#pragma GCC unroll 16
    for (uint32_t k = 0; k < kRegisters; ++k) {
      const U32x16 value = store_rounded_i8(q + k * 16, flush(load(x + k * 16)) * r);
      sum = k * 16 % kSumLength == 0 ? value : sum + value;
      if ((k + 1) * 16 % kSumLength == 0) sums[k * 16 / kSumLength] = static_cast<int16_t>(fold_sum(sum));
    }
  }
}

void quantize(const float* x, const Activations& to, uint32_t token) {
  const size_t at = size_t{token} * to.cols;
  switch (to.kind) {
    case ActivationKind::kF32:
      return quantize_f32(x, to.cols, to.f32 + at);
    case ActivationKind::kQ32:
      return quantize_blocks<32, 32>(x, to.cols / 32, to.q + at, to.d + at / 32, to.sums + at / 32);
    case ActivationKind::kQ256:
      return quantize_blocks<256, 16>(x, to.cols / 256, to.q + at, to.d + at / 256, to.sums + at / 16);
  }
}

void rms_norm(const float* x, const float* w, uint32_t count, float eps, float* y) {
  F32x16 lanes = zero();
  const auto add_square = [&](F32x16 v) { lanes = lanes + flush(v) * flush(v); };
  for_lanes(
      count, [&](uint32_t i) { add_square(load(x + i)); },
      [&](uint32_t i, uint32_t n) { add_square(load_n(x + i, n)); });
  const auto inverse = static_cast<float>(1.0 / count);
  const F32x16 s = rsqrt(splat(fold_sum(lanes)) * splat(inverse) + splat(eps));
  if (w == nullptr) {
    for_lanes(
        count, [=](uint32_t i) { store(y + i, flush(flush(load(x + i)) * s)); },
        [=](uint32_t i, uint32_t n) { store_n(y + i, flush(flush(load_n(x + i, n)) * s), n); });
    return;
  }
  for_lanes(
      count, [=](uint32_t i) { store(y + i, flush((flush(load(x + i)) * s) * flush(load(w + i)))); },
      [=](uint32_t i, uint32_t n) {
        store_n(y + i, flush((flush(load_n(x + i, n)) * s) * flush(load_n(w + i, n))), n);
      });
}

// Any maximum of the values that are no NaN; -inf where there is none.
float max_of(const float* x, uint32_t count) {
  const F32x16 lowest = splat(-__builtin_inff());
  F32x16 m = lowest;
  for_lanes(
      count, [&](uint32_t i) { m = max_select(load(x + i), m); },
      [&](uint32_t i, uint32_t n) { m = max_select(select(first_lanes(n), load_n(x + i, n), lowest), m); });
  return fold_max(m);
}

void softmax(float* x, uint32_t count) {
  const F32x16 m = splat(max_of(x, count));
  F32x16 lanes = zero();
  for_lanes(
      count,
      [&](uint32_t i) {
        const F32x16 p = exp(load(x + i) - m);
        lanes = lanes + p;
        store(x + i, p);
      },
      [&](uint32_t i, uint32_t n) {
        const F32x16 p = keep(first_lanes(n), exp(load_n(x + i, n) - m));
        lanes = lanes + p;
        store_n(x + i, p, n);
      });
  const F32x16 r = reciprocal(splat(fold_sum(lanes)));
  for_lanes(
      count, [=](uint32_t i) { store(x + i, load(x + i) * r); },
      [=](uint32_t i, uint32_t n) { store_n(x + i, load_n(x + i, n) * r, n); });
}

void rope_neox(float* x, uint32_t n_heads, uint32_t head_length, uint32_t rope_length, const float* cos,
               const float* sin) {
  const uint32_t pairs = rope_length / 2;
  for (uint32_t h = 0; h < n_heads; ++h, x += head_length) {
    float* y = x + pairs;
    for_lanes(
        pairs,
        [=](uint32_t i) {
          const F32x16 a = flush(load(x + i)), b = flush(load(y + i)), c = load(cos + i), s = load(sin + i);
          store(x + i, a * c - b * s);
          store(y + i, a * s + b * c);
        },
        [=](uint32_t i, uint32_t n) {
          const F32x16 a = flush(load_n(x + i, n)), b = flush(load_n(y + i, n));
          const F32x16 c = load_n(cos + i, n), s = load_n(sin + i, n);
          store_n(x + i, a * c - b * s, n);
          store_n(y + i, a * s + b * c, n);
        });
  }
}

void rope_normal(float* x, uint32_t n_heads, uint32_t head_length, uint32_t rope_length, const float* cos,
                 const float* sin) {
  // Even lanes: a*c - b*s; odd lanes: b*c + a*s. A difference is the sum with the product's sign turned.
  const U32x16 signs = bits_of(select(even_lanes(), splat(-0.0f), zero()));
  const auto turn = [=](F32x16 v, F32x16 c, F32x16 s) { return v * c + xor_bits(swap_pairs(v) * s, signs); };
  for (uint32_t h = 0; h < n_heads; ++h, x += head_length)
    for_lanes(
        rope_length,
        [=](uint32_t i) {
          store(x + i, turn(flush(load(x + i)), load_twice(cos + i / 2, 8), load_twice(sin + i / 2, 8)));
        },
        [=](uint32_t i, uint32_t n) {
          const F32x16 c = load_twice(cos + i / 2, n / 2), s = load_twice(sin + i / 2, n / 2);
          store_n(x + i, turn(flush(load_n(x + i, n)), c, s), n);
        });
}

void silu_mul(float* gate, const float* up, uint32_t count) {
  for_lanes(
      count, [=](uint32_t i) { store(gate + i, silu(load(gate + i)) * flush(load(up + i))); },
      [=](uint32_t i, uint32_t n) {
        store_n(gate + i, silu(load_n(gate + i, n)) * flush(load_n(up + i, n)), n);
      });
}

void add(float* y, const float* x, uint32_t count) {
  for_lanes(
      count, [=](uint32_t i) { store(y + i, load(y + i) + load(x + i)); },
      [=](uint32_t i, uint32_t n) { store_n(y + i, load_n(y + i, n) + load_n(x + i, n), n); });
}

void add_scaled(float* y, const float* x, float scale, uint32_t count) {
  const F32x16 s = flush(splat(scale));
  for_lanes(
      count, [=](uint32_t i) { store(y + i, load(y + i) + s * flush(load(x + i))); },
      [=](uint32_t i, uint32_t n) { store_n(y + i, load_n(y + i, n) + s * flush(load_n(x + i, n)), n); });
}

}  // namespace
}  // namespace spillway::cpu
