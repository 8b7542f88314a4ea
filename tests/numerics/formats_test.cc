#include "numerics/formats.h"

#include <gtest/gtest.h>

#include <set>

#include "golden.h"
#include "numerics/float_bits.h"

namespace spillway::numerics {
namespace {

// The peer's bits, but for our flush and for the sign of zeros in F16 and BF16.
TEST(Formats, DequantizeEqualsPeer) {
  std::set<TensorType> seen;
  for (const GoldenCase& golden : read_golden_cases()) {
    seen.insert(golden.type);
    std::vector<float> values(golden.values.size());
    ASSERT_EQ(golden.raw.size(), row_bytes(golden.type, values.size()));
    dequantize_row(golden.type, golden.raw.data(), values.size(), values.data());
    for (size_t i = 0; i < values.size(); ++i) {
      const bool flushed = golden.type == TensorType::kBF16 || golden.type == TensorType::kMXFP4;
      const float wanted = flushed ? flush(golden.values[i]) : golden.values[i];
      if (wanted == 0)
        ASSERT_EQ(values[i], 0.0f) << info(golden.type).name << " " << golden.note << " value " << i;
      else
        ASSERT_EQ(bits_of(values[i]), bits_of(wanted))
            << info(golden.type).name << " " << golden.note << " value " << i;
    }
  }
  EXPECT_EQ(seen.size(), 15u);  // all but F32
}

// One block of `type` with these bytes set, dequantized.
std::vector<float> values_of(TensorType type, const std::vector<std::pair<size_t, int>>& bytes) {
  std::vector<std::byte> block(info(type).block_bytes);
  for (const auto& [at, byte] : bytes) block[at] = static_cast<std::byte>(byte);
  std::vector<float> values(info(type).block_length);
  dequantize_row(type, block.data(), values.size(), values.data());
  return values;
}

// By hand from the table in formats.h. 0x3c00 is 1, 0x4000 is 2, 0x3800 is 0.5.
TEST(Formats, ByHand32) {
  std::vector<float> v = values_of(TensorType::kQ4_0, {{1, 0x40}, {2 + 3, 0x9f}});
  EXPECT_EQ(v[3], 2.0f * (15 - 8));
  EXPECT_EQ(v[19], 2.0f * (9 - 8));
  EXPECT_EQ(v[0], -16.0f);
  v = values_of(TensorType::kQ4_1, {{1, 0x40}, {3, 0x38}, {4 + 15, 0x9f}});
  EXPECT_EQ(v[15], 30.5f);
  EXPECT_EQ(v[31], 18.5f);
  EXPECT_EQ(v[0], 0.5f);
  v = values_of(TensorType::kQ5_0, {{1, 0x3c}, {2 + 2, 0x08}, {6 + 3, 0x21}});  // bit 19 of qh
  EXPECT_EQ(v[19], 16 + 2 - 16);
  EXPECT_EQ(v[3], 1 - 16);
  v = values_of(TensorType::kQ5_1, {{1, 0x3c}, {3, 0xbc}, {4 + 3, 0x80}, {8 + 15, 0x30}});
  EXPECT_EQ(v[31], 16 + 3 - 1);
  v = values_of(TensorType::kQ8_0, {{1, 0x38}, {2 + 31, 0x80}});
  EXPECT_EQ(v[31], -64.0f);
  EXPECT_EQ(v[0], 0.0f);
  v = values_of(TensorType::kIQ4_NL, {{1, 0x3c}, {2, 0x8f}});
  EXPECT_EQ(v[0], 113.0f);
  EXPECT_EQ(v[16], 1.0f);
  EXPECT_EQ(v[1], -127.0f);
  // One MXFP4 tensor row as the format's specification has it: 2^(127-127) times 6, -0.5, 0.
  v = values_of(TensorType::kMXFP4, {{0, 127}, {1, 0x97}});
  EXPECT_EQ(v[0], 6.0f);
  EXPECT_EQ(v[16], -0.5f);
  EXPECT_EQ(v[1], 0.0f);
}

TEST(Formats, ByHand256) {
  // Value 77 of Q2_K: byte 13 of qs (77/128 = 0, 77%32 = 13), bits 4..5 (77/32 = 2); sub-block 4.
  std::vector<float> v = values_of(TensorType::kQ2_K, {{4, 0x25}, {16 + 13, 0x30}, {81, 0x3c}, {83, 0x40}});
  EXPECT_EQ(v[77], 5.0f * 3 - 2.0f * 2);
  EXPECT_EQ(v[78], -4.0f);
  // Value 205 of Q3_K: byte 32 + 13 of qs, bits 4..5, bit 6 of hmask[13]; scale 12: high nibble of scales[4],
  // high bits 6..7 of scales[8].
  v = values_of(TensorType::kQ3_K,
                {{13, 0x40}, {32 + 45, 0x20}, {96 + 4, 0x90}, {96 + 8, 0x80}, {109, 0x3c}});
  EXPECT_EQ(v[205], (0x29 - 32) * 2.0f);
  EXPECT_EQ(v[204], (0x29 - 32) * -4.0f);
  // Value 170 of Q4_K: byte 64 + 10 of qs, sub-block 5, high nibble; scale 5: low bits of scales[9], top of
  // scales[1]; minimum 5: high bits of scales[9], top of scales[5].
  const std::vector<std::pair<size_t, int>> scales = {
      {1, 0x3c}, {3, 0x38}, {4 + 9, 0x37}, {4 + 1, 0x80}, {4 + 5, 0xc0}};
  std::vector<std::pair<size_t, int>> bytes = scales;
  bytes.push_back({16 + 74, 0xb0});
  v = values_of(TensorType::kQ4_K, bytes);
  EXPECT_EQ(v[170], 39.0f * 11 - 0.5f * 51);
  // The same in Q5_K, with bit 5 of qh[10] set.
  bytes = scales;
  bytes.insert(bytes.end(), {{48 + 74, 0xb0}, {16 + 10, 0x20}});
  v = values_of(TensorType::kQ5_K, bytes);
  EXPECT_EQ(v[170], 39.0f * 27 - 0.5f * 51);
  // Value 239 of Q6_K: h 1, t 3, l 15: high nibble of ql[64 + 32 + 15], bits 6..7 of qh[32 + 15]; scale 14.
  v = values_of(TensorType::kQ6_K, {{111, 0x50}, {128 + 47, 0x80}, {192 + 14, 0xfd}, {209, 0x3c}});
  EXPECT_EQ(v[239], -3.0f * (0x25 - 32));
  EXPECT_EQ(v[238], -3.0f * -32);
  // Value 113 of IQ4_XS: sub-block 3, value 17: high nibble of qs[48 + 1]; scale: high nibble of scales_l[1],
  // bits 6..7 of scales_h.
  v = values_of(TensorType::kIQ4_XS, {{1, 0x3c}, {2, 0x40}, {4 + 1, 0x70}, {8 + 49, 0xf0}});
  EXPECT_EQ(v[113], (0x17 - 32) * 113.0f);
}

TEST(Formats, FloatRows) {
  const float f32[] = {1.5f, 0x1p-41f, -0.0f};
  EXPECT_EQ(load_float(TensorType::kF32, reinterpret_cast<const std::byte*>(f32)), 1.5f);
  EXPECT_EQ(bits_of(load_float(TensorType::kF32, reinterpret_cast<const std::byte*>(f32 + 1))), 0u);
  EXPECT_EQ(bits_of(load_float(TensorType::kF32, reinterpret_cast<const std::byte*>(f32 + 2))), 0u);
}

}  // namespace
}  // namespace spillway::numerics
