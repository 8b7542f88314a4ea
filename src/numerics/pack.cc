#include "numerics/pack.h"

#include <cstring>

#include "base/assert.h"
#include "numerics/layout.h"

namespace spillway::numerics {
namespace {

using enum TensorType;

void put_half(std::byte* at, uint16_t bits) { std::memcpy(at, &bits, sizeof bits); }

void set_bits(std::byte& byte, uint32_t bits, uint32_t shift) {
  byte |= static_cast<std::byte>(bits << shift);
}

// Sixteen bytes of nibbles: values 0..15 low, 16..31 high.
void put_nibbles(std::byte* qs, const uint8_t* code) {
  for (size_t i = 0; i < 32; ++i) set_bits(qs[i % 16], code[i] & 0xf, 4 * (i / 16));
}

void put_fifth_bits(std::byte* qh, const uint8_t* code) {
  uint32_t word = 0;
  for (size_t i = 0; i < 32; ++i) word |= static_cast<uint32_t>(code[i] >> 4 & 1) << i;
  std::memcpy(qh, &word, sizeof word);
}

void put_k_nibbles(std::byte* qs, const uint8_t* code) {
  for (size_t i = 0; i < 256; ++i) set_bits(qs[i / 64 * 32 + i % 32], code[i] & 0xf, 4 * (i / 32 % 2));
}

void put_k_pairs(std::byte* qs, const uint8_t* code) {
  for (size_t i = 0; i < 256; ++i) set_bits(qs[i / 128 * 32 + i % 32], code[i] & 3, 2 * (i / 32 % 4));
}

// One bit of each of 256 values: bit i/32 of byte i%32.
void put_k_bit(std::byte* bits, const uint8_t* code, uint32_t bit) {
  for (size_t i = 0; i < 256; ++i) set_bits(bits[i % 32], code[i] >> bit & 1, static_cast<uint32_t>(i / 32));
}

void put_scales_and_minima(std::byte* scales, const StoredBlock& block) {
  for (size_t j = 0; j < 8; ++j) {
    const auto sc = static_cast<uint32_t>(block.sc[j]);
    const uint32_t m = block.m[j];
    if (j < 4) {
      set_bits(scales[j], sc, 0);
      set_bits(scales[j + 4], m, 0);
    } else {
      set_bits(scales[j + 4], sc & 0xf, 0);
      set_bits(scales[j + 4], m & 0xf, 4);
      set_bits(scales[j - 4], sc >> 4, 6);
      set_bits(scales[j], m >> 4, 6);
    }
  }
}

void pack_q3_k(const StoredBlock& block, std::byte* out) {
  namespace at = layout::q3_k;
  put_half(out + at::kD, block.d);
  for (size_t j = 0; j < 16; ++j) {
    const auto sc = static_cast<uint32_t>(block.sc[j] + 32);
    set_bits(out[at::kScales + j % 8], sc & 0xf, static_cast<uint32_t>(4 * (j / 8)));
    set_bits(out[at::kScales + 8 + j % 4], sc >> 4, static_cast<uint32_t>(2 * (j / 4)));
  }
  put_k_pairs(out + at::kQs, block.code.data());
  put_k_bit(out + at::kHmask, block.code.data(), 2);
}

void pack_q6_k(const StoredBlock& block, std::byte* out) {
  namespace at = layout::q6_k;
  put_half(out + at::kD, block.d);
  for (size_t j = 0; j < 16; ++j) out[at::kScales + j] = static_cast<std::byte>(block.sc[j]);
  for (size_t i = 0; i < 256; ++i) {
    const size_t h = i / 128, t = i / 32 % 4, l = i % 32;
    set_bits(out[at::kQl + 64 * h + 32 * (t % 2) + l], block.code[i] & 0xf,
             static_cast<uint32_t>(4 * (t / 2)));
    set_bits(out[at::kQh + 32 * h + l], block.code[i] >> 4, static_cast<uint32_t>(2 * t));
  }
}

void pack_iq4_xs(const StoredBlock& block, std::byte* out) {
  namespace at = layout::iq4_xs;
  put_half(out + at::kD, block.d);
  uint16_t high = 0;
  for (size_t j = 0; j < 8; ++j) {
    const auto sc = static_cast<uint32_t>(block.sc[j] + 32);
    set_bits(out[at::kScalesL + j / 2], sc & 0xf, static_cast<uint32_t>(4 * (j % 2)));
    high = static_cast<uint16_t>(high | (sc >> 4) << (2 * j));
    put_nibbles(out + at::kQs + 16 * j, block.code.data() + 32 * j);
  }
  put_half(out + at::kScalesH, high);
}

}  // namespace

void pack_block(TensorType type, const StoredBlock& block, std::byte* out) {
  std::memset(out, 0, info(type).block_bytes);
  const uint8_t* code = block.code.data();
  switch (type) {
    case kQ4_0:
    case kIQ4_NL:
      put_half(out + layout::q4_0::kD, block.d);
      return put_nibbles(out + layout::q4_0::kQs, code);
    case kMXFP4:
      out[layout::mxfp4::kE] = static_cast<std::byte>(block.d);
      return put_nibbles(out + layout::mxfp4::kQs, code);
    case kQ4_1:
      put_half(out + layout::q4_1::kD, block.d);
      put_half(out + layout::q4_1::kM, block.dm);
      return put_nibbles(out + layout::q4_1::kQs, code);
    case kQ5_0:
      put_half(out + layout::q5_0::kD, block.d);
      put_fifth_bits(out + layout::q5_0::kQh, code);
      return put_nibbles(out + layout::q5_0::kQs, code);
    case kQ5_1:
      put_half(out + layout::q5_1::kD, block.d);
      put_half(out + layout::q5_1::kM, block.dm);
      put_fifth_bits(out + layout::q5_1::kQh, code);
      return put_nibbles(out + layout::q5_1::kQs, code);
    case kQ8_0:
      put_half(out + layout::q8_0::kD, block.d);
      for (size_t i = 0; i < 32; ++i) out[layout::q8_0::kQs + i] = static_cast<std::byte>(code[i] ^ 0x80);
      return;
    case kQ2_K:
      put_half(out + layout::q2_k::kD, block.d);
      put_half(out + layout::q2_k::kDmin, block.dm);
      for (size_t j = 0; j < 16; ++j)
        out[layout::q2_k::kScales + j] = static_cast<std::byte>(block.sc[j] | block.m[j] << 4);
      return put_k_pairs(out + layout::q2_k::kQs, code);
    case kQ3_K:
      return pack_q3_k(block, out);
    case kQ4_K:
      put_half(out + layout::q4_k::kD, block.d);
      put_half(out + layout::q4_k::kDmin, block.dm);
      put_scales_and_minima(out + layout::q4_k::kScales, block);
      return put_k_nibbles(out + layout::q4_k::kQs, code);
    case kQ5_K:
      put_half(out + layout::q5_k::kD, block.d);
      put_half(out + layout::q5_k::kDmin, block.dm);
      put_scales_and_minima(out + layout::q5_k::kScales, block);
      put_k_bit(out + layout::q5_k::kQh, code, 4);
      return put_k_nibbles(out + layout::q5_k::kQs, code);
    case kQ6_K:
      return pack_q6_k(block, out);
    case kIQ4_XS:
      return pack_iq4_xs(block, out);
    default:
      SW_ASSERT(!"a quantized type");
  }
}

}  // namespace spillway::numerics
