// Attention of one head of one row (numerics/attention.h) in chunks of 128 positions. For the scores a thread
// owns a position, for the weighted values an output value.
//
// MODE 0: a workgroup walks all chunks, and combines them. For a single row that would leave most of a GPU
// idle: there MODE 1 lets `splits` workgroups make the parts of every splits-th chunk each, and MODE 2
// combines them in ascending order. Both are the same sums.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "numerics.glsl"
#include "reduce.glsl"
#include "kv.glsl"

layout(constant_id = 2) const uint MODE = 0;
const uint kWhole = 0u, kParts = 1u, kCombine = 2u;

#define CHUNK 128u
#define MAX_HEAD 1024u
layout(local_size_x = 128) in;

layout(push_constant) uniform Parameters {
  Floats q;              // (rows, q_stride)
  FloatsOut to;          // (rows, out_stride)
  Words positions;       // (rows)
  Words first_page;      // (rows)
  Words pages;
  Words page_addresses;  // 2 words a page
  FloatsOut parts;       // (heads, max_chunks, 2 + value_length): maximum, sum, weighted values
  uint q_stride;
  uint out_stride;
  uint group;            // heads that share a key-value head
  uint key_length;
  uint value_length;
  uint keys_word;
  uint values_word;
  float scale;
  uint window;           // 0 = all positions
  uint max_chunks;
  uint splits;
} p;

shared float scaled[MAX_HEAD];
shared float so_far[MAX_HEAD];        // each value is its thread's own
shared float chunk_values[MAX_HEAD];  // likewise
shared float weights[CHUNK];
shared float maxima[CHUNK];
shared float lane_sums[16];
shared float chunk_sum;

// Of the chunk at hand; all threads call it.
void make_chunk(uint kv_head, uint page_list, uint begin, uint end, out float chunk_maximum, out float chunk_total) {
  const uint thread = gl_LocalInvocationID.x;
  const uint keys = key_words(p.key_length), values = value_words(p.value_length);
  const uint origin = begin / CHUNK * CHUNK, position = origin + thread;
  const bool takes_part = position >= begin && position < end;

  precise float score = 0.0;
  if (takes_part) {
    const uint page = p.pages.w[page_list + position / kPagePositions];
    Words from = Words(uvec2(p.page_addresses.w[2u * page], p.page_addresses.w[2u * page + 1u]));
    const uint base = p.keys_word + key_word_at(kv_head, position, 0u, keys);
    if (KEY_F16) {
      for (uint d = 0u; d < p.key_length; d += 2u) {
        const uint word = from.w[base + 8u * d];
        score = score + scaled[d] * f16_to_f32(word & 0xffffu);
        if (d + 1u < p.key_length) score = score + scaled[d + 1u] * f16_to_f32(word >> 16);
      }
    } else {
      for (uint d = 0u; d < p.key_length; ++d)
        score = score + scaled[d] * uintBitsToFloat(from.w[base + 16u * d]);
    }
  }
  maxima[thread] = takes_part && !is_nan(score) ? score : minus_infinity();
  barrier();
  for (uint reach = CHUNK / 2u; reach > 0u; reach /= 2u) {
    if (thread < reach) maxima[thread] = max_select(maxima[thread + reach], maxima[thread]);
    barrier();
  }
  chunk_maximum = maxima[0];
  precise float below = score - chunk_maximum;
  weights[thread] = exp_of(below);
  barrier();
  if (thread < 16u) {
    precise float lane = 0.0;
    for (uint i = thread; i < CHUNK; i += 16u)
      if (origin + i >= begin && origin + i < end) lane = lane + weights[i];
    lane_sums[thread] = lane;
  }
  barrier();
  if (thread == 0u) {
    float lanes[16];
    [[unroll]] for (uint i = 0u; i < 16u; ++i) lanes[i] = lane_sums[i];
    chunk_sum = fold_lanes(lanes);
  }
  barrier();
  chunk_total = chunk_sum;

  for (uint d = thread; d < p.value_length; d += CHUNK) {
    precise float sum = 0.0;
    for (uint at = begin; at < end;) {
      const uint page = p.pages.w[page_list + at / kPagePositions];
      const uint page_end = min(end, (at / kPagePositions + 1u) * kPagePositions);
      Words from = Words(uvec2(p.page_addresses.w[2u * page], p.page_addresses.w[2u * page + 1u]));
      uint word = p.values_word + value_word_at(kv_head, at, VALUE_F16 ? d / 2u : d, values);
      for (; at < page_end; ++at) {
        const uint bits = from.w[word];
        const float v = VALUE_F16 ? f16_to_f32((bits >> (16u * (d & 1u))) & 0xffffu) : uintBitsToFloat(bits);
        sum = sum + weights[at - origin] * v;
        word += values;
      }
    }
    chunk_values[d] = flush(sum);
  }
}

void main() {
  const uint thread = gl_LocalInvocationID.x, head = gl_WorkGroupID.x, row = gl_WorkGroupID.y;
  const uint kv_head = head / p.group;
  const uint end_key = p.positions.w[row] + 1u;
  const uint first_key = p.window != 0u && end_key > p.window ? end_key - p.window : 0u;
  const uint page_list = p.first_page.w[row];
  const uint part_words = 2u + p.value_length;

  if (MODE != kCombine) {
    for (uint d = thread; d < p.key_length; d += CHUNK) {
      precise float product = p.q.f[row * p.q_stride + head * p.key_length + d] * p.scale;
      scaled[d] = flush(product);
    }
    barrier();
  }

  float m = 0.0, l = 0.0;
  bool any = false;
  const uint first_chunk = first_key / CHUNK, end_chunk = (end_key + CHUNK - 1u) / CHUNK;
  const uint step_chunks = MODE == kParts ? p.splits : 1u;
  for (uint chunk = first_chunk + (MODE == kParts ? gl_WorkGroupID.z : 0u); chunk < end_chunk; chunk += step_chunks) {
    const uint part = (head * p.max_chunks + chunk) * part_words;
    float mc, lc;
    if (MODE == kCombine) {
      mc = p.parts.f[part];
      lc = p.parts.f[part + 1u];
    } else {
      make_chunk(kv_head, page_list, max(first_key, chunk * CHUNK), min(end_key, (chunk + 1u) * CHUNK), mc, lc);
    }
    if (MODE == kParts) {
      if (thread == 0u) {
        p.parts.f[part] = mc;
        p.parts.f[part + 1u] = lc;
      }
      for (uint d = thread; d < p.value_length; d += CHUNK) p.parts.f[part + 2u + d] = chunk_values[d];
      continue;  // the next chunk writes what only this thread has read
    }

    const float top = any ? max_select(mc, m) : mc;
    precise float below_m = m - top;
    precise float below_mc = mc - top;
    const float a = exp_of(below_m), b = exp_of(below_mc);
    for (uint d = thread; d < p.value_length; d += CHUNK) {
      const float chunk_value = MODE == kCombine ? p.parts.f[part + 2u + d] : chunk_values[d];
      precise float both = so_far[d] * a + chunk_value * b;
      so_far[d] = any ? flush(both) : chunk_value;
    }
    precise float both_sums = l * a + lc * b;
    l = any ? both_sums : lc;
    m = top;
    any = true;
  }
  if (MODE == kParts) return;

  const float r = reciprocal(l);
  for (uint d = thread; d < p.value_length; d += CHUNK) {
    precise float value = any ? so_far[d] * r : 0.0;
    p.to.f[row * p.out_stride + head * p.value_length + d] = value;
  }
}
