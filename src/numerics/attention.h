// Attention of one query vector over a range of keys (docs/numerics.md, "Attention").
//
// Keys are taken in chunks of 128 positions counted from position 0, whatever pages they lie in and wherever
// the range begins, so that a result does not depend on how a prompt was cut or a cache is paged. Each chunk
// makes its own maximum, sum and weighted values; chunks are combined in ascending order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "numerics/elementary.h"
#include "numerics/reduce.h"

namespace spillway::numerics {

inline constexpr uint32_t kAttentionChunk = 128;

struct AttentionShape {
  uint32_t key_length = 0;
  uint32_t value_length = 0;
  uint32_t first_key = 0;  // keys first_key .. end_key-1 take part
  uint32_t end_key = 0;
  float scale = 1.0f;
  const float* sink = nullptr;  // a logit without a value, or null
};

// Floats of scratch that attention() needs.
constexpr size_t attention_scratch(uint32_t key_length, uint32_t value_length) {
  return size_t{key_length} + value_length + kAttentionChunk;
}

// q (key_length) -> out (value_length). key(position, d) and value(position, d) give float32 values as they
// stand in the cache: F16 widened, or flushed F32. A weight p of 0 is multiplied like any other: an infinite
// value then gives NaN. A range without keys gives +0. `out` may not be q.
template <class Key, class Value>
void attention(const AttentionShape& shape, const float* q, Key key, Value value, float* out,
               float* scratch) {
  float* scaled = scratch;                         // (key_length)
  float* chunk_out = scaled + shape.key_length;    // (value_length)
  float* scores = chunk_out + shape.value_length;  // (128), indexed by position within the chunk
  for (uint32_t d = 0; d < shape.key_length; ++d) scaled[d] = flush(q[d] * shape.scale);

  bool any = false;
  float m = 0, l = 0;
  std::fill_n(out, shape.value_length, 0.0f);
  for (uint32_t begin = shape.first_key; begin < shape.end_key;) {
    const uint32_t origin = begin / kAttentionChunk * kAttentionChunk;
    const uint32_t end = std::min(shape.end_key, origin + kAttentionChunk);

    for (uint32_t t = begin; t < end; ++t) {
      float sum = 0;
      for (uint32_t d = 0; d < shape.key_length; ++d) sum = sum + scaled[d] * key(t, d);
      scores[t - origin] = sum;
    }
    const float mc = reduce_max(scores + (begin - origin), end - begin);
    float lanes[kReductionLanes] = {};
    for (uint32_t t = begin; t < end; ++t) {
      float& p = scores[t - origin];
      p = exp(p - mc);
      lanes[t % kReductionLanes] = lanes[t % kReductionLanes] + p;
    }
    const float lc = fold_lanes(lanes);
    for (uint32_t d = 0; d < shape.value_length; ++d) {
      float sum = 0;
      for (uint32_t t = begin; t < end; ++t) sum = sum + scores[t - origin] * value(t, d);
      chunk_out[d] = flush(sum);
    }

    if (!any) {
      any = true;
      m = mc;
      l = lc;
      std::copy_n(chunk_out, shape.value_length, out);
    } else {
      const float top = max_select(mc, m);
      const float a = exp(m - top), b = exp(mc - top);
      l = l * a + lc * b;
      for (uint32_t d = 0; d < shape.value_length; ++d) out[d] = flush(out[d] * a + chunk_out[d] * b);
      m = top;
    }
    begin = end;
  }
  if (!any) return;
  if (shape.sink != nullptr) {
    const float top = max_select(*shape.sink, m);
    const float a = exp(m - top);
    l = l * a + exp(*shape.sink - top);
    for (uint32_t d = 0; d < shape.value_length; ++d) out[d] = flush(out[d] * a);
  }
  const float r = reciprocal(l);
  for (uint32_t d = 0; d < shape.value_length; ++d) out[d] = out[d] * r;
}

}  // namespace spillway::numerics
