// The vector that the product kernels are written in, for AVX2 and F16C: 8 lanes of 32 bits, half a row
// group. Included only by files compiled for that instruction set.
//
// Without a byte dot, products of bytes are added in pairs to 16 bits (maddubs, which saturates) and widened
// by a second multiplication, which takes the sub-block's scale along. How many pair sums 16 bits hold
// depends on the largest weight; weights of 8 bits are taken as magnitude and sign instead.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/unroll.h"

namespace spillway::cpu {
namespace {

struct Avx2 {
  using Int = __m256i;
  using Float = __m256;

  static constexpr int kLanes = 8;
  // Token counts for which a tile is instantiated, descending: an inner and an outer sum per token, a weight
  // with its sign, a scale and a broadcast activation in 16 registers.
  static constexpr int kWidths[] = {4, 1};

  static SW_INLINE Int zero() { return _mm256_setzero_si256(); }
  static SW_INLINE Float zero_float() { return _mm256_setzero_ps(); }
  static SW_INLINE Int load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static SW_INLINE void store(void* p, Int x) { _mm256_storeu_si256(static_cast<__m256i*>(p), x); }
  static SW_INLINE Int splat(int32_t x) { return _mm256_set1_epi32(x); }
  static SW_INLINE Int splat(const int32_t* p) { return _mm256_set1_epi32(*p); }
  static SW_INLINE Float splat(const float* p) { return _mm256_broadcast_ss(p); }
  static SW_INLINE Int load_u16(const uint8_t* p) {
    return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static SW_INLINE Int load_u8(const uint8_t* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static SW_INLINE Float load_f16(const uint8_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }

  static SW_INLINE Int bit_and(Int a, Int b) { return _mm256_and_si256(a, b); }
  static SW_INLINE Int bit_or(Int a, Int b) { return _mm256_or_si256(a, b); }
  static SW_INLINE Int bit_xor(Int a, Int b) { return _mm256_xor_si256(a, b); }
  // (x & mask) | other
  static SW_INLINE Int and_or(Int x, Int mask, Int other) { return bit_or(bit_and(x, mask), other); }
  template <int kN>
  static SW_INLINE Int shl(Int x) {
    return kN == 0 ? x : _mm256_slli_epi32(x, kN);
  }
  template <int kN>
  static SW_INLINE Int shr(Int x) {
    return kN == 0 ? x : _mm256_srli_epi32(x, kN);
  }
  static SW_INLINE Int shr(Int x, int n) { return _mm256_srl_epi32(x, _mm_cvtsi32_si128(n)); }
  template <int kN>
  static SW_INLINE Int sar16(Int x) {
    return _mm256_srai_epi16(x, kN);
  }
  static SW_INLINE Int sub8(Int a, Int b) { return _mm256_sub_epi8(a, b); }
  static SW_INLINE Int add(Int a, Int b) { return _mm256_add_epi32(a, b); }
  static SW_INLINE Int mul(Int a, Int b) { return _mm256_mullo_epi32(a, b); }
  // y where x >= limit, else 0.
  static SW_INLINE Int select_zero_below(Int x, int32_t limit, Int y) {
    return bit_and(_mm256_cmpgt_epi32(x, splat(limit - 1)), y);
  }
  // Byte shuffle of each dword; a byte of `kPattern` is the source byte within the dword, or 0x80 for zero.
  template <uint32_t kPattern>
  static SW_INLINE Int shuffle_dword(Int x) {
    constexpr uint32_t kKeep = ~(((kPattern & 0x80808080u) >> 7) * 0xffu);  // leave 0x80 bytes alone
    constexpr auto kAt = [](uint32_t i) { return static_cast<int>(kPattern + (0x04040404u * i & kKeep)); };
    return _mm256_shuffle_epi8(
        x, _mm256_setr_epi32(kAt(0), kAt(1), kAt(2), kAt(3), kAt(0), kAt(1), kAt(2), kAt(3)));
  }
  // table[nibble] for each byte 0..15.
  static SW_INLINE Int lookup(const uint8_t* table, Int nibbles) {
    return _mm256_shuffle_epi8(
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table))), nibbles);
  }

