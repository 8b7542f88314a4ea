// The product of a weight row and an activation row: exact integers per block, a fixed order of float terms
// (docs/numerics.md, "Quantized products" and "Order of a row's sum").
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"
#include "numerics/formats.h"

namespace spillway::numerics {

struct SegmentBounds {
  uint32_t begin;
  uint32_t end;  // begin == end for an empty segment
};

// Blocks of segment s of S: B = ceil(n_blocks / S) consecutive blocks each, the last ones short or empty.
constexpr SegmentBounds segment_bounds(uint32_t n_blocks, uint32_t segments, uint32_t s) {
  const uint32_t per_segment = n_blocks / segments + (n_blocks % segments != 0);
  const uint64_t begin = uint64_t{s} * per_segment, end = begin + per_segment;
  return {static_cast<uint32_t>(begin < n_blocks ? begin : n_blocks),
          static_cast<uint32_t>(end < n_blocks ? end : n_blocks)};
}

// The segment sums added pairwise: S = 8: ((s0+s1)+(s2+s3)) + ((s4+s5)+(s6+s7)); S = 4: (s0+s1)+(s2+s3).
constexpr float segment_tree(const float* sums, uint32_t segments) {
  if (segments == 1) return sums[0];
  return segment_tree(sums, segments / 2) + segment_tree(sums + segments / 2, segments / 2);
}

// One activation row, not owned: `f32` (flushed) for F32, F16 and BF16 weights, else q, d and sums of the
// row.
struct ActivationRow {
  const float* f32 = nullptr;
  const int8_t* q = nullptr;
  const float* d = nullptr;
  const int16_t* sums = nullptr;
};

// The two exact integers of a block. `sums` are of 16 values each where L = 256, of the block where L = 32.
struct BlockSums {
  int32_t isum;  // at most 32 * 127 * 128 * 256 = 2^27.0 in magnitude (Q6_K)
  int32_t msum;
};
BlockSums block_sums(const FormatTraits& traits, const CanonicalBlock& block, const int8_t* q,
                     const int16_t* sums);

// Row times activations, n values. `row` is in file layout.
float row_product(TensorType type, const std::byte* row, const ActivationRow& x, size_t n);

}  // namespace spillway::numerics
