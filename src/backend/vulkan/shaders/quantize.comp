// Activations to int8 blocks (numerics/activation.h). A workgroup takes 256 values of a row: one block of 256
// or eight of 32; a thread four values.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "numerics.glsl"

layout(constant_id = 0) const uint BLOCK_LENGTH = 32;

layout(local_size_x = 64) in;

layout(push_constant) uniform Parameters {
  Floats x;      // (rows, x_stride)
  WordsOut q;    // (rows, cols / 4)
  FloatsOut d;   // (rows, cols / BLOCK_LENGTH)
  WordsOut sums; // (rows, cols / 32), or for blocks of 256 (rows, cols / 16)
  uint cols;
  uint x_stride;
} p;

const uint kInverse127Bits = 0x3c010204u;

shared uint largest[8];
shared int sums[16];

void main() {
  const uint thread = gl_LocalInvocationID.x, row = gl_WorkGroupID.y;
  const uint sum_length = BLOCK_LENGTH == 256u ? 16u : 32u;
  const uint i = gl_WorkGroupID.x * 256u + 4u * thread;
  const uint block = 4u * thread / BLOCK_LENGTH, part = 4u * thread / sum_length;
  const bool inside = i < p.cols;
  if (thread < 8u) largest[thread] = 0u;
  if (thread < 16u) sums[thread] = 0;
  barrier();

  float x[4];
  uint magnitude = 0u;
  [[unroll]] for (uint k = 0u; k < 4u; ++k) {
    x[k] = inside ? flush(p.x.f[row * p.x_stride + i + k]) : 0.0;
    magnitude = max(magnitude, floatBitsToUint(x[k]) & kMagnitudeMask);
  }
  atomicMax(largest[block], magnitude);
  barrier();

  const uint bits = largest[block];
  const float a = uintBitsToFloat(bits);
  precise float scaled = a * uintBitsToFloat(kInverse127Bits);
  const float dx = bits >= kHugeBits ? uintBitsToFloat(kNanBits) : flush(scaled);
  uint packed = 0u;
  if (inside && bits < kHugeBits && (floatBitsToUint(dx) & kMagnitudeMask) != 0u) {
    precise float r = 127.0 * reciprocal(a);
    int sum = 0;
    [[unroll]] for (uint k = 0u; k < 4u; ++k) {
      precise float code = x[k] * r;
      const int q = clamp(round_half_even(code), -127, 127);
      sum += q;
      packed |= (uint(q) & 0xffu) << (8u * k);
    }
    atomicAdd(sums[part], sum);
  }
  barrier();

  if (!inside) return;
  p.q.w[(row * p.cols + i) / 4u] = packed;
  if (4u * thread % BLOCK_LENGTH == 0u) p.d.f[(row * p.cols + i) / BLOCK_LENGTH] = dx;
  if (4u * thread % sum_length == 0u) p.sums.w[(row * p.cols + i) / sum_length] = uint(sums[part]);
}
