// The inner kernel of a quantized product: 16 weight rows times a tile of up to kWidth tokens, straight from
// the interleaved record. A lane owns a row; weights are unpacked in registers and met by broadcast
// activations, so that one token and twelve tokens run the same sequence of float operations.
//
// No unpacked copy of the weights is written anywhere: each tile unpacks again. With twelve tokens a quad of
// weights costs two to five steps of unpacking that any vector port can do, and twelve dots that only half of
// them can; a panel of bytes would cost the same dots, and twice the loads of Q4_K.
#pragma once

#include "backend/cpu/product_formats.h"
#include "backend/cpu/product_pack.h"
#include "backend/cpu/product_rows.h"

namespace spillway::cpu {
namespace {

struct TileTask {
  const RowGroup* weights = nullptr;
  const int32_t* activations = nullptr;  // packed, of the tile's width
  uint32_t blocks = 0;
  float* const* out = nullptr;  // `tokens` places for the group's first row
  int tokens = 0;
  int rows = 16;  // rows that exist
};

template <class V, class Format>
constexpr SumForm sum_form() {
  constexpr bool kTakesBias = Format::kBias != 0 && V::template Bytes<Format::kMaxU>::kBiased;
  if (Format::kLength == 32) return {32, kTakesBias ? -Format::kBias : 1, Format::kMinima};
  return {Format::kSub, kTakesBias ? -1 : 1, false};
}

template <class V, class Format, int kWidth>
struct Tile {
  using Int = typename V::Int;
  using Float = typename V::Float;
  using Bytes = typename V::template Bytes<Format::kMaxU>;
  static constexpr int kHalves = 16 / V::kLanes;
  static constexpr int kSegments = Format::kLength == 256 ? 4 : 8;
  static constexpr bool kTakesBias = Format::kBias != 0 && Bytes::kBiased;

  // Adds `count` blocks' terms to main and least.
  static SW_INLINE void add_blocks(Records records, const uint8_t* next, uint32_t count, const int32_t* x,
                                   int first_lane, Float* main_sums, Float* min_sums) {
    constexpr int kPairs = Format::kLength == 32 ? 1 : 128 / Format::kSub;
    constexpr int kSumsAt = Format::kLength / 4 * kWidth, kScaleAt = kSumsAt + kPairs * kWidth;
    Float main[kWidth], least[kWidth];
    unroll<kWidth>([&](auto t) SW_FLAT { main[t] = main_sums[t], least[t] = min_sums[t]; });
    for (uint32_t b = 0; b < count; ++b, records.first += records.stride, x += kScaleAt + kWidth) {
      const RecordAt at(records.first, records.shift, first_lane);
      if (next != nullptr) {
        fetch<16 * Format::kBytes>(next);
        next += 16 * Format::kBytes;
      }
      const auto* dx = reinterpret_cast<const float*>(x + kScaleAt);
      if constexpr (Format::kLength == 32)
        add_simple(at, x, x + kSumsAt, dx, main, least);
      else
        add_super(at, x, x + kSumsAt, dx, main, least);
    }
    unroll<kWidth>([&](auto t) SW_FLAT { main_sums[t] = main[t], min_sums[t] = least[t]; });
  }

  static SW_INLINE void add_simple(const RecordAt& at, const int32_t* x, const int32_t* sums, const float* dx,
                                   Float* main, Float* least) {
    Int total[kWidth], inner[kWidth];
    unroll<kWidth>([&](auto t) SW_FLAT { total[t] = kTakesBias ? V::splat(sums + t) : V::zero(); });
    if constexpr (V::kInnerIsSum) {
      unroll<8>([&](auto i) SW_FLAT {
        const auto w = Bytes::weight(Format::template quad<i>(at, 0));
        unroll<kWidth>([&](auto t)
                           SW_FLAT { total[t] = Bytes::dot(total[t], w, V::splat(x + i * kWidth + t)); });
      });
    } else {
      run_quads<0, 8>(at, 0, x, V::unit_scale(), inner, total);
    }
    const Float d = Format::scale(at);
    unroll<kWidth>([&](auto t) SW_FLAT {
      main[t] = V::add(main[t], V::mul(V::mul(d, V::splat(dx + t)), V::to_float(total[t])));
    });
    if constexpr (Format::kMinima) {
      const Float dm = Format::minimum(at);
      const auto* float_sums = reinterpret_cast<const float*>(sums);
      unroll<kWidth>([&](auto t) SW_FLAT {
        least[t] = V::add(least[t], V::mul(V::mul(dm, V::splat(dx + t)), V::splat(float_sums + t)));
      });
    }
  }

