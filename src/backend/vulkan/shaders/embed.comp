// The embedding of each row's token: dequantize_row of numerics/formats.h. A thread makes four values.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "numerics.glsl"
#include "formats.glsl"

layout(local_size_x = 64) in;

layout(push_constant) uniform Parameters {
  Words table;
  Words tokens;
  FloatsOut to;  // (rows, out_stride)
  uint cols;
  uint out_stride;
  uint column_stride;
} p;

void main() {
  const uint i = 4u * (gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x);
  if (i >= p.cols) return;
  const uint token = p.tokens.w[gl_WorkGroupID.y];
  const uint r = token % 16u;
  const uint to = gl_WorkGroupID.y * p.out_stride + i;
#ifdef FLOAT_TYPE
  const uint base = token / 16u * (p.cols * p.column_stride * BLOCK_BYTES / 4u);
  for (uint k = 0u; k < min(4u, p.cols - i); ++k)
    p.to.f[to + k] = weight_value(p.table, base, i + k, p.column_stride, r);
#else
  const uint in_block = i % BLOCK_LENGTH;
  const uint base = (token / 16u * (p.cols / BLOCK_LENGTH) + i / BLOCK_LENGTH) * RECORD_WORDS;
  const uint j = in_block / SUB_LENGTH;
  const uint codes = codes4(p.table, base, r, in_block / 4u);
  precise float scaled = block_scale(p.table, base, r) * float(sub_scale(p.table, base, r, j));
#if MINIMA
  precise float low = block_minimum(p.table, base, r) * float(sub_minimum(p.table, base, r, j));
#endif
  [[unroll]] for (uint k = 0u; k < 4u; ++k) {
    precise float value = scaled * float(bitfieldExtract(int(codes), int(8u * k), 8) - BIAS);
#if MINIMA
    value = value + low;
#endif
    p.to.f[to + k] = value;
  }
#endif
}
