// Turns the pairs of each head (numerics/rope.h), in place. A thread turns one pair.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "numerics.glsl"

layout(local_size_x = 64) in;

layout(push_constant) uniform Parameters {
  FloatsOut x;      // (rows, stride)
  Floats cosines;   // (positions, pairs)
  Floats sines;
  Words positions;  // (rows)
  uint stride;
  uint heads;
  uint head_length;
  uint pairs;
  uint neox;
} p;

void main() {
  const uint at = gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x;
  if (at >= p.heads * p.pairs) return;
  const uint i = at % p.pairs;
  const uint head = gl_WorkGroupID.y * p.stride + at / p.pairs * p.head_length;
  const uint first = head + (p.neox != 0u ? i : 2u * i);
  const uint second = p.neox != 0u ? first + p.pairs : first + 1u;
  const uint angle = p.positions.w[gl_WorkGroupID.y] * p.pairs + i;
  const float c = p.cosines.f[angle], s = p.sines.f[angle];
  const float a = flush(p.x.f[first]), b = flush(p.x.f[second]);
  precise float turned_a = a * c - b * s;
  precise float turned_b = a * s + b * c;
  p.x.f[first] = turned_a;
  p.x.f[second] = turned_b;
}
