// Activations of a tile of tokens, rearranged so that a kernel reads one ascending stream: for each block,
// the dwords of four q values of all tokens side by side, then the sums, then the scales. In dwords, for
// `width` tokens:
//
//   kQ32    8 x width   q          | width  sum, as the format wants it (SumForm)          | width  dx
//   (float) kQ256  64 x width   q          | pairs x width  two int16 sums, of sub-blocks 2i, 2i+1 | width dx
//   (float)
//
// Packing costs about one step per dword, the product one dot per dword and row group: it pays from a few
// groups on.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels.h"

namespace spillway::cpu {
namespace {

struct SumForm {
  int values = 32;  // values per sum: 16 or 32
  int factor = 1;   // sums are multiplied by this: -1 (kQ256) or -bias (kQ32) where they take the bias away
  bool as_float = false;  // kQ32 with minima
};

// V only keeps the instantiations of different instruction sets apart.
template <class V>
struct Packer {
  static int block_words(int block_length, SumForm form) {
    return block_length / 4 + (block_length == 32 ? 1 : 128 / form.values) + 1;
  }

  // Tokens first .. first+count-1 of the set; places past `count` repeat the last one.
  static void pack(const Activations& x, TokenSet tokens, uint32_t first, uint32_t count, int width,
                   SumForm form, int32_t* to) {
    const int length = x.kind == ActivationKind::kQ256 ? 256 : 32;
    const uint32_t blocks = x.cols / static_cast<uint32_t>(length);
    const int step = block_words(length, form) * width;
    for (int t = 0; t < width; t += 4) {
      const int n = width - t < 4 ? width - t : 4;
      const int8_t* q[4];
      for (int i = 0; i < n; ++i) {
        const uint32_t place =
            static_cast<uint32_t>(t + i) < count ? static_cast<uint32_t>(t + i) : count - 1;
        const size_t token = tokens.index != nullptr ? tokens.index[first + place] : first + place;
        q[i] = x.q + token * x.cols;
        pack_small(x, token, t + i, width, form, to);
      }
      int32_t* block = to;
      for (uint32_t b = 0; b < blocks; ++b, block += step) {
        const size_t at = size_t{b} * static_cast<size_t>(length);
        if (n == 4) {
          for (int c = 0; c < length / 4; c += 4)
            transpose4(q, at + static_cast<size_t>(4 * c), block + c * width + t, width);
        } else if (width == 1) {
          std::memcpy(block, q[0] + at, static_cast<size_t>(length));
        } else {
          for (int i = 0; i < n; ++i)
            for (int c = 0; c < length / 4; ++c) std::memcpy(block + c * width + t + i, q[i] + at + 4 * c, 4);
        }
      }
    }
  }

 private:
  static void transpose4(const int8_t* const* q, size_t at, int32_t* to, int width) {
    __m128i r[4];
    for (int i = 0; i < 4; ++i) r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q[i] + at));
    const __m128i a = _mm_unpacklo_epi32(r[0], r[1]), b = _mm_unpackhi_epi32(r[0], r[1]);
    const __m128i c = _mm_unpacklo_epi32(r[2], r[3]), d = _mm_unpackhi_epi32(r[2], r[3]);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi64(a, c));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + width), _mm_unpackhi_epi64(a, c));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * width), _mm_unpacklo_epi64(b, d));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 3 * width), _mm_unpackhi_epi64(b, d));
  }

  // The sums and scales of one token.
  static void pack_small(const Activations& x, size_t token, int t, int width, SumForm form, int32_t* to) {
    const int length = x.kind == ActivationKind::kQ256 ? 256 : 32;
    const uint32_t blocks = x.cols / static_cast<uint32_t>(length);
    const int sums_at = length / 4, pairs = length == 32 ? 1 : 128 / form.values;
    const int step = (sums_at + pairs + 1) * width;
    const int16_t* sums = x.sums + token * (x.cols / (length == 32 ? 32u : 16u));
    const float* d = x.d + token * blocks;
    for (uint32_t b = 0; b < blocks; ++b, to += step) {
      std::memcpy(to + (sums_at + pairs) * width + t, d + b, 4);
      int32_t* place = to + sums_at * width + t;
      if (length == 32) {
        const int32_t sum = sums[b] * form.factor;
        const auto as_float = static_cast<float>(sum);
        std::memcpy(place, form.as_float ? static_cast<const void*>(&as_float) : &sum, 4);
        continue;
      }
      for (int i = 0; i < pairs; ++i, place += width) {
        int lo, hi;
        if (form.values == 16) {
          lo = sums[0], hi = sums[1], sums += 2;
        } else {
          lo = sums[0] + sums[1], hi = sums[2] + sums[3], sums += 4;
        }
        *place = static_cast<int32_t>((static_cast<uint32_t>(lo * form.factor) & 0xffffu) |
                                      static_cast<uint32_t>(hi * form.factor) << 16);
      }
    }
  }
};

}  // namespace
}  // namespace spillway::cpu
