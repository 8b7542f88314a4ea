// RMS norm of each head of each row (numerics/norm.h); a whole row is one head. Sixteen threads add, since
// the order of the sum has sixteen lanes; the values reach them through shared memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "numerics.glsl"
#include "reduce.glsl"

#define THREADS 128
#define TILE 2048
layout(local_size_x = THREADS) in;

layout(push_constant) uniform Parameters {
  Floats x;
  FloatsOut y;
  Floats weight;  // (n), where has_weight
  uint n;
  uint x_stride;
  uint y_stride;
  uint has_weight;
  float inverse_n;
  float epsilon;
} p;

shared float tile[TILE];
shared float lane_sums[16];
shared float factor;

void main() {
  const uint thread = gl_LocalInvocationID.x;
  const uint from = gl_WorkGroupID.y * p.x_stride + gl_WorkGroupID.x * p.n;
  const uint to = gl_WorkGroupID.y * p.y_stride + gl_WorkGroupID.x * p.n;

  precise float lane = 0.0;
  for (uint begin = 0u; begin < p.n; begin += TILE) {
    const uint length = min(p.n - begin, TILE);
    for (uint i = thread; i < length; i += THREADS) {
      const float v = flush(p.x.f[from + begin + i]);
      precise float square = v * v;
      tile[i] = square;
    }
    barrier();
    if (thread < 16u)
      for (uint i = thread; i < length; i += 16u) lane = lane + tile[i];
    barrier();
  }
  if (thread < 16u) lane_sums[thread] = lane;
  barrier();
  if (thread == 0u) {
    float lanes[16];
    [[unroll]] for (uint l = 0u; l < 16u; ++l) lanes[l] = lane_sums[l];
    precise float mean = fold_lanes(lanes) * p.inverse_n + p.epsilon;
    factor = rsqrt(mean);
  }
  barrier();

  for (uint i = thread; i < p.n; i += THREADS) {
    precise float value = flush(p.x.f[from + i]) * factor;
    if (p.has_weight != 0u) value = value * flush(p.weight.f[i]);
    p.y.f[to + i] = flush(value);
  }
}
