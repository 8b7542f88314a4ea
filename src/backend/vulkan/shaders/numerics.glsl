// numerics/float_bits.h, elementary.h and reduce.h in GLSL: the same sequences, so the same bits. Every float
// sum and product is assigned to a `precise` variable, which becomes NoContraction in SPIR-V; a test checks
// that none is left out. Memory is read as 32-bit words through buffer addresses: no 8- or 16-bit storage is
// needed.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_control_flow_attributes : require

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Words { uint w[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Ints { int i[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Floats { float f[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer WordsOut { uint w[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer FloatsOut { float f[]; };

const uint kNone = 0xffffffffu;

// ---- float_bits.h ----
const uint kSignMask = 0x80000000u;
const uint kMagnitudeMask = 0x7fffffffu;
const uint kInfinityBits = 0x7f800000u;
const uint kNanBits = 0x7fc00000u;
const uint kFlushBits = (127u - 40u) << 23;
const uint kHugeBits = (127u + 100u) << 23;
const float kRoundMagic = 12582912.0;
const uint kRoundMagicBits = 0x4b400000u;

bool is_nan(float x) { return (floatBitsToUint(x) & kMagnitudeMask) > kInfinityBits; }

float minus_infinity() { return uintBitsToFloat(kSignMask | kInfinityBits); }

float flush(float x) {
  uint bits = floatBitsToUint(x);
  return uintBitsToFloat((bits & kMagnitudeMask) < kFlushBits ? 0u : bits);
}

int round_half_even(float x) {
  precise float sum = x + kRoundMagic;
  return int(floatBitsToUint(sum) - kRoundMagicBits);
}

float f16_to_f32(uint bits) {
  uint sign = (bits & 0x8000u) << 16;
  uint exponent = (bits >> 10) & 0x1fu;
  uint fraction = bits & 0x3ffu;
  uint result;
  if (exponent == 31u) {
    result = sign | kInfinityBits | (fraction << 13);
  } else if (exponent != 0u) {
    result = sign | ((exponent + 112u) << 23) | (fraction << 13);
  } else if (fraction == 0u) {
    result = sign;
  } else {
    int shift = 10 - findMSB(fraction);
    result = sign | (uint(113 - shift) << 23) | (((fraction << shift) & 0x3ffu) << 13);
  }
  return uintBitsToFloat(result);
}

uint f32_to_f16(float x) {
  uint bits = floatBitsToUint(x);
  uint sign = (bits >> 16) & 0x8000u;
  uint magnitude = bits & kMagnitudeMask;
  if (magnitude > kInfinityBits) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
  if (magnitude < 0x33000000u) return sign;
  uint kept, rest, halfway;
  if (magnitude >= 0x38800000u) {
    kept = (magnitude >> 13) - (112u << 10);
    rest = magnitude & 0x1fffu;
    halfway = 0x1000u;
  } else {
    uint drop = 126u - (magnitude >> 23);
    uint significand = (magnitude & 0x7fffffu) | 0x800000u;
    kept = significand >> drop;
    rest = significand & ((1u << drop) - 1u);
    halfway = 1u << (drop - 1u);
  }
  if (rest > halfway || (rest == halfway && (kept & 1u) != 0u)) ++kept;
  return sign | kept;
}

float e8m0_half_to_f32(uint e) { return uintBitsToFloat(e < 2u ? 0x00200000u << e : (e - 1u) << 23); }

// ---- elementary.h ----
float max_select(float a, float b) { return a > b ? a : b; }

float reciprocal(float x) {
  precise float y = uintBitsToFloat(0x7ef30000u - floatBitsToUint(x));
  y = y + y * (1.0 - x * y);
  y = y + y * (1.0 - x * y);
  y = y + y * (1.0 - x * y);
  return y;
}

float rsqrt(float value) {
  const float low = uintBitsToFloat(0x17800000u);   // 2^-80
  const float high = uintBitsToFloat(0x71800000u);  // 2^100
  float x = value < low ? low : value;
  x = x > high ? high : x;
  precise float y = uintBitsToFloat(0x5f374000u - (floatBitsToUint(x) >> 1));
  y = y + (0.5 * y) * (1.0 - (x * y) * y);
  y = y + (0.5 * y) * (1.0 - (x * y) * y);
  y = y + (0.5 * y) * (1.0 - (x * y) * y);
  return y;
}

float exp_of(float x) {
  float v = x > 88.0 ? 88.0 : x;
  precise float n = v * 1.4426950216293335 + kRoundMagic;
  precise float k = n - kRoundMagic;
  precise float r = (v - k * 0.693359375) - k * -0.00021219444170128554;
  precise float p = 0.0013926213141530752;
  p = p * r + 0.008363203145563602;
  p = p * r + 0.041666556149721146;
  p = p * r + 0.16666576266288757;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  float scale = uintBitsToFloat((floatBitsToUint(n) - kRoundMagicBits + 127u) << 23);
  precise float y = p * scale;
  return x < -41.5 ? 0.0 : y;
}

float sigmoid(float x) {
  float e = exp_of(uintBitsToFloat(floatBitsToUint(x) | kSignMask));
  precise float denominator = 1.0 + e;
  float s = reciprocal(denominator);
  precise float product = e * s;
  return x < 0.0 ? product : s;
}

float silu(float x) {
  float v = flush(x);
  precise float y = v * sigmoid(v);
  return y;
}

// ---- integers ----
// The sum of four products of signed bytes, by the device's own instruction where there is one
// (SPV_KHR_integer_dot_product: OpSDot of packed bytes).
#ifdef INTEGER_DOT
#extension GL_EXT_spirv_intrinsics : require
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4450)
int packed_dot(int a, int b, spirv_literal int packed_format);
int dot4(uint a, uint b) { return packed_dot(int(a), int(b), 0); }
#else
int dot4(uint a, uint b) {
  int sum = bitfieldExtract(int(a), 0, 8) * bitfieldExtract(int(b), 0, 8);
  sum += bitfieldExtract(int(a), 8, 8) * bitfieldExtract(int(b), 8, 8);
  sum += bitfieldExtract(int(a), 16, 8) * bitfieldExtract(int(b), 16, 8);
  sum += bitfieldExtract(int(a), 24, 8) * bitfieldExtract(int(b), 24, 8);
  return sum;
}
#endif
