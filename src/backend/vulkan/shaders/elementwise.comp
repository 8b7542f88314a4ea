// Gated activations and the adds of the residual stream (numerics/glu.h), in place in y. A thread makes one
// value of one row.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "numerics.glsl"

layout(constant_id = 0) const uint OPERATION = 0;  // as Elementwise in shaders.h
const uint kSiluMul = 0u, kAdd = 1u, kAddGated = 2u;

layout(local_size_x = 64) in;

layout(push_constant) uniform Parameters {
  FloatsOut y;  // (rows, y_stride)
  Floats x;     // (rows, x_stride)
  Floats gate;  // (rows, gate_stride): its first value, for kAddGated
  uint width;
  uint y_stride;
  uint x_stride;
  uint gate_stride;
} p;

void main() {
  const uint i = gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x, row = gl_WorkGroupID.y;
  if (i >= p.width) return;
  const uint at = row * p.y_stride + i;
  const float y = p.y.f[at], x = p.x.f[row * p.x_stride + i];
  precise float result;
  if (OPERATION == kSiluMul) {
    result = silu(y) * flush(x);
  } else if (OPERATION == kAdd) {
    result = y + x;
  } else {
    result = y + flush(sigmoid(p.gate.f[row * p.gate_stride])) * flush(x);
  }
  p.y.f[at] = result;
}
