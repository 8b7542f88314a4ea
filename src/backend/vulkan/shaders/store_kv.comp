// Keys and values of the step's rows into their pages. A thread writes one word.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "numerics.glsl"
#include "kv.glsl"

layout(local_size_x = 64) in;

layout(push_constant) uniform Parameters {
  Floats key;            // (rows, key_stride)
  Floats value;          // (rows, value_stride)
  Words positions;       // (rows)
  Words first_page;      // (rows): where the pages of the row's sequence begin in `pages`
  Words pages;
  Words page_addresses;  // 2 words a page
  uint key_stride;
  uint value_stride;
  uint kv_heads;
  uint key_length;
  uint value_length;
  uint keys_word;  // of the layer in a page
  uint values_word;
} p;

// Values d and, in an F16 word, d + 1; `n` values are there.
uint pack(Floats x, uint at, uint n, bool half_words) {
  if (!half_words) return floatBitsToUint(flush(x.f[at]));
  return f32_to_f16(x.f[at]) | (n > 1u ? f32_to_f16(x.f[at + 1u]) << 16 : 0u);
}

void main() {
  const uint row = gl_WorkGroupID.y, position = p.positions.w[row];
  const uint page = p.pages.w[p.first_page.w[row] + position / kPagePositions];
  WordsOut to = WordsOut(uvec2(p.page_addresses.w[2u * page], p.page_addresses.w[2u * page + 1u]));
  const uint keys = key_words(p.key_length), values = value_words(p.value_length);
  uint at = gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x;
  if (at < p.kv_heads * keys) {
    const uint head = at / keys, w = at % keys, d = KEY_F16 ? 2u * w : w;
    to.w[p.keys_word + key_word_at(head, position, w, keys)] =
        pack(p.key, row * p.key_stride + head * p.key_length + d, p.key_length - d, KEY_F16);
    return;
  }
  at -= p.kv_heads * keys;
  if (at < p.kv_heads * values) {
    const uint head = at / values, w = at % values, d = VALUE_F16 ? 2u * w : w;
    to.w[p.values_word + value_word_at(head, position, w, values)] =
        pack(p.value, row * p.value_stride + head * p.value_length + d, p.value_length - d, VALUE_F16);
  }
}
