#include "numerics/product.h"

#include "base/assert.h"

namespace spillway::numerics {
namespace {

float float_product(TensorType type, const std::byte* row, const float* x, uint32_t n, uint32_t segments) {
  const size_t bytes = info(type).block_bytes;
  float sums[8] = {};
  for (uint32_t s = 0; s < segments; ++s) {
    const SegmentBounds bounds = segment_bounds(n, segments, s);
    for (uint32_t i = bounds.begin; i < bounds.end; ++i)
      sums[s] = sums[s] + load_float(type, row + i * bytes) * x[i];
  }
  return segment_tree(sums, segments);
}

}  // namespace

BlockSums block_sums(const FormatTraits& traits, const CanonicalBlock& block, const int8_t* q,
                     const int16_t* sums) {
  BlockSums out = {0, 0};
  const uint32_t sums_per_sub = traits.block_length == 256 ? traits.sub_length / 16u : 1u;
  for (uint32_t j = 0; j < traits.sub_blocks(); ++j) {
    int32_t inner = 0;
    for (uint32_t i = j * traits.sub_length; i < (j + 1u) * traits.sub_length; ++i)
      inner += (int32_t{block.u[i]} - traits.bias) * q[i];
    out.isum += block.sc[j] * inner;
    if (!traits.has_minima) continue;
    int32_t total = 0;
    for (uint32_t k = 0; k < sums_per_sub; ++k) total += sums[j * sums_per_sub + k];
    out.msum += block.m[j] * total;
  }
  return out;
}

float row_product(TensorType type, const std::byte* row, const ActivationRow& x, size_t n) {
  const FormatTraits traits = format_traits(type);
  SW_ASSERT(n % traits.block_length == 0);
  const uint32_t segments = traits.segments;
  if (!traits.quantized) return float_product(type, row, x.f32, static_cast<uint32_t>(n), segments);

  const auto n_blocks = static_cast<uint32_t>(n / traits.block_length);
  const uint32_t sums_per_block = traits.block_length == 256 ? 16 : 1;
  const size_t bytes = info(type).block_bytes;
  float main_sums[8] = {}, min_sums[8] = {};
  CanonicalBlock block;
  for (uint32_t s = 0; s < segments; ++s) {
    const SegmentBounds bounds = segment_bounds(n_blocks, segments, s);
    for (uint32_t b = bounds.begin; b < bounds.end; ++b) {
      unpack_block(type, row + b * bytes, block);
      const BlockSums sums = block_sums(traits, block, x.q + size_t{b} * traits.block_length,
                                        x.sums + size_t{b} * sums_per_block);
      main_sums[s] = main_sums[s] + (block.d * x.d[b]) * static_cast<float>(sums.isum);
      min_sums[s] = min_sums[s] + (block.dm * x.d[b]) * static_cast<float>(sums.msum);
    }
  }
  const float main = segment_tree(main_sums, segments);
  return traits.has_minima ? main + segment_tree(min_sums, segments) : main;
}

}  // namespace spillway::numerics
