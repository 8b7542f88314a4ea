// Sixteen float32 or uint32 lanes in two AVX2 registers (F16C for halves): the same operations as
// lanes_avx512.h, where the comments are. lo holds lanes 0..7, hi lanes 8..15.
#pragma once

#include <immintrin.h>

#include <cstdint>

#define SW_INLINE inline __attribute__((always_inline))

namespace spillway::cpu {
namespace {

// Accumulators of 16 lanes: 4 are 8 of the 16 registers; 6 would leave no room for operands of two registers
// each.
constexpr uint32_t kAccumulators = 4;

struct F32x16 {
  __m256 lo, hi;
};
struct U32x16 {
  __m256i lo, hi;
};
struct Mask16 {  // all ones where it holds
  __m256i lo, hi;
};

// ---- lanes and masks ----
SW_INLINE Mask16 first_lanes(uint32_t n) {
  const __m256i count = _mm256_set1_epi32(static_cast<int>(n));
  return {_mm256_cmpgt_epi32(count, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
          _mm256_cmpgt_epi32(count, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15))};
}
SW_INLINE Mask16 even_lanes() {
  const __m256i even = _mm256_setr_epi32(-1, 0, -1, 0, -1, 0, -1, 0);
  return {even, even};
}
SW_INLINE Mask16 operator&(Mask16 a, Mask16 b) {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
SW_INLINE Mask16 operator!(Mask16 a) {
  const __m256i ones = _mm256_set1_epi32(-1);
  return {_mm256_xor_si256(a.lo, ones), _mm256_xor_si256(a.hi, ones)};
}

SW_INLINE F32x16 splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
SW_INLINE U32x16 splat(uint32_t x) {
  return {_mm256_set1_epi32(static_cast<int>(x)), _mm256_set1_epi32(static_cast<int>(x))};
}
SW_INLINE F32x16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }

SW_INLINE F32x16 select(Mask16 mask, F32x16 a, F32x16 b) {
  return {_mm256_blendv_ps(b.lo, a.lo, _mm256_castsi256_ps(mask.lo)),
          _mm256_blendv_ps(b.hi, a.hi, _mm256_castsi256_ps(mask.hi))};
}
SW_INLINE F32x16 keep(Mask16 mask, F32x16 a) {
  return {_mm256_and_ps(_mm256_castsi256_ps(mask.lo), a.lo),
          _mm256_and_ps(_mm256_castsi256_ps(mask.hi), a.hi)};
}

// ---- memory ----
SW_INLINE F32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
SW_INLINE F32x16 load_n(const float* p, uint32_t n) {
  const Mask16 mask = first_lanes(n);
  return {_mm256_maskload_ps(p, mask.lo), _mm256_maskload_ps(p + 8, mask.hi)};
}
SW_INLINE void store(float* p, F32x16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
SW_INLINE void store_n(float* p, F32x16 a, uint32_t n) {
  const Mask16 mask = first_lanes(n);
  _mm256_maskstore_ps(p, mask.lo, a.lo);
  _mm256_maskstore_ps(p + 8, mask.hi, a.hi);
}

SW_INLINE __m128i load_8x16(const uint16_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
SW_INLINE F32x16 load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(load_8x16(p)), _mm256_cvtph_ps(load_8x16(p + 8))};
}
SW_INLINE F32x16 load_f16_n(const uint16_t* p, uint32_t n) {
  uint16_t whole[16] = {};
  for (uint32_t i = 0; i < n; ++i) whole[i] = p[i];
  return load_f16(whole);
}
SW_INLINE void store_f16(uint16_t* p, F32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}
SW_INLINE F32x16 load_bf16(const uint16_t* p) {
  const __m256i lo = _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_8x16(p)), 16);
  const __m256i hi = _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_8x16(p + 8)), 16);
  return {_mm256_castsi256_ps(lo), _mm256_castsi256_ps(hi)};
}
SW_INLINE F32x16 load_bf16_n(const uint16_t* p, uint32_t n) {
  uint16_t whole[16] = {};
  for (uint32_t i = 0; i < n; ++i) whole[i] = p[i];
  return load_bf16(whole);
}
SW_INLINE void store(uint32_t* p, U32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), a.hi);
}