  static SW_INLINE void add_super(const RecordAt& at, const int32_t* x, const int32_t* sums, const float* dx,
                                  Float* main, Float* least) {
    constexpr int kSubs = 256 / Format::kSub / Format::kChunks;  // of a chunk
    constexpr int kQuads = Format::kSub / 4;                     // of a sub-block
    Scales<V, Format::kSub> s;
    Format::scales(at, s);
    Int total[kWidth], inner[kWidth];
    unroll<kWidth>([&](auto t) SW_FLAT { total[t] = V::zero(); });
    if constexpr (Format::kMinima || kTakesBias)
      unroll<128 / Format::kSub>([&](auto p) SW_FLAT {
        unroll<kWidth>([&](auto t) SW_FLAT {
          total[t] = V::dot_words(total[t], s.pairs[p], V::splat(sums + p * kWidth + t));
        });
      });
    if constexpr (Format::kMinima)
      unroll<kWidth>([&](auto t) SW_FLAT {
        least[t] = V::add(least[t], V::mul(V::mul(s.dm, V::splat(dx + t)), V::to_float(total[t])));
        total[t] = V::zero();
      });
    for (int c = 0; c < Format::kChunks; ++c, x += kSubs * kQuads * kWidth)
      unroll<kSubs>([&](auto j) SW_FLAT {
        run_quads<j * kQuads, kQuads>(at, c, x, s.sc[c * kSubs + j], inner, total);
      });
    unroll<kWidth>([&](auto t) SW_FLAT {
      main[t] = V::add(main[t], V::mul(V::mul(s.d, V::splat(dx + t)), V::to_float(total[t])));
    });
  }

  // total += scale * (dots of quads kFirst .. kFirst+kCount-1 of chunk c).
  template <int kFirst, int kCount>
  static SW_INLINE void run_quads(const RecordAt& at, int c, const int32_t* x, Int scale, Int* inner,
                                  Int* total) {
    unroll<kCount>([&](auto i) SW_FLAT {
      constexpr int kI = i;
      const auto w = Bytes::weight(Format::template quad<kFirst + kI>(at, c));
      unroll<kWidth>([&](auto t) SW_FLAT {
        if constexpr (kI % Bytes::kRun == 0) inner[t] = V::zero();
        inner[t] = Bytes::dot(inner[t], w, V::splat(x + (kFirst + kI) * kWidth + t));
        if constexpr (kI % Bytes::kRun == Bytes::kRun - 1 || kI == kCount - 1)
          total[t] = V::fold(total[t], inner[t], scale);
      });
    });
  }

  static SW_INLINE Float tree(const Float (*s)[kWidth], int t) {
    if constexpr (kSegments == 4) return V::add(V::add(s[0][t], s[1][t]), V::add(s[2][t], s[3][t]));
    return V::add(V::add(V::add(s[0][t], s[1][t]), V::add(s[2][t], s[3][t])),
                  V::add(V::add(s[4][t], s[5][t]), V::add(s[6][t], s[7][t])));
  }

  static void run(const TileTask& task) {
    Float main[kHalves][kSegments][kWidth], least[kHalves][kSegments][kWidth];
    const uint32_t per_segment = task.blocks / kSegments + (task.blocks % kSegments != 0);
    constexpr int kBlockWords = packed_block_words(Format::kLength, sum_form<V, Format>()) * kWidth;
    for (uint32_t s = 0, begin = 0; s < kSegments; ++s) {
      for (int h = 0; h < kHalves; ++h)
        unroll<kWidth>([&](auto t)
                           SW_FLAT { main[h][s][t] = V::zero_float(), least[h][s][t] = V::zero_float(); });
      const uint32_t end = begin + per_segment < task.blocks ? begin + per_segment : task.blocks;
      while (begin < end) {
        uint32_t count = end - begin;
        const Records records = task.weights->template take<V, Format>(begin, count);
        for (int h = 0; h < kHalves; ++h)
          add_blocks(records, h == 0 ? task.weights->next_records<Format>(begin) : nullptr, count,
                     task.activations + size_t{begin} * kBlockWords, h * V::kLanes, main[h][s], least[h][s]);
        begin += count;
      }
    }
    for (int t = 0; t < task.tokens; ++t)
      for (int h = 0; h < kHalves; ++h) {
        Float y = tree(main[h], t);
        if constexpr (Format::kMinima) y = V::add(y, tree(least[h], t));
        const int rows = task.rows - h * V::kLanes;
        if (rows >= V::kLanes)
          V::store_float(task.out[t] + h * V::kLanes, y);
        else if (rows > 0)
          V::store_some(task.out[t] + h * V::kLanes, y, rows);
      }
  }
};

}  // namespace
}  // namespace spillway::cpu
