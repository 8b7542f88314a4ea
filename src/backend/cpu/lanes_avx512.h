// Sixteen float32 or uint32 lanes in one AVX-512 register. lanes_avx2.h has the same operations; the
// vector_*.h headers are written in terms of them and compiled once per instruction set.
//
// Everything lies in an unnamed namespace and is inlined: no function compiled for this instruction set may
// be the linker's pick for code that runs on every processor.
#pragma once

#include <immintrin.h>

#include <cstdint>

#define SW_INLINE inline __attribute__((always_inline))

namespace spillway::cpu {
namespace {

// How many 16-lane accumulators a kernel may keep in registers, with room left for operands: 24 of 32.
constexpr uint32_t kAccumulators = 24;

struct F32x16 {
  __m512 v;
};
struct U32x16 {
  __m512i v;
};
struct Mask16 {
  __mmask16 v;
};

// ---- lanes and masks ----
SW_INLINE Mask16 first_lanes(uint32_t n) { return {static_cast<__mmask16>((1u << n) - 1)}; }  // n <= 16
SW_INLINE Mask16 even_lanes() { return {0x5555}; }
SW_INLINE Mask16 operator&(Mask16 a, Mask16 b) { return {static_cast<__mmask16>(a.v & b.v)}; }
SW_INLINE Mask16 operator!(Mask16 a) { return {static_cast<__mmask16>(~a.v)}; }

SW_INLINE F32x16 splat(float x) { return {_mm512_set1_ps(x)}; }
SW_INLINE U32x16 splat(uint32_t x) { return {_mm512_set1_epi32(static_cast<int>(x))}; }
SW_INLINE F32x16 zero() { return {_mm512_setzero_ps()}; }

// Lanes where the mask holds from a, else from b.
SW_INLINE F32x16 select(Mask16 mask, F32x16 a, F32x16 b) { return {_mm512_mask_blend_ps(mask.v, b.v, a.v)}; }
// Lanes where the mask holds, else +0.
SW_INLINE F32x16 keep(Mask16 mask, F32x16 a) { return {_mm512_maskz_mov_ps(mask.v, a.v)}; }

// ---- memory; the _n forms touch the first n <= 16 elements only and read +0 for the others ----
SW_INLINE F32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
SW_INLINE F32x16 load_n(const float* p, uint32_t n) { return {_mm512_maskz_loadu_ps(first_lanes(n).v, p)}; }
SW_INLINE void store(float* p, F32x16 a) { _mm512_storeu_ps(p, a.v); }
SW_INLINE void store_n(float* p, F32x16 a, uint32_t n) { _mm512_mask_storeu_ps(p, first_lanes(n).v, a.v); }

// Halves, exact to float32; and back, rounded half to even.
SW_INLINE F32x16 load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
SW_INLINE F32x16 load_f16_n(const uint16_t* p, uint32_t n) {
  return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(n).v, p))};
}
SW_INLINE void store_f16(uint16_t* p, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
SW_INLINE F32x16 load_bf16(const uint16_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
SW_INLINE F32x16 load_bf16_n(const uint16_t* p, uint32_t n) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first_lanes(n).v, p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
SW_INLINE void store(uint32_t* p, U32x16 a) { _mm512_storeu_si512(p, a.v); }

// ---- float arithmetic, one rounding each ----
SW_INLINE F32x16 operator+(F32x16 a, F32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
SW_INLINE F32x16 operator-(F32x16 a, F32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
SW_INLINE F32x16 operator*(F32x16 a, F32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
SW_INLINE Mask16 less(F32x16 a, F32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
// b where the comparison does not hold, as numerics::max_select and min_select.
SW_INLINE F32x16 max_select(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }
SW_INLINE F32x16 min_select(F32x16 a, F32x16 b) { return {_mm512_min_ps(a.v, b.v)}; }

// ---- bit patterns ----
SW_INLINE U32x16 bits_of(F32x16 a) { return {_mm512_castps_si512(a.v)}; }
SW_INLINE F32x16 float_of(U32x16 a) { return {_mm512_castsi512_ps(a.v)}; }
SW_INLINE U32x16 operator+(U32x16 a, U32x16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
SW_INLINE U32x16 operator-(U32x16 a, U32x16 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
SW_INLINE U32x16 operator&(U32x16 a, U32x16 b) { return {_mm512_and_si512(a.v, b.v)}; }
SW_INLINE U32x16 operator|(U32x16 a, U32x16 b) { return {_mm512_or_si512(a.v, b.v)}; }
template <int bits>
SW_INLINE U32x16 shift_left(U32x16 a) {
  return {_mm512_slli_epi32(a.v, bits)};
}
template <int bits>
SW_INLINE U32x16 shift_right(U32x16 a) {
  return {_mm512_srli_epi32(a.v, bits)};
}
// For values below 2^31 (magnitudes of floats).
SW_INLINE Mask16 less_magnitude(U32x16 a, U32x16 b) { return {_mm512_cmplt_epi32_mask(a.v, b.v)}; }
SW_INLINE U32x16 max_magnitude(U32x16 a, U32x16 b) { return {_mm512_max_epi32(a.v, b.v)}; }
SW_INLINE F32x16 xor_bits(F32x16 a, U32x16 b) { return float_of({_mm512_xor_si512(bits_of(a).v, b.v)}); }

// ---- to one value ----
// Folds by halves: l + (l+8), l + (l+4), l + (l+2), l + (l+1).
SW_INLINE float fold_sum(F32x16 a) {
  const __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
// Requires: no NaN.
SW_INLINE float fold_max(F32x16 a) {
  const __m256 b = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}
SW_INLINE uint32_t fold_max_magnitude(U32x16 a) {
  return static_cast<uint32_t>(_mm512_reduce_max_epi32(a.v));
}
SW_INLINE float first(F32x16 a) { return _mm512_cvtss_f32(a.v); }

// ---- rearrangement ----
// Lanes 2i and 2i+1 exchanged.
SW_INLINE F32x16 swap_pairs(F32x16 a) { return {_mm512_permute_ps(a.v, 0xb1)}; }
// p[0] p[0] p[1] p[1] ... from the first n <= 8 values.
SW_INLINE F32x16 load_twice(const float* p, uint32_t n) {
  const __m512 a = _mm512_castps256_ps512(_mm256_maskz_loadu_ps(static_cast<__mmask8>((1u << n) - 1), p));
  return {_mm512_permutexvar_ps(_mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0), a)};
}

// Rounds 16 floats (|x| < 2^31) to the nearest integers, ties to even, and stores them as int8, clamped to
// -127..127. Returns the integers.
SW_INLINE U32x16 store_rounded_i8(int8_t* p, F32x16 a) {
  __m512i q = _mm512_cvtps_epi32(a.v);
  q = _mm512_min_epi32(_mm512_max_epi32(q, _mm512_set1_epi32(-127)), _mm512_set1_epi32(127));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(q));
  return {q};
}
SW_INLINE int32_t fold_sum(U32x16 a) { return _mm512_reduce_add_epi32(a.v); }

// out[c] (c = 0..15) holds element c of the 16 registers.
SW_INLINE void transpose(const F32x16 in[16], F32x16 out[16]) {
  __m512 a[16], b[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_ps(in[i].v, in[i + 1].v);
    a[i + 1] = _mm512_unpackhi_ps(in[i].v, in[i + 1].v);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {  // b[i + k]: columns k, k+4, k+8, k+12 of rows i..i+3
    b[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a[i]), _mm512_castps_pd(a[i + 2])));
    b[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a[i]), _mm512_castps_pd(a[i + 2])));
    b[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a[i + 1]), _mm512_castps_pd(a[i + 3])));
    b[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a[i + 1]), _mm512_castps_pd(a[i + 3])));
  }
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const __m512 low_even = _mm512_shuffle_f32x4(b[k], b[k + 4], 0x88);  // columns k, k+8
    const __m512 low_odd = _mm512_shuffle_f32x4(b[k], b[k + 4], 0xdd);   // columns k+4, k+12
    const __m512 high_even = _mm512_shuffle_f32x4(b[k + 8], b[k + 12], 0x88);
    const __m512 high_odd = _mm512_shuffle_f32x4(b[k + 8], b[k + 12], 0xdd);
    out[k] = {_mm512_shuffle_f32x4(low_even, high_even, 0x88)};
    out[k + 8] = {_mm512_shuffle_f32x4(low_even, high_even, 0xdd)};
    out[k + 4] = {_mm512_shuffle_f32x4(low_odd, high_odd, 0x88)};
    out[k + 12] = {_mm512_shuffle_f32x4(low_odd, high_odd, 0xdd)};
  }
}

}  // namespace
}  // namespace spillway::cpu
