// Products of F32, F16 and BF16 matrices over 16 lanes: a lane owns a row (docs/numerics.md, "Order of a
// row's sum").
//
// A row's sum is eight chains, one per segment, and a chain waits for its own additions. So a tile of
// `kTokens` tokens runs `kSegments` segments side by side, as many as there are registers: one token has
// eight chains from its segments, sixteen tokens have sixteen chains in one segment and load each weight once
// for all of them.
//
// Rows in file layout are first transposed into scratch, flushed and widened, 16 rows at a time.
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

constexpr uint32_t segments_at_once(uint32_t tokens) {
  uint32_t segments = kFloatSegments;
  while (segments > 1 && segments * tokens > kAccumulators) segments /= 2;
  return segments;
}

// Adds `length` columns from `column` on to each of kSegments segments, which begin `step` columns apart.
template <class Weights, uint32_t kTokens, uint32_t kSegments>
SW_INLINE void add_columns(const typename Weights::Stored* w, const float* const* x, uint32_t column,
                           uint32_t step, uint32_t length, F32x16 (*sums)[kTokens]) {
  F32x16 acc[kSegments][kTokens];
#pragma GCC unroll 8
  for (uint32_t s = 0; s < kSegments; ++s)
#pragma GCC unroll 16
    for (uint32_t t = 0; t < kTokens; ++t) acc[s][t] = zero();
  for (uint32_t i = 0; i < length; ++i) {
#pragma GCC unroll 8
    for (uint32_t s = 0; s < kSegments; ++s) {
      const size_t c = size_t{column} + size_t{s} * step + i;
      const F32x16 weight = Weights::get(w + c * kGroupRows);
#pragma GCC unroll 16
      for (uint32_t t = 0; t < kTokens; ++t) acc[s][t] = acc[s][t] + weight * splat(x[t][c]);
    }
  }
#pragma GCC unroll 8
  for (uint32_t s = 0; s < kSegments; ++s)
#pragma GCC unroll 16
    for (uint32_t t = 0; t < kTokens; ++t) sums[s][t] = acc[s][t];
}

// One group of rows times kTokens tokens.
template <class Weights, uint32_t kTokens>
void product_tile(const typename Weights::Stored* w, uint32_t cols, uint32_t rows, const float* const* x,
                  float* const* out) {
  constexpr uint32_t kAtOnce = segments_at_once(kTokens);
  const uint32_t step = cols / kFloatSegments + (cols % kFloatSegments != 0);
  const uint32_t whole = cols / (step == 0 ? 1 : step);  // segments of full length
  F32x16 sums[kFloatSegments][kTokens];
  uint32_t s = 0;
  for (; s + kAtOnce <= whole && s + kAtOnce <= kFloatSegments; s += kAtOnce)
    add_columns<Weights, kTokens, kAtOnce>(w, x, s * step, step, step, sums + s);
  for (; s < kFloatSegments; ++s) {
    const uint32_t begin = s * step < cols ? s * step : cols;
    const uint32_t length = cols - begin < step ? cols - begin : step;
    add_columns<Weights, kTokens, 1>(w, x, begin, step, length, sums + s);
  }
  for (uint32_t t = 0; t < kTokens; ++t) {
    const F32x16 left = (sums[0][t] + sums[1][t]) + (sums[2][t] + sums[3][t]);
    const F32x16 right = (sums[4][t] + sums[5][t]) + (sums[6][t] + sums[7][t]);
    if (rows == kGroupRows) {
      store(out[t], left + right);
    } else {
      store_n(out[t], left + right, rows);
    }
  }
}

// One group of rows times tokens first..last-1 of the set.
template <class Weights>
void product_group(const typename Weights::Stored* w, uint32_t cols, uint32_t rows, const float* x_rows,
                   const uint32_t* index, uint32_t first, uint32_t last, float* out, size_t out_stride) {
  constexpr uint32_t kLargestTile = kAccumulators >= 16 ? 16 : 4;
  const float* x[kLargestTile];
  float* to[kLargestTile];
  for (uint32_t token = first; token < last;) {
    const uint32_t left = last - token;
    uint32_t tile = kLargestTile;
    while (tile > left) tile /= 2;
    for (uint32_t t = 0; t < tile; ++t) {
      x[t] = x_rows + size_t{index ? index[token + t] : token + t} * cols;
      to[t] = out + (size_t{token} + t) * out_stride;
    }
    if constexpr (kLargestTile == 16) {
      if (tile == 16) product_tile<Weights, 16>(w, cols, rows, x, to);
      if (tile == 8) product_tile<Weights, 8>(w, cols, rows, x, to);
    }
    if (tile == 4) product_tile<Weights, 4>(w, cols, rows, x, to);
    if (tile == 2) product_tile<Weights, 2>(w, cols, rows, x, to);
    if (tile == 1) product_tile<Weights, 1>(w, cols, rows, x, to);
    token += tile;
  }
}

// File rows to a panel [column][16 rows] of flushed float32; rows past the matrix are zero.
template <class Weights>
void transpose_rows(const typename Weights::Stored* w, uint32_t cols, uint32_t rows, float* panel) {
  F32x16 in[kGroupRows], out[kGroupRows];
  for (uint32_t c = 0; c < cols; c += 16) {
    const uint32_t n = cols - c < 16 ? cols - c : 16;
    for (uint32_t r = 0; r < kGroupRows; ++r) {
      const typename Weights::Stored* p = w + size_t{r} * cols + c;
      in[r] = r >= rows ? zero() : n == 16 ? Weights::get(p) : Weights::get_n(p, n);
    }
    transpose(in, out);
    for (uint32_t i = 0; i < n; ++i) store(panel + (size_t{c} + i) * kGroupRows, out[i]);
  }
}

inline size_t float_product_scratch_bytes(uint32_t cols) { return size_t{cols} * kGroupRows * sizeof(float); }

template <class Weights>
void product_of(const Matrix& w, uint32_t group_begin, uint32_t group_end, const Activations& x,
                TokenSet tokens, float* out, size_t out_stride, Scratch scratch) {
  // Tokens whose activations stay in a quarter of a 1 MiB second-level cache while all groups pass.
  uint32_t block = w.cols == 0 ? tokens.n : (256u << 10) / 4 / w.cols / 16 * 16;
  if (block < 16) block = 16;
  const auto* data = reinterpret_cast<const typename Weights::Stored*>(w.data);
  const size_t group_values = size_t{w.cols} * kGroupRows;
  for (uint32_t first = 0; first < tokens.n; first += block) {
    const uint32_t last = tokens.n - first < block ? tokens.n : first + block;
    for (uint32_t g = group_begin; g < group_end; ++g) {
      const uint32_t row = g * kGroupRows;
      const uint32_t rows = w.rows - row < kGroupRows ? w.rows - row : kGroupRows;
      const typename Weights::Stored* group = data + g * group_values;
      if (w.layout == Layout::kInterleaved) {
        product_group<Weights>(group, w.cols, rows, x.f32, tokens.index, first, last, out + row, out_stride);
      } else {
        auto* panel = reinterpret_cast<float*>(scratch.data);
        transpose_rows<Weights>(group, w.cols, rows, panel);
        product_group<FlushedWeights>(panel, w.cols, rows, x.f32, tokens.index, first, last, out + row,
                                      out_stride);
      }
    }
  }
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
