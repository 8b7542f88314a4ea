// Products of F32, F16 and BF16 matrices over 16 lanes: a lane owns a row (docs/numerics.md, "Order of a
// row's sum").
//
// A row's sum is eight chains, one per segment, and a chain waits for its own additions. So a tile of tokens
// (and, for many tokens, of two groups of rows) runs as many segments side by side as there are registers:
// one token has eight chains from its segments, eight tokens times two groups have sixteen in one segment and
// load each weight once for eight tokens and each activation once for 32 rows.
//
// Rows in file layout, and all rows when there are many tokens, are first widened and flushed into a panel
// [column][16 rows] in scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels.h"

namespace spillway::cpu {
namespace {

constexpr uint32_t kFloatSegments = 8;

// Where the weights of a column of a group lie and how they are read. `Stored` is one value of the file.
struct F32Weights {
  using Stored = float;
  static SW_INLINE F32x16 get(const Stored* p) { return flush(load(p)); }
  static SW_INLINE F32x16 get_n(const Stored* p, uint32_t n) { return flush(load_n(p, n)); }
};
struct F16Weights {
  using Stored = uint16_t;
  static SW_INLINE F32x16 get(const Stored* p) { return load_f16(p); }
  static SW_INLINE F32x16 get_n(const Stored* p, uint32_t n) { return load_f16_n(p, n); }
};
struct Bf16Weights {
  using Stored = uint16_t;
  static SW_INLINE F32x16 get(const Stored* p) { return flush(load_bf16(p)); }
  static SW_INLINE F32x16 get_n(const Stored* p, uint32_t n) { return flush(load_bf16_n(p, n)); }
};
struct FlushedWeights {  // the scratch panel
  using Stored = float;
  static SW_INLINE F32x16 get(const Stored* p) { return load(p); }
};

constexpr uint32_t segments_at_once(uint32_t chains) {
  uint32_t segments = kFloatSegments;
  while (segments > 1 && segments * chains > kAccumulators) segments /= 2;
  return segments;
}

// Sums of `length` columns from `column` on, for each of kSegments segments that begin `step` columns apart
// and each of kGroups groups that begin `group_values` apart.
template <class Weights, uint32_t kTokens, uint32_t kGroups, uint32_t kSegments>
SW_INLINE void add_columns(const typename Weights::Stored* w, size_t group_values, const float* const* x,
                           uint32_t column, uint32_t step, uint32_t length,
                           F32x16 (*sums)[kGroups][kTokens]) {
  F32x16 acc[kSegments][kGroups][kTokens];
#pragma GCC unroll 8
  for (uint32_t s = 0; s < kSegments; ++s)
#pragma GCC unroll 2
    for (uint32_t g = 0; g < kGroups; ++g)
#pragma GCC unroll 8
      for (uint32_t t = 0; t < kTokens; ++t) acc[s][g][t] = zero();
  const float* from[kTokens];
#pragma GCC unroll 8
  for (uint32_t t = 0; t < kTokens; ++t) from[t] = x[t] + column;
  w += size_t{column} * kGroupRows;
  for (uint32_t i = 0; i < length; ++i, w += kGroupRows) {
#pragma GCC unroll 8
    for (uint32_t s = 0; s < kSegments; ++s) {
      const size_t c = size_t{s} * step;
      F32x16 weight[kGroups];
#pragma GCC unroll 2
      for (uint32_t g = 0; g < kGroups; ++g) weight[g] = Weights::get(w + c * kGroupRows + g * group_values);
#pragma GCC unroll 8
      for (uint32_t t = 0; t < kTokens; ++t) {
        const F32x16 activation = splat(from[t][c + i]);
#pragma GCC unroll 2
        for (uint32_t g = 0; g < kGroups; ++g) acc[s][g][t] = acc[s][g][t] + weight[g] * activation;
      }
    }
  }
#pragma GCC unroll 8
  for (uint32_t s = 0; s < kSegments; ++s)
#pragma GCC unroll 2
    for (uint32_t g = 0; g < kGroups; ++g)
#pragma GCC unroll 8
      for (uint32_t t = 0; t < kTokens; ++t) sums[s][g][t] = acc[s][g][t];
}

// kGroups groups (of `rows` rows) times kTokens tokens.
template <class Weights, uint32_t kTokens, uint32_t kGroups>
void product_tile(const typename Weights::Stored* w, uint32_t cols, uint32_t rows, const float* const* x,
                  float* const* out) {
  constexpr uint32_t kAtOnce = segments_at_once(kTokens * kGroups);
  const size_t group_values = size_t{cols} * kGroupRows;
  const uint32_t step = cols / kFloatSegments + (cols % kFloatSegments != 0);
  const uint32_t whole = step == 0 ? 0 : cols / step;  // segments of full length
  F32x16 sums[kFloatSegments][kGroups][kTokens];
  uint32_t s = 0;
  for (; s + kAtOnce <= whole; s += kAtOnce)
    add_columns<Weights, kTokens, kGroups, kAtOnce>(w, group_values, x, s * step, step, step, sums + s);
  for (; s < kFloatSegments; ++s) {
    const uint32_t begin = s * step < cols ? s * step : cols;
    const uint32_t length = cols - begin < step ? cols - begin : step;
    add_columns<Weights, kTokens, kGroups, 1>(w, group_values, x, begin, step, length, sums + s);
  }
  for (uint32_t g = 0; g < kGroups; ++g)
    for (uint32_t t = 0; t < kTokens; ++t) {
      const F32x16 left = (sums[0][g][t] + sums[1][g][t]) + (sums[2][g][t] + sums[3][g][t]);
      const F32x16 right = (sums[4][g][t] + sums[5][g][t]) + (sums[6][g][t] + sums[7][g][t]);
      float* to = out[t] + g * kGroupRows;
      const uint32_t n = rows - g * kGroupRows;
      if (n >= kGroupRows)
        store(to, left + right);
      else
        store_n(to, left + right, n);
    }
}

// What a call computes, for one block of tokens.
struct TokenBlock {
  const float* x;  // (tokens, cols)
  uint32_t cols;
  const uint32_t* index;  // or null
  uint32_t first, last;   // tokens of the set
  float* out;
  size_t out_stride;
};

// kGroups groups of rows, which begin at row `row`, times a block of tokens in tiles of at most kLargest.
template <class Weights, uint32_t kGroups, uint32_t kLargest>
void product_groups(const typename Weights::Stored* w, uint32_t row, uint32_t rows, const TokenBlock& block) {
  const float* x[kLargest];
  float* to[kLargest];
  for (uint32_t token = block.first; token < block.last;) {
    uint32_t tile = kLargest;
    while (tile > block.last - token) tile /= 2;
    for (uint32_t t = 0; t < tile; ++t) {
      x[t] = block.x + size_t{block.index ? block.index[token + t] : token + t} * block.cols;
      to[t] = block.out + (size_t{token} + t) * block.out_stride + row;
    }
    if constexpr (kLargest == 8)
      if (tile == 8) product_tile<Weights, 8, kGroups>(w, block.cols, rows, x, to);
    if (tile == 4) product_tile<Weights, 4, kGroups>(w, block.cols, rows, x, to);
    if (tile == 2) product_tile<Weights, 2, kGroups>(w, block.cols, rows, x, to);
    if (tile == 1) product_tile<Weights, 1, kGroups>(w, block.cols, rows, x, to);
    token += tile;
  }
}

// File rows to a panel; rows past the matrix are zero.
template <class Weights>
void transpose_rows(const typename Weights::Stored* w, uint32_t cols, uint32_t rows, float* panel) {
  const typename Weights::Stored* from[kGroupRows];
  for (uint32_t r = 0; r < kGroupRows; ++r) from[r] = w + size_t{r < rows ? r : 0} * cols;
  F32x16 in[kGroupRows], out[kGroupRows];
  uint32_t c = 0;
  for (; cols - c >= 16; c += 16) {
#pragma GCC unroll 16
    for (uint32_t r = 0; r < kGroupRows; ++r) in[r] = Weights::get(from[r] + c);
    transpose(in, out);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < 16; ++i) store(panel + (size_t{c} + i) * kGroupRows, out[i]);
  }
  if (c < cols) {
    for (uint32_t r = 0; r < kGroupRows; ++r) in[r] = Weights::get_n(from[r] + c, cols - c);
    transpose(in, out);
    for (uint32_t i = 0; i < cols - c; ++i) store(panel + (size_t{c} + i) * kGroupRows, out[i]);
  }
}

template <class Weights>
void widen_group(const typename Weights::Stored* w, uint32_t cols, float* panel) {
  for (size_t c = 0; c < cols; ++c) store(panel + c * kGroupRows, Weights::get(w + c * kGroupRows));
}

// Groups of a panel: two where 16 accumulators fit beside the operands.
constexpr uint32_t kPanelGroups = kAccumulators >= 16 ? 2 : 1;
constexpr uint32_t kPanelTile = kAccumulators >= 16 ? 8 : 4;
// Fewer tokens than this take an interleaved matrix as it lies.
constexpr uint32_t kPanelTokens = 8;

inline size_t float_product_scratch_bytes(uint32_t cols) {
  return size_t{cols} * kGroupRows * kPanelGroups * sizeof(float);
}

template <class Weights>
void product_of(const Matrix& w, uint32_t group_begin, uint32_t group_end, const Activations& x,
                TokenSet tokens, float* out, size_t out_stride, Scratch scratch) {
  const auto* data = reinterpret_cast<const typename Weights::Stored*>(w.data);
  auto* panel = reinterpret_cast<float*>(scratch.data);
  const size_t group_values = size_t{w.cols} * kGroupRows;
  const bool as_it_lies = w.layout == Layout::kInterleaved && tokens.n < kPanelTokens;
  // Tokens whose activations (256 KiB) stay in the second-level cache beside the panel while all groups pass.
  uint32_t at_once = w.cols == 0 ? tokens.n : (256u << 10) / sizeof(float) / w.cols;
  if (at_once < 32) at_once = 32;
  for (uint32_t first = 0; first < tokens.n; first += at_once) {
    const uint32_t last = tokens.n - first < at_once ? tokens.n : first + at_once;
    const TokenBlock block = {x.f32, w.cols, tokens.index, first, last, out, out_stride};
    for (uint32_t g = group_begin; g < group_end;) {
      const uint32_t row = g * kGroupRows,
                     rows = w.rows - row;  // rows left, perhaps more than the groups have
      const typename Weights::Stored* group = data + g * group_values;
      if (as_it_lies) {
        product_groups<Weights, 1, 4>(group, row, rows, block);
        ++g;
        continue;
      }
      const uint32_t groups = group_end - g < kPanelGroups ? 1 : kPanelGroups;
      for (uint32_t i = 0; i < groups; ++i) {
        if (w.layout == Layout::kInterleaved)
          widen_group<Weights>(group + i * group_values, w.cols, panel + i * group_values);
        else
          transpose_rows<Weights>(group + i * group_values, w.cols, rows - i * kGroupRows,
                                  panel + i * group_values);
      }
      if (groups == kPanelGroups)
        product_groups<FlushedWeights, kPanelGroups, kPanelTile>(panel, row, rows, block);
      else
        product_groups<FlushedWeights, 1, kPanelTile>(panel, row, rows, block);
      g += groups;
    }
  }
}

// Row `row` of an interleaved matrix, flushed.
template <class Weights>
void gather_row(const Matrix& w, uint32_t row, float* out) {
  const auto* at = reinterpret_cast<const typename Weights::Stored*>(w.data);
  at += size_t{row / kGroupRows} * kGroupRows * w.cols + row % kGroupRows;
  for (uint32_t c = 0; c < w.cols; ++c, at += kGroupRows) out[c] = first(flush(Weights::get_n(at, 1)));
}

// Requires: w.type is F32, F16 or BF16.
void float_product(const Matrix& w, uint32_t group_begin, uint32_t group_end, const Activations& x,
                   TokenSet tokens, float* out, size_t out_stride, Scratch scratch) {
  switch (w.type) {
    case TensorType::kF16:
      return product_of<F16Weights>(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    case TensorType::kBF16:
      return product_of<Bf16Weights>(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    default:
      return product_of<F32Weights>(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
  }
}

}  // namespace
}  // namespace spillway::cpu
