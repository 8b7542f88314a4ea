// Shaders that break a rule of docs/numerics.md, one for each FAULT; FAULT 0 keeps them all. The shader test
// must catch every one.
#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : enable
#extension GL_KHR_shader_subgroup_arithmetic : enable

layout(local_size_x = 16) in;
layout(std430, binding = 0) readonly buffer Values { float v[]; };
layout(std430, binding = 1) writeonly buffer Results { float w[]; };

void main() {
  const uint i = gl_LocalInvocationID.x;
  precise float sum = v[i] * v[i + 16u] + v[i + 32u];
#if FAULT == 1
  float y = v[i] + sum;  // not precise: may be fused
  w[i] = y;
#elif FAULT == 2
  w[i] = v[i] * sum;
#elif FAULT == 3
  precise float y = v[i] / sum;
  w[i] = y;
#elif FAULT == 4
  w[i] = sqrt(sum);
#elif FAULT == 5
  w[i] = exp(sum);
#elif FAULT == 6
  precise float y = fma(v[i], sum, v[i]);
  w[i] = y;
#elif FAULT == 7
  w[i] = float(float16_t(sum));
#elif FAULT == 8
  w[i] = subgroupAdd(sum);
#elif FAULT == 9
  w[i] = inversesqrt(sum);
#elif FAULT == 10
  precise float y = dot(vec2(v[i], sum), vec2(sum, v[i]));
  w[i] = y;
#elif FAULT == 11
  w[i] = unpackHalf2x16(floatBitsToUint(sum)).x;
#elif FAULT == 12
  w[i] = max(v[i], sum);
#else
  w[i] = sum;
#endif
}
