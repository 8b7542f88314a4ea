// The vector that the product kernels are written in, for AVX-512 (F, BW, VL, DQ, VNNI): 16 lanes of 32 bits,
// one row each. Included only by files compiled for that instruction set.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/unroll.h"

namespace spillway::cpu {
namespace {

struct Avx512 {
  using Int = __m512i;
  using Float = __m512;

  static constexpr int kLanes = 16;
  // Token counts for which a tile is instantiated, descending. An inner and an outer sum per token, a weight
  // and a scale: 2 * 12 + 2 of 32 registers.
  static constexpr int kWidths[] = {12, 4, 1};

  static SW_INLINE Int zero() { return _mm512_setzero_si512(); }
  static SW_INLINE Float zero_float() { return _mm512_setzero_ps(); }
  static SW_INLINE Int load(const void* p) { return _mm512_loadu_si512(p); }
  static SW_INLINE void store(void* p, Int x) { _mm512_storeu_si512(p, x); }
  static SW_INLINE Int splat(int32_t x) { return _mm512_set1_epi32(x); }
  static SW_INLINE Int splat(const int32_t* p) { return _mm512_set1_epi32(*p); }
  static SW_INLINE Float splat(const float* p) { return _mm512_set1_ps(*p); }
  static SW_INLINE Int load_u16(const uint8_t* p) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static SW_INLINE Int load_u8(const uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static SW_INLINE Float load_f16(const uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }

  static SW_INLINE Int bit_and(Int a, Int b) { return _mm512_and_si512(a, b); }
  static SW_INLINE Int bit_or(Int a, Int b) { return _mm512_or_si512(a, b); }
  static SW_INLINE Int bit_xor(Int a, Int b) { return _mm512_xor_si512(a, b); }
  // (x & mask) | other
  static SW_INLINE Int and_or(Int x, Int mask, Int other) {
    return _mm512_ternarylogic_epi32(x, mask, other, 0xEA);
  }
  template <int kN>
  static SW_INLINE Int shl(Int x) {
    return kN == 0 ? x : _mm512_slli_epi32(x, kN);
  }
  template <int kN>
  static SW_INLINE Int shr(Int x) {
    return kN == 0 ? x : _mm512_srli_epi32(x, kN);
  }
  static SW_INLINE Int shr(Int x, int n) { return _mm512_srl_epi32(x, _mm_cvtsi32_si128(n)); }
  template <int kN>
  static SW_INLINE Int sar16(Int x) {
    return _mm512_srai_epi16(x, kN);
  }
  static SW_INLINE Int sub8(Int a, Int b) { return _mm512_sub_epi8(a, b); }
  static SW_INLINE Int add(Int a, Int b) { return _mm512_add_epi32(a, b); }
  static SW_INLINE Int mul(Int a, Int b) { return _mm512_mullo_epi32(a, b); }
  // y where x >= limit, else 0.
  static SW_INLINE Int select_zero_below(Int x, int32_t limit, Int y) {
    return _mm512_maskz_mov_epi32(_mm512_cmpge_epi32_mask(x, _mm512_set1_epi32(limit)), y);
  }
  // Byte shuffle of each dword; a byte of `kPattern` is the source byte within the dword, or 0x80 for zero.
  template <uint32_t kPattern>
  static SW_INLINE Int shuffle_dword(Int x) {
    constexpr uint32_t kKeep = ~(((kPattern & 0x80808080u) >> 7) * 0xffu);  // leave 0x80 bytes alone
    constexpr auto kAt = [](uint32_t i) { return static_cast<int>(kPattern + (0x04040404u * i & kKeep)); };
    return _mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(_mm_setr_epi32(kAt(0), kAt(1), kAt(2), kAt(3))));
  }
  // table[nibble] for each byte 0..15.
  static SW_INLINE Int lookup(const uint8_t* table, Int nibbles) {
    return _mm512_shuffle_epi8(
        _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table))), nibbles);
  }

  static SW_INLINE Float to_float(Int x) { return _mm512_cvtepi32_ps(x); }
  static SW_INLINE Float as_float(Int x) { return _mm512_castsi512_ps(x); }
  static SW_INLINE Float add(Float a, Float b) { return _mm512_add_ps(a, b); }
  static SW_INLINE Float negate(Float x) {
    return _mm512_castsi512_ps(bit_xor(_mm512_castps_si512(x), splat(static_cast<int32_t>(0x80000000u))));
  }
  static SW_INLINE Float mul(Float a, Float b) { return _mm512_mul_ps(a, b); }

  static SW_INLINE void store_float(float* p, Float x) { _mm512_storeu_ps(p, x); }
  // The first n < 16 lanes.
  static SW_INLINE void store_some(float* p, Float x, int n) {
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), x);
  }

  // Scales for fold(): the dword's byte kB as a 32-bit integer.
  template <int kB>
  static SW_INLINE Int scale_u8(Int x) {
    return shuffle_dword<0x80808000u + kB>(x);
  }
  template <int kB>
  static SW_INLINE Int scale_s8(Int x) {
    return _mm512_srai_epi32(kB == 3 ? x : _mm512_slli_epi32(x, 24 - 8 * kB), 24);
  }

  // sum += a.word0 * b.word0 + a.word1 * b.word1, signed.
  static SW_INLINE Int dot_words(Int sum, Int a, Int b) { return _mm512_dpwssd_epi32(sum, a, b); }

  // Byte products of weights 0..kMaxU and activations -127..127.
  template <int kMaxU>
  struct Bytes {
    using Weight = Int;
    static constexpr bool kBiased = true;  // the caller takes the bias away
    static constexpr int kRun = 64;        // dots that an inner sum holds exactly before it must be folded
    static SW_INLINE Weight weight(Int u) { return u; }
    static SW_INLINE Int dot(Int inner, Weight u, Int q) { return _mm512_dpbusd_epi32(inner, u, q); }
  };
  static SW_INLINE Int fold(Int outer, Int inner, Int scale) { return add(outer, mul(inner, scale)); }
  static constexpr bool kInnerIsSum = true;  // without scales the inner sum is the result: no fold

  // 16 bytes of each of kLanes rows as four vectors of dwords: lane r of x[w] is dword w of rows[r].
  static SW_INLINE void transpose(const uint8_t* const* rows, size_t offset, Int* x) {
    const auto at = [&](int row) SW_FLAT {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[row] + offset));
    };
    Int y[4];
    unroll<4>([&](auto i) SW_FLAT {
      y[i] = _mm512_castsi128_si512(at(i));
      y[i] = _mm512_inserti32x4(y[i], at(4 + i), 1);
      y[i] = _mm512_inserti32x4(y[i], at(8 + i), 2);
      y[i] = _mm512_inserti32x4(y[i], at(12 + i), 3);
    });
    const Int a = _mm512_unpacklo_epi32(y[0], y[1]), b = _mm512_unpackhi_epi32(y[0], y[1]);
    const Int c = _mm512_unpacklo_epi32(y[2], y[3]), d = _mm512_unpackhi_epi32(y[2], y[3]);
    x[0] = _mm512_unpacklo_epi64(a, c), x[1] = _mm512_unpackhi_epi64(a, c);
    x[2] = _mm512_unpacklo_epi64(b, d), x[3] = _mm512_unpackhi_epi64(b, d);
  }
  // The same for 32 bytes and eight vectors, with half the loads.
  static constexpr bool kWidePieces = true;
  static SW_INLINE void transpose_wide(const uint8_t* const* rows, size_t offset, Int* x) {
    const auto at = [&](int row) SW_FLAT {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[row] + offset));
    };
    Int y[8];  // 128-bit lanes: words 0-3 and 4-7 of a row, the same of the row four further
    unroll<8>([&](auto i) SW_FLAT {
      constexpr int kRow = i % 4 + i / 4 * 8;
      y[i] = _mm512_inserti64x4(_mm512_castsi256_si512(at(kRow)), at(kRow + 4), 1);
    });
    Int z[8];  // z[w]: words w and w + 4 of rows 0-3, of rows 4-7; z[4 + w]: of rows 8-11, of rows 12-15
    unroll<2>([&](auto half) SW_FLAT {
      const Int* v = y + 4 * half;
      const Int a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpackhi_epi32(v[0], v[1]);
      const Int c = _mm512_unpacklo_epi32(v[2], v[3]), d = _mm512_unpackhi_epi32(v[2], v[3]);
      z[4 * half + 0] = _mm512_unpacklo_epi64(a, c), z[4 * half + 1] = _mm512_unpackhi_epi64(a, c);
      z[4 * half + 2] = _mm512_unpacklo_epi64(b, d), z[4 * half + 3] = _mm512_unpackhi_epi64(b, d);
    });
    unroll<4>([&](auto w) SW_FLAT {
      x[w] = _mm512_shuffle_i64x2(z[w], z[4 + w], 0x88);      // lanes 0 and 2 of both
      x[4 + w] = _mm512_shuffle_i64x2(z[w], z[4 + w], 0xdd);  // lanes 1 and 3
    });
  }
  // The lower words of the lanes, kLanes * 2 bytes.
  static SW_INLINE void store_u16(uint8_t* p, Int x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(x));
  }
};

}  // namespace
}  // namespace spillway::cpu
