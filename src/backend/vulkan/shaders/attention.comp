// Attention of one head of one row (numerics/attention.h): a workgroup walks the chunks of 128 positions. For
// the scores a thread owns a position, for the weighted values an output value.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "numerics.glsl"
#include "reduce.glsl"
#include "kv.glsl"

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
  uint q_stride;
  uint out_stride;
  uint group;            // heads that share a key-value head
  uint key_length;
  uint value_length;
  uint keys_word;
  uint values_word;
  float scale;
  uint window;           // 0 = all positions
} p;

shared float scaled[MAX_HEAD];
shared float so_far[MAX_HEAD];
shared float weights[CHUNK];
shared float maxima[CHUNK];
shared float lane_sums[16];
shared float chunk_sum;

void main() {
  const uint thread = gl_LocalInvocationID.x, head = gl_WorkGroupID.x, row = gl_WorkGroupID.y;
  const uint kv_head = head / p.group;
  const uint end_key = p.positions.w[row] + 1u;
  const uint first_key = p.window != 0u && end_key > p.window ? end_key - p.window : 0u;
  const uint page_list = p.first_page.w[row];
  const uint keys = key_words(p.key_length), values = value_words(p.value_length);

  for (uint d = thread; d < p.key_length; d += CHUNK) {
    precise float product = p.q.f[row * p.q_stride + head * p.key_length + d] * p.scale;
    scaled[d] = flush(product);
  }
  barrier();

  float m = 0.0, l = 0.0;
  bool any = false;
  for (uint begin = first_key; begin < end_key;) {
    const uint origin = begin / CHUNK * CHUNK;
    const uint end = min(end_key, origin + CHUNK);
    const uint position = origin + thread;
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
    const float mc = maxima[0];
    precise float below = score - mc;
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
    const float lc = chunk_sum;

    const float top = any ? max_select(mc, m) : mc;
    precise float below_m = m - top;
    precise float below_mc = mc - top;
    const float a = exp_of(below_m), b = exp_of(below_mc);
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
      const float chunk_value = flush(sum);
      if (any) {
        precise float both = so_far[d] * a + chunk_value * b;
        so_far[d] = flush(both);
      } else {
        so_far[d] = chunk_value;
      }
    }
    precise float both_sums = l * a + lc * b;
    l = any ? both_sums : lc;
    m = top;
    any = true;
    begin = end;
    barrier();
  }

  const float r = reciprocal(l);
  for (uint d = thread; d < p.value_length; d += CHUNK) {
    precise float value = any ? so_far[d] * r : 0.0;
    p.to.f[row * p.out_stride + head * p.value_length + d] = value;
  }
}
