#include "numerics/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "all_types.h"
#include "golden.h"
#include "numerics/activation.h"
#include "numerics/float_bits.h"

namespace spillway::numerics {
namespace {

// Worked out by hand from B = ceil(n / S).
TEST(Segments, Bounds) {
  const auto bounds = [](uint32_t n, uint32_t segments) {
    std::string text;
    for (uint32_t s = 0; s < segments; ++s) {
      const SegmentBounds b = segment_bounds(n, segments, s);
      text += fmt::format("{}-{} ", b.begin, b.end);
    }
    return text;
  };
  EXPECT_EQ(bounds(8, 4), "0-2 2-4 4-6 6-8 ");
  EXPECT_EQ(bounds(9, 4), "0-3 3-6 6-9 9-9 ");
  EXPECT_EQ(bounds(3, 4), "0-1 1-2 2-3 3-3 ");
  EXPECT_EQ(bounds(5, 4), "0-2 2-4 4-5 5-5 ");
  EXPECT_EQ(bounds(0, 4), "0-0 0-0 0-0 0-0 ");
  EXPECT_EQ(bounds(1, 8), "0-1 1-1 1-1 1-1 1-1 1-1 1-1 1-1 ");
  EXPECT_EQ(bounds(10, 8), "0-2 2-4 4-6 6-8 8-10 10-10 10-10 10-10 ");
}

TEST(Segments, EveryBlockOnce) {
  for (const uint32_t segments : {4u, 8u}) {
    for (uint32_t n = 0; n < 300; ++n) {
      uint32_t next = 0;
      for (uint32_t s = 0; s < segments; ++s) {
        const SegmentBounds b = segment_bounds(n, segments, s);
        ASSERT_EQ(b.begin, next);
        ASSERT_LE(b.begin, b.end);
        next = b.end;
      }
      ASSERT_EQ(next, n);
    }
  }
}

// 1 disappears beside 2^24, so the order of the tree shows.
TEST(Segments, Tree) {
  const float big = 0x1p24f;
  const float eight[] = {big, 1, -big, 1, 0.25f, 0.5f, 0, 4};
  EXPECT_EQ(segment_tree(eight, 8), 5.75f);  // (2^24 + (-2^24 + 1)) + (0.75 + 4)
  const float four[] = {big, 1, 1, -big};    // one by one it would be 0
  EXPECT_EQ(segment_tree(four, 4), 1.0f);
}

// An F32 row of 9 columns has segments of 2, 2, 2, 2, 1, 0, 0, 0. By hand: (2^24 + 1) = 2^24 in the first
// segment.
TEST(Product, FloatRowOrder) {
  const float w[9] = {0x1p24f, 1, -0x1p24f, 0.5f, 1, 1, 1, 1, 0x1p-41f};
  const float x[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  ActivationRow row;
  row.f32 = x;
  // s0 = 2^24 (1 lost to even), s1 = -2^24 + 0.5 = -16777215.5 -> tie to even -16777216, s2 = 2, s3 = 2, s4
  // flushed 0
  EXPECT_EQ(row_product(TensorType::kF32, reinterpret_cast<const std::byte*>(w), row, 9), 4.0f);
}

// Two blocks of Q8_0 by hand. d = 0.5 and 2; q = 1, 2, ..., weights 3 and -128.
TEST(Product, Q8ByHand) {
  std::vector<std::byte> row(68);
  const auto put = [&](size_t block, uint16_t d, size_t i, int8_t value) {
    row[34 * block] = static_cast<std::byte>(d & 255);
    row[34 * block + 1] = static_cast<std::byte>(d >> 8);
    row[34 * block + 2 + i] = static_cast<std::byte>(value);
  };
  put(0, 0x3800, 4, 3);
  put(1, 0x4000, 31, -128);
  std::vector<int8_t> q(64);
  q[4] = 5;
  q[31] = 99;  // meets a zero
  q[63] = 100;
  const float d[] = {2.0f, 0.25f};
  const int16_t sums[] = {104, 100};
  const ActivationRow x = {nullptr, q.data(), d, sums};
  EXPECT_EQ(row_product(TensorType::kQ8_0, row.data(), x, 64), 0.5f * 2 * 15 + 2 * 0.25f * -12800);
}

// The sums of the block are exact and the rest rounds about 2 * blocks times: for every golden block the
// product is close to the same product in double of the dequantized values with d * q.
TEST(Product, EqualsDoubleWithinRounding) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const GoldenCase& golden : read_golden_cases()) {
    const FormatTraits traits = format_traits(golden.type);
    const size_t n = golden.values.size();
    std::vector<float> x(n), w(n), d(n);
    std::vector<int8_t> q(n);
    std::vector<int16_t> sums(n);
    for (float& v : x) v = normal(random);
    dequantize_row(golden.type, golden.raw.data(), n, w.data());
    ActivationRow row;
    if (!traits.quantized) {
      row.f32 = x.data();
    } else {
      (traits.block_length == 256 ? quantize_row_256 : quantize_row_32)(x.data(), n, q.data(), d.data(),
                                                                        sums.data());
      row = {nullptr, q.data(), d.data(), sums.data()};
      for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(q[i]) * d[i / traits.block_length];
    }
    double exact = 0, magnitude = 0;
    for (size_t i = 0; i < n; ++i) {
      exact += double{w[i]} * x[i];
      magnitude += std::abs(double{w[i]} * x[i]);
    }
    const float got = row_product(golden.type, golden.raw.data(), row, n);
    if (!std::isfinite(exact)) {
      EXPECT_FALSE(std::isfinite(got));
      continue;
    }
    EXPECT_NEAR(got, exact, magnitude * 0x1p-20 + 1e-30) << info(golden.type).name << " " << golden.note;
  }
}

// A block of NaN scale, as a damaged expert has it, makes its own row NaN and nothing else.
TEST(Product, NanScale) {
  std::vector<std::byte> row(18);
  row[1] = std::byte{0x7e};  // d = NaN
  std::vector<int8_t> q(32, 1);
  const float d = 1;
  const int16_t sum = 32;
  EXPECT_TRUE(std::isnan(row_product(TensorType::kQ4_0, row.data(), {nullptr, q.data(), &d, &sum}, 32)));
}

}  // namespace
}  // namespace spillway::numerics