  static SW_INLINE Float to_float(Int x) { return _mm256_cvtepi32_ps(x); }
  static SW_INLINE Float as_float(Int x) { return _mm256_castsi256_ps(x); }
  static SW_INLINE Float add(Float a, Float b) { return _mm256_add_ps(a, b); }
  static SW_INLINE Float negate(Float x) {
    return _mm256_castsi256_ps(bit_xor(_mm256_castps_si256(x), splat(static_cast<int32_t>(0x80000000u))));
  }
  static SW_INLINE Float mul(Float a, Float b) { return _mm256_mul_ps(a, b); }

  static SW_INLINE void store_float(float* p, Float x) { _mm256_storeu_ps(p, x); }
  // The first n < 8 lanes.
  static SW_INLINE void store_some(float* p, Float x, int n) {
    const Int lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(splat(n), lanes), x);
  }

  // Scales for fold(): the dword's byte kB in both of its words.
  template <int kB>
  static SW_INLINE Int scale_u8(Int x) {
    return shuffle_dword<0x80008000u + 0x00010001u * kB>(x);
  }
  template <int kB>
  static SW_INLINE Int scale_s8(Int x) {
    return _mm256_srai_epi16(shuffle_dword<0x00800080u + 0x01000100u * kB>(x), 8);
  }
  static SW_INLINE Int unit_scale() { return _mm256_set1_epi16(1); }

  // sum += a.word0 * b.word0 + a.word1 * b.word1, signed.
  static SW_INLINE Int dot_words(Int sum, Int a, Int b) { return add(sum, _mm256_madd_epi16(a, b)); }

  // Byte products of weights 0..kMaxU and activations -127..127, as 16-bit pair sums.
  template <int kMaxU>
  struct Bytes {
    static constexpr bool kBiased = true;
    static constexpr int kRun = 32767 / (2 * 127 * kMaxU);
    static_assert(kRun >= 1);
    using Weight = Int;
    static SW_INLINE Weight weight(Int u) { return u; }
    static SW_INLINE Int dot(Int inner, Weight u, Int q) {
      return _mm256_add_epi16(inner, _mm256_maddubs_epi16(u, q));
    }
  };
  static SW_INLINE Int fold(Int outer, Int inner, Int scale) { return dot_words(outer, inner, scale); }
  static constexpr bool kInnerIsSum = false;

  // 16 bytes of each of kLanes rows as four vectors of dwords: lane r of x[w] is dword w of rows[r].
  static SW_INLINE void transpose(const uint8_t* const* rows, size_t offset, Int* x) {
    const auto at = [&](int row) SW_FLAT {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[row] + offset));
    };
    Int y[4];
    unroll<4>([&](auto i)
                  SW_FLAT { y[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(at(i)), at(4 + i), 1); });
    const Int a = _mm256_unpacklo_epi32(y[0], y[1]), b = _mm256_unpackhi_epi32(y[0], y[1]);
    const Int c = _mm256_unpacklo_epi32(y[2], y[3]), d = _mm256_unpackhi_epi32(y[2], y[3]);
    x[0] = _mm256_unpacklo_epi64(a, c), x[1] = _mm256_unpackhi_epi64(a, c);
    x[2] = _mm256_unpacklo_epi64(b, d), x[3] = _mm256_unpackhi_epi64(b, d);
  }
  static constexpr bool kWidePieces = false;  // eight words cost as much as twice four
  // The lower words of the lanes, kLanes * 2 bytes.
  static SW_INLINE void store_u16(uint8_t* p, Int x) {
    const Int packed = _mm256_packus_epi32(bit_and(x, splat(0xffff)), zero());  // in words 0-3 and 8-11
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
  }
};

// Weights of 8 bits with bias 128, as magnitude and sign: 128 * 127 * 2 = 32512 fits in 16 bits, once. The
// values are signed, so there is no bias to take away.
template <>
struct Avx2::Bytes<255> {
  static constexpr bool kBiased = false;
  static constexpr int kRun = 1;
  struct Weight {
    Int magnitude, value;
  };
  static SW_INLINE Weight weight(Int u) {
    const Int value = _mm256_xor_si256(u, _mm256_set1_epi8(static_cast<char>(0x80)));
    return {_mm256_abs_epi8(value), value};
  }
  static SW_INLINE Int dot(Int inner, Weight w, Int q) {
    return _mm256_add_epi16(inner, _mm256_maddubs_epi16(w.magnitude, _mm256_sign_epi8(q, w.value)));
  }
};

}  // namespace
}  // namespace spillway::cpu