// ---- float arithmetic ----
SW_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
SW_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
SW_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
SW_INLINE Mask16 less(F32x16 a, F32x16 b) {
  return {_mm256_castps_si256(_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
          _mm256_castps_si256(_mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
}
SW_INLINE F32x16 max_select(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
SW_INLINE F32x16 min_select(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}

// ---- bit patterns ----
SW_INLINE U32x16 bits_of(F32x16 a) { return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)}; }
SW_INLINE F32x16 float_of(U32x16 a) { return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)}; }
SW_INLINE U32x16 operator+(U32x16 a, U32x16 b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
SW_INLINE U32x16 operator-(U32x16 a, U32x16 b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
SW_INLINE U32x16 operator&(U32x16 a, U32x16 b) {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
SW_INLINE U32x16 operator|(U32x16 a, U32x16 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
template <int bits>
SW_INLINE U32x16 shift_left(U32x16 a) {
  return {_mm256_slli_epi32(a.lo, bits), _mm256_slli_epi32(a.hi, bits)};
}
template <int bits>
SW_INLINE U32x16 shift_right(U32x16 a) {
  return {_mm256_srli_epi32(a.lo, bits), _mm256_srli_epi32(a.hi, bits)};
}
SW_INLINE Mask16 less_magnitude(U32x16 a, U32x16 b) {
  return {_mm256_cmpgt_epi32(b.lo, a.lo), _mm256_cmpgt_epi32(b.hi, a.hi)};
}
SW_INLINE U32x16 max_magnitude(U32x16 a, U32x16 b) {
  return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)};
}
SW_INLINE F32x16 xor_bits(F32x16 a, U32x16 b) {
  return float_of({_mm256_xor_si256(bits_of(a).lo, b.lo), _mm256_xor_si256(bits_of(a).hi, b.hi)});
}

// ---- to one value ----
SW_INLINE float fold_sum(F32x16 a) {
  const __m256 b = _mm256_add_ps(a.lo, a.hi);
  const __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
SW_INLINE float fold_max(F32x16 a) {
  const __m256 b = _mm256_max_ps(a.lo, a.hi);
  const __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}
SW_INLINE uint32_t fold_max_magnitude(U32x16 a) {
  const __m256i b = _mm256_max_epi32(a.lo, a.hi);
  const __m128i c = _mm_max_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
  const __m128i d = _mm_max_epi32(c, _mm_shuffle_epi32(c, 0x4e));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_max_epi32(d, _mm_shuffle_epi32(d, 0xb1))));
}
SW_INLINE float first(F32x16 a) { return _mm256_cvtss_f32(a.lo); }

// ---- rearrangement ----
SW_INLINE F32x16 swap_pairs(F32x16 a) {
  return {_mm256_permute_ps(a.lo, 0xb1), _mm256_permute_ps(a.hi, 0xb1)};
}
SW_INLINE F32x16 load_twice(const float* p, uint32_t n) {
  const __m256 a = _mm256_maskload_ps(p, first_lanes(n).lo);
  return {_mm256_permutevar8x32_ps(a, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
          _mm256_permutevar8x32_ps(a, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7))};
}

SW_INLINE __m256i round_i8_range(__m256 a) {
  const __m256i q = _mm256_cvtps_epi32(a);
  return _mm256_min_epi32(_mm256_max_epi32(q, _mm256_set1_epi32(-127)), _mm256_set1_epi32(127));
}
SW_INLINE U32x16 store_rounded_i8(int8_t* p, F32x16 a) {
  const U32x16 q = {round_i8_range(a.lo), round_i8_range(a.hi)};
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(q.lo, q.hi), 0xd8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  return q;
}
SW_INLINE int32_t fold_sum(U32x16 a) {
  const __m256i b = _mm256_add_epi32(a.lo, a.hi);
  const __m128i c = _mm_add_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
  const __m128i d = _mm_add_epi32(c, _mm_shuffle_epi32(c, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(d, _mm_shuffle_epi32(d, 0xb1)));
}

SW_INLINE void transpose_8x8(__m256 r[8]) {
  __m256 a[8], b[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {  // b[i + k]: columns k and k+4 of rows i..i+3
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    r[k] = _mm256_permute2f128_ps(b[k], b[k + 4], 0x20);
    r[k + 4] = _mm256_permute2f128_ps(b[k], b[k + 4], 0x31);
  }
}
SW_INLINE void transpose(const F32x16 in[16], F32x16 out[16]) {
  __m256 r[8];
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {  // rows 0..7, then 8..15
#pragma GCC unroll 2
    for (int right = 0; right < 2; ++right) {  // columns 0..7, then 8..15
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) r[i] = right ? in[half * 8 + i].hi : in[half * 8 + i].lo;
      transpose_8x8(r);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) (half ? out[right * 8 + i].hi : out[right * 8 + i].lo) = r[i];
    }
  }
}

}  // namespace
}  // namespace spillway::cpu
