// Activations of a tile of tokens, rearranged so that a kernel reads one ascending stream: for each block,
// the dwords of four q values of all tokens side by side, then the sums, then the scales. In dwords, for
// `width` tokens:
//
//   kQ32    8 x width   q          | width  sum, as the format wants it (SumForm)          | width  dx
//   (float) kQ256  64 x width   q          | pairs x width  two int16 sums, of sub-blocks 2i, 2i+1 | width dx
//   (float)
//
// Widths are 1 or multiples of 4: four tokens are packed together, as 4 x 4 transposes of dwords.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels.h"
#include "backend/cpu/unroll.h"

namespace spillway::cpu {
namespace {

struct SumForm {
  int values = 32;  // values per sum: 16 or 32
  int factor = 1;   // sums are multiplied by this: -1 (kQ256) or -bias (kQ32) where they take the bias away
  bool as_float = false;  // kQ32 with minima
};

// Dwords of a token's block of `length` values.
constexpr int packed_block_words(int length, SumForm form) {
  return length / 4 + (length == 32 ? 1 : 128 / form.values) + 1;
}

// Rows of one token.
struct TokenRows {
  const int8_t* q;
  const int16_t* sums;
  const float* d;
};

template <int kLength, SumForm kForm>
struct Packer {
  static constexpr int kQuads = kLength / 4;
  static constexpr int kPairs = kLength == 32 ? 1 : 128 / kForm.values;  // dwords of sums
  static constexpr int kSums = kLength == 32 ? 1 : 16;                   // of a block, as they come

  // `count` tokens from the `first` of the set on; places past `count` repeat the last one.
  static void pack(const Activations& x, TokenSet tokens, uint32_t first, uint32_t count, int width,
                   int32_t* to) {
    const uint32_t blocks = x.cols / kLength;
    TokenRows rows[4];
    for (int t = 0; t < width; t += 4) {
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t place =
            static_cast<uint32_t>(t) + i < count ? static_cast<uint32_t>(t) + i : count - 1;
        const size_t token = tokens.index != nullptr ? tokens.index[first + place] : first + place;
        rows[i] = {x.q + token * x.cols, x.sums + token * blocks * kSums, x.d + token * blocks};
      }
      if (width == 1)
        pack_one(rows[0], blocks, to);
      else
        pack_four(rows, blocks, width, to + t);
    }
  }

 private:
  // The sums of block b, as the record wants them, in the first kPairs dwords.
  static SW_INLINE __m256i block_sums(const int16_t* sums) {
    __m256i s = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums));
    if constexpr (kForm.factor == -1) s = _mm256_sub_epi16(_mm256_setzero_si256(), s);
    if constexpr (kForm.values == 32) {  // add neighbours, back to 16 bits: at most 32 * 127 each
      s = _mm256_madd_epi16(s, _mm256_set1_epi16(1));
      s = _mm256_permute4x64_epi64(_mm256_packs_epi32(s, s), 0x08);
    }
    return s;
  }

  // The sums of four blocks of 32 as four dwords.
  static SW_INLINE __m128i four_sums(const int16_t* sums) {
    __m128i s = _mm_cvtepi16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(sums)));
    s = _mm_mullo_epi32(s, _mm_set1_epi32(kForm.factor));
    return kForm.as_float ? _mm_castps_si128(_mm_cvtepi32_ps(s)) : s;
  }

  static int32_t one_sum(int16_t sum) {
    const int32_t s = sum * kForm.factor;
    if (!kForm.as_float) return s;
    int32_t bits;
    const auto f = static_cast<float>(s);
    std::memcpy(&bits, &f, 4);
    return bits;
  }

  static void pack_one(const TokenRows& row, uint32_t blocks, int32_t* to) {
    for (uint32_t b = 0; b < blocks; ++b) {
      std::memcpy(to, row.q + size_t{b} * kLength, kLength);
      to += kQuads;
      if constexpr (kLength == 32) {
        *to = one_sum(row.sums[b]);
      } else {
        alignas(32) int32_t sums[8];
        _mm256_store_si256(reinterpret_cast<__m256i*>(sums), block_sums(row.sums + size_t{b} * kSums));
        std::memcpy(to, sums, 4 * kPairs);
      }
      to += kPairs;
      std::memcpy(to++, row.d + b, 4);
    }
  }

  // Four vectors of four dwords, transposed, to to[0..3], to[step], to[2 step], to[3 step].
  static SW_INLINE void transpose(const __m128i* r, int32_t* to, size_t step) {
    const __m128i a = _mm_unpacklo_epi32(r[0], r[1]), b = _mm_unpackhi_epi32(r[0], r[1]);
    const __m128i c = _mm_unpacklo_epi32(r[2], r[3]), d = _mm_unpackhi_epi32(r[2], r[3]);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi64(a, c));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + step), _mm_unpackhi_epi64(a, c));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * step), _mm_unpacklo_epi64(b, d));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 3 * step), _mm_unpackhi_epi64(b, d));
  }

  static void pack_four(const TokenRows* rows, uint32_t blocks, int width, int32_t* to) {
    const auto w = static_cast<size_t>(width);
    const size_t step = w * (kQuads + kPairs + 1);
    __m128i r[4];
    for (uint32_t b = 0; b < blocks; ++b, to += step) {
      for (int c = 0; c < kQuads; c += 4) {
        unroll<4>([&](auto i) SW_FLAT {
          r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[i].q + size_t{b} * kLength + 4 * c));
        });
        transpose(r, to + static_cast<size_t>(c) * w, w);
      }
      if constexpr (kLength == 256) {
        __m256i s[4];
        unroll<4>([&](auto i) SW_FLAT { s[i] = block_sums(rows[i].sums + size_t{b} * kSums); });
        unroll<4>([&](auto i) SW_FLAT { r[i] = _mm256_castsi256_si128(s[i]); });
        transpose(r, to + kQuads * w, w);
        if constexpr (kPairs == 8) {
          unroll<4>([&](auto i) SW_FLAT { r[i] = _mm256_extracti128_si256(s[i], 1); });
          transpose(r, to + (kQuads + 4) * w, w);
        }
        for (size_t i = 0; i < 4; ++i) std::memcpy(to + (kQuads + kPairs) * w + i, rows[i].d + b, 4);
      } else if (b % 4 == 0 && b + 4 <= blocks) {  // sums and scales of four blocks at once
        unroll<4>([&](auto i) SW_FLAT { r[i] = four_sums(rows[i].sums + b); });
        transpose(r, to + kQuads * w, step);
        unroll<4>([&](auto i)
                      SW_FLAT { r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[i].d + b)); });
        transpose(r, to + (kQuads + 1) * w, step);
      } else if (b >= blocks / 4 * 4) {
        for (size_t i = 0; i < 4; ++i) {
          to[kQuads * w + i] = one_sum(rows[i].sums[b]);
          std::memcpy(to + (kQuads + 1) * w + i, rows[i].d + b, 4);
        }
      }
    }
  }
};

}  // namespace
}  // namespace spillway::cpu
