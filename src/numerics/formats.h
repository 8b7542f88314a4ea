// The block formats of GGUF tensors: where each field lies in a block, and how a block unpacks to the
// canonical form that the products are defined on (docs/numerics.md, "Quantized products"). The facts are
// those of ggml's formats.
//
// Blocks are little-endian. Below, "f16" is an IEEE half; q(i) is the stored code of value i of the block.
//
//  Q4_0   d f16, qs[16]                 q(i) = nibble: low nibbles hold values 0..15, high nibbles 16..31
//  Q4_1   d f16, m f16, qs[16]          as Q4_0
//  Q5_0   d f16, qh[4], qs[16]          as Q4_0, bit i of qh (a 32-bit word) is the fifth bit of value i
//  Q5_1   d f16, m f16, qh[4], qs[16]   as Q5_0
//  Q8_0   d f16, qs[32] int8
//  IQ4_NL d f16, qs[16]                 as Q4_0, a nibble is an index into kIq4Values
//  MXFP4  e u8, qs[16]                  as Q4_0, a nibble is an index into kMxfp4Values; scale 2^(e-128)
//  Q2_K   scales[16], qs[64], d f16, dmin f16
//         value i: byte 32*(i/128) + i%32 of qs, bits 2t,2t+1 with t = (i/32)%4; sub-block i/16: low nibble
//         of its scales byte is the scale, high nibble the minimum
//  Q3_K   hmask[32], qs[64], scales[12], d f16
//         two low bits as Q2_K; bit i/32 of hmask[i%32] is the third. Scale j (6 bits, minus 32): low four
//         bits from nibble j/8 of scales[j%8], high two from bits 2(j/4).. of scales[8 + j%4]
//  Q4_K   d f16, dmin f16, scales[12], qs[128]
//         value i: byte 32*(i/64) + i%32 of qs, low nibble where (i/32) is even, else the high one. Eight
//         scales and minima of 6 bits: j < 4: the low six bits of scales[j] and scales[j+4]; else low four
//         bits from the low (scale) and high (minimum) nibble of scales[j+4], high two from the top of
//         scales[j-4] and scales[j]
//  Q5_K   d f16, dmin f16, scales[12], qh[32], qs[128]
//         as Q4_K; bit i/32 of qh[i%32] is the fifth
//  Q6_K   ql[128], qh[64], scales[16] int8, d f16
//         value i, h = i/128, t = (i/32)%4, l = i%32: four low bits are nibble t/2 of ql[64h + 32(t%2) + l],
//         two high ones bits 2t,2t+1 of qh[32h + l]
//  IQ4_XS d f16, scales_h u16, scales_l[4], qs[128]
//         sub-block j (32 values): scale is nibble j%2 of scales_l[j/2], high two bits 2j.. of scales_h,
//         minus 32; its 16 bytes of qs as IQ4_NL
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"

namespace spillway::numerics {

inline constexpr uint32_t kMaxBlockLength = 256;
inline constexpr uint32_t kMaxSubBlocks = 16;

// One block: value i is d * sc[i/sub] * (u[i] - bias) + dm * m[i/sub]. Unused parts of the arrays are zero.
struct CanonicalBlock {
  std::array<uint8_t, kMaxBlockLength> u;
  std::array<int16_t, kMaxSubBlocks> sc;
  std::array<uint8_t, kMaxSubBlocks> m;
  float d;   // flushed
  float dm;  // flushed; +0 for types without minima
};

// What is the same for all blocks of a type. `quantized` is false for F32, F16 and BF16, whose block is one
// value.
struct FormatTraits {
  bool quantized;
  bool has_minima;
  uint16_t block_length;
  uint16_t sub_length;
  int16_t bias;
  uint8_t segments;  // S of the order of a row's sum

  uint32_t sub_blocks() const { return block_length / sub_length; }
};
FormatTraits format_traits(TensorType type);

// The sixteen values of IQ4_NL and IQ4_XS, and MXFP4's doubled to integers (code 8, minus zero, is 0).
inline constexpr std::array<int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                      1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr std::array<int8_t, 16> kMxfp4Values = {0, 1,  2,  3,  4,  6,  8,  12,
                                                        0, -1, -2, -3, -4, -6, -8, -12};

// Unpacks one block. Requires: format_traits(type).quantized and info(type).block_bytes bytes at `block`.
void unpack_block(TensorType type, const std::byte* block, CanonicalBlock& out);

// One value of F32, F16 or BF16 as float32, flushed (F16's -0 becomes +0).
float load_float(TensorType type, const std::byte* value);

// The values of a row of n: `(d * float(sc)) * float(u - bias)`, then `+ dm * float(m)` for types with
// minima, which gives ggml's values bit for bit but for the flush (MXFP4 exponents below 88, small F32 and
// BF16) and the sign of F16, F32 and BF16 zeros. Requires: n % block_length == 0.
void dequantize_row(TensorType type, const std::byte* row, size_t n, float* out);

}  // namespace spillway::numerics
