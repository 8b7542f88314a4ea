#include "numerics/formats.h"

#include <cstring>

#include "base/assert.h"
#include "numerics/float_bits.h"
#include "numerics/layout.h"

namespace spillway::numerics {
namespace {

using enum TensorType;

uint8_t byte_at(const std::byte* p, size_t i) { return std::to_integer<uint8_t>(p[i]); }

template <class T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

float scale_at(const std::byte* p) { return flush(f16_to_f32(load<uint16_t>(p))); }

uint8_t nibble(uint8_t byte, size_t index) { return index == 0 ? byte & 0xf : byte >> 4; }

// The 32 nibbles of 16 bytes in the order of the `_0/_1` types.
void unpack_nibbles(const std::byte* qs, uint8_t* u) {
  for (size_t i = 0; i < 32; ++i) u[i] = nibble(byte_at(qs, i % 16), i / 16);
}

template <size_t kSize>
void map_values(const std::array<int8_t, kSize>& values, uint8_t* u, size_t n) {
  for (size_t i = 0; i < n; ++i) u[i] = static_cast<uint8_t>(values[u[i]] + 128);
}

void add_fifth_bits(const std::byte* qh, uint8_t* u) {
  const auto word = load<uint32_t>(qh);
  for (size_t i = 0; i < 32; ++i) u[i] |= static_cast<uint8_t>(((word >> i) & 1u) << 4);
}

// The eight 6-bit scales and minima of Q4_K and Q5_K.
void unpack_scales_and_minima(const std::byte* scales, CanonicalBlock& out) {
  for (size_t j = 0; j < 8; ++j) {
    if (j < 4) {
      out.sc[j] = byte_at(scales, j) & 63;
      out.m[j] = byte_at(scales, j + 4) & 63;
    } else {
      out.sc[j] = static_cast<int16_t>((byte_at(scales, j + 4) & 0xf) | ((byte_at(scales, j - 4) >> 6) << 4));
      out.m[j] = static_cast<uint8_t>((byte_at(scales, j + 4) >> 4) | ((byte_at(scales, j) >> 6) << 4));
    }
  }
}

// Nibbles of Q4_K and Q5_K: 64 values share 32 bytes.
void unpack_k_nibbles(const std::byte* qs, uint8_t* u) {
  for (size_t i = 0; i < 256; ++i) u[i] = nibble(byte_at(qs, i / 64 * 32 + i % 32), i / 32 % 2);
}

// Two-bit codes of Q2_K and Q3_K: 128 values share 32 bytes.
void unpack_k_pairs(const std::byte* qs, uint8_t* u) {
  for (size_t i = 0; i < 256; ++i) u[i] = (byte_at(qs, i / 128 * 32 + i % 32) >> (i / 32 % 4 * 2)) & 3;
}

void unpack_q2_k(const std::byte* block, CanonicalBlock& out) {
  namespace at = layout::q2_k;
  out.d = scale_at(block + at::kD);
  out.dm = flush(-f16_to_f32(load<uint16_t>(block + at::kDmin)));
  for (size_t j = 0; j < 16; ++j) {
    out.sc[j] = byte_at(block, at::kScales + j) & 0xf;
    out.m[j] = byte_at(block, at::kScales + j) >> 4;
  }
  unpack_k_pairs(block + at::kQs, out.u.data());
}

void unpack_q3_k(const std::byte* block, CanonicalBlock& out) {
  namespace at = layout::q3_k;
  out.d = scale_at(block + at::kD);
  const std::byte* scales = block + at::kScales;
  for (size_t j = 0; j < 16; ++j) {
    const int low = nibble(byte_at(scales, j % 8), j / 8);
    const int high = (byte_at(scales, 8 + j % 4) >> (j / 4 * 2)) & 3;
    out.sc[j] = static_cast<int16_t>((low | (high << 4)) - 32);
  }
  unpack_k_pairs(block + at::kQs, out.u.data());
  for (size_t i = 0; i < 256; ++i)
    out.u[i] |= static_cast<uint8_t>(((byte_at(block, at::kHmask + i % 32) >> (i / 32)) & 1) << 2);
}

void unpack_q4_k(const std::byte* block, CanonicalBlock& out) {
  namespace at = layout::q4_k;
  out.d = scale_at(block + at::kD);
  out.dm = flush(-f16_to_f32(load<uint16_t>(block + at::kDmin)));
  unpack_scales_and_minima(block + at::kScales, out);
  unpack_k_nibbles(block + at::kQs, out.u.data());
}

void unpack_q5_k(const std::byte* block, CanonicalBlock& out) {
  namespace at = layout::q5_k;
  out.d = scale_at(block + at::kD);
  out.dm = flush(-f16_to_f32(load<uint16_t>(block + at::kDmin)));
  unpack_scales_and_minima(block + at::kScales, out);
  unpack_k_nibbles(block + at::kQs, out.u.data());
  for (size_t i = 0; i < 256; ++i)
    out.u[i] |= static_cast<uint8_t>(((byte_at(block, at::kQh + i % 32) >> (i / 32)) & 1) << 4);
}

void unpack_q6_k(const std::byte* block, CanonicalBlock& out) {
  namespace at = layout::q6_k;
  out.d = scale_at(block + at::kD);
  for (size_t j = 0; j < 16; ++j) out.sc[j] = static_cast<int8_t>(byte_at(block, at::kScales + j));
  for (size_t i = 0; i < 256; ++i) {
    const size_t h = i / 128, t = i / 32 % 4, l = i % 32;
    const uint8_t low = nibble(byte_at(block, at::kQl + 64 * h + 32 * (t % 2) + l), t / 2);
    const uint8_t high = (byte_at(block, at::kQh + 32 * h + l) >> (2 * t)) & 3;
    out.u[i] = static_cast<uint8_t>(low | (high << 4));
  }
}

void unpack_iq4_xs(const std::byte* block, CanonicalBlock& out) {
  namespace at = layout::iq4_xs;
  out.d = scale_at(block + at::kD);
  const auto high = load<uint16_t>(block + at::kScalesH);
  for (size_t j = 0; j < 8; ++j) {
    const int low = nibble(byte_at(block, at::kScalesL + j / 2), j % 2);
    out.sc[j] = static_cast<int16_t>((low | (((high >> (2 * j)) & 3) << 4)) - 32);
    unpack_nibbles(block + at::kQs + 16 * j, out.u.data() + 32 * j);
  }
  map_values(kIq4Values, out.u.data(), 256);
}

}  // namespace

FormatTraits format_traits(TensorType type) {
  switch (type) {  //     quantized, minima, L, sub, bias, S
    case kF32:
    case kF16:
    case kBF16:
      return {false, false, 1, 1, 0, 8};
    case kQ4_0:
      return {true, false, 32, 32, 8, 8};
    case kQ4_1:
      return {true, true, 32, 32, 0, 8};
    case kQ5_0:
      return {true, false, 32, 32, 16, 8};
    case kQ5_1:
      return {true, true, 32, 32, 0, 8};
    case kQ8_0:
      return {true, false, 32, 32, 128, 8};
    case kIQ4_NL:
      return {true, false, 32, 32, 128, 8};
    case kMXFP4:
      return {true, false, 32, 32, 128, 8};
    case kQ2_K:
      return {true, true, 256, 16, 0, 4};
    case kQ3_K:
      return {true, false, 256, 16, 4, 4};
    case kQ4_K:
      return {true, true, 256, 32, 0, 4};
    case kQ5_K:
      return {true, true, 256, 32, 0, 4};
    case kQ6_K:
      return {true, false, 256, 16, 32, 4};
    case kIQ4_XS:
      return {true, false, 256, 32, 128, 4};
  }
  SW_ASSERT(!"a tensor type");
  return {};
}

void unpack_block(TensorType type, const std::byte* block, CanonicalBlock& out) {
  out = {};
  switch (type) {
    case kQ2_K:
      return unpack_q2_k(block, out);
    case kQ3_K:
      return unpack_q3_k(block, out);
    case kQ4_K:
      return unpack_q4_k(block, out);
    case kQ5_K:
      return unpack_q5_k(block, out);
    case kQ6_K:
      return unpack_q6_k(block, out);
    case kIQ4_XS:
      return unpack_iq4_xs(block, out);
    default:
      break;
  }
  out.sc[0] = 1;
  switch (type) {
    case kQ4_0:
      out.d = scale_at(block + layout::q4_0::kD);
      unpack_nibbles(block + layout::q4_0::kQs, out.u.data());
      return;
    case kQ4_1:
      out.d = scale_at(block + layout::q4_1::kD);
      out.dm = scale_at(block + layout::q4_1::kM);
      out.m[0] = 1;
      unpack_nibbles(block + layout::q4_1::kQs, out.u.data());
      return;
    case kQ5_0:
      out.d = scale_at(block + layout::q5_0::kD);
      unpack_nibbles(block + layout::q5_0::kQs, out.u.data());
      add_fifth_bits(block + layout::q5_0::kQh, out.u.data());
      return;
    case kQ5_1:
      out.d = scale_at(block + layout::q5_1::kD);
      out.dm = scale_at(block + layout::q5_1::kM);
      out.m[0] = 1;
      unpack_nibbles(block + layout::q5_1::kQs, out.u.data());
      add_fifth_bits(block + layout::q5_1::kQh, out.u.data());
      return;
    case kQ8_0:
      out.d = scale_at(block + layout::q8_0::kD);
      for (size_t i = 0; i < 32; ++i) out.u[i] = byte_at(block, layout::q8_0::kQs + i) ^ 0x80;
      return;
    case kIQ4_NL:
      out.d = scale_at(block + layout::iq4_nl::kD);
      unpack_nibbles(block + layout::iq4_nl::kQs, out.u.data());
      map_values(kIq4Values, out.u.data(), 32);
      return;
    case kMXFP4:
      out.d = flush(e8m0_half_to_f32(byte_at(block, layout::mxfp4::kE)));
      unpack_nibbles(block + layout::mxfp4::kQs, out.u.data());
      map_values(kMxfp4Values, out.u.data(), 32);
      return;
    default:
      SW_ASSERT(!"a quantized type");
  }
}

float load_float(TensorType type, const std::byte* value) {
  switch (type) {
    case kF32:
      return flush(load<float>(value));
    case kF16:
      return flush(f16_to_f32(load<uint16_t>(value)));
    case kBF16:
      return flush(bf16_to_f32(load<uint16_t>(value)));
    default:
      SW_ASSERT(!"a float type");
  }
  return 0;
}

void dequantize_row(TensorType type, const std::byte* row, size_t n, float* out) {
  const FormatTraits traits = format_traits(type);
  const size_t bytes = info(type).block_bytes;
  SW_ASSERT(n % traits.block_length == 0);
  if (!traits.quantized) {
    for (size_t i = 0; i < n; ++i) out[i] = load_float(type, row + i * bytes);
    return;
  }
  CanonicalBlock block;
  for (size_t b = 0; b < n / traits.block_length; ++b) {
    unpack_block(type, row + b * bytes, block);
    for (size_t i = 0; i < traits.block_length; ++i) {
      const size_t j = i / traits.sub_length;
      const float scaled = block.d * static_cast<float>(block.sc[j]);
      float value = scaled * static_cast<float>(int{block.u[i]} - traits.bias);
      if (traits.has_minima) value = value + block.dm * static_cast<float>(block.m[j]);
      out[b * traits.block_length + i] = value;
    }
  }
}

}  // namespace spillway::numerics
