// The weighted sum of the outputs of a row's experts, in ascending rank from +0 (docs/numerics.md). A thread
// makes one value of one row.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "numerics.glsl"

layout(local_size_x = 64) in;

layout(push_constant) uniform Parameters {
  Floats outputs;  // (pairs, hidden)
  Floats weights;  // (rows, n_used)
  FloatsOut to;    // (rows, out_stride)
  uint hidden;
  uint n_used;
  uint out_stride;
} p;

void main() {
  const uint i = gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x, row = gl_WorkGroupID.y;
  if (i >= p.hidden) return;
  precise float sum = 0.0;
  for (uint n = 0u; n < p.n_used; ++n) {
    const uint pair = row * p.n_used + n;
    sum = sum + flush(p.weights.f[pair]) * flush(p.outputs.f[pair * p.hidden + i]);
  }
  p.to.f[row * p.out_stride + i] = sum;
}
