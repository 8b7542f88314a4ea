#include "numerics/float_bits.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spillway::numerics {
namespace {

// The value of a half from its definition, in double.
double half_value(uint16_t half) {
  const double sign = half & 0x8000 ? -1.0 : 1.0;
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

TEST(FloatBits, EveryHalfThereAndBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const double wanted = half_value(half);
    const float got = f16_to_f32(half);
    if (std::isnan(wanted)) {
      ASSERT_TRUE(is_nan(got)) << bits;
      ASSERT_EQ(f32_to_f16(got), (bits & 0x8000) | 0x7e00) << bits;
      continue;
    }
    ASSERT_EQ(bits_of(got), bits_of(static_cast<float>(wanted))) << bits;
    ASSERT_EQ(f32_to_f16(got), half) << bits;
  }
}

// Between neighbouring halves: just below, at and just above the middle.
TEST(FloatBits, HalfRoundsToEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = f16_to_f32(static_cast<uint16_t>(bits));
    const float high = f16_to_f32(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) * 0.5f;  // exact
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    for (const uint32_t sign : {0u, 0x8000u}) {
      const auto signed_half = [&](float x) { return f32_to_f16(sign != 0 ? -x : x); };
      ASSERT_EQ(signed_half(middle), sign | even) << bits;
      ASSERT_EQ(signed_half(std::nextafterf(middle, 0)), sign | bits) << bits;
      ASSERT_EQ(signed_half(std::nextafterf(middle, INFINITY)), sign | (bits + 1)) << bits;
    }
  }
}

TEST(FloatBits, HalfOfLargeAndSmall) {
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(f32_to_f16(INFINITY), 0x7c00);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0x0000);
  EXPECT_EQ(f32_to_f16(0x1.000002p-25f), 0x0001);
  EXPECT_EQ(f32_to_f16(-0x1p-140f), 0x8000);
}

TEST(FloatBits, OtherFormats) {
  EXPECT_EQ(bf16_to_f32(0x3fc0), 1.5f);
  EXPECT_EQ(e8m0_half_to_f32(128), 1.0f);
  EXPECT_EQ(e8m0_half_to_f32(2), 0x1p-126f);
  EXPECT_EQ(e8m0_half_to_f32(1), 0x1p-127f);
  EXPECT_EQ(e8m0_half_to_f32(0), 0x1p-128f);
  EXPECT_EQ(e8m0_half_to_f32(255), 0x1p127f);
}

TEST(FloatBits, Flush) {
  EXPECT_EQ(flush(0x1p-40f), 0x1p-40f);
  EXPECT_EQ(flush(-0x1p-40f), -0x1p-40f);
  EXPECT_EQ(bits_of(flush(-0x1.fffffep-41f)), 0u);
  EXPECT_EQ(bits_of(flush(-0.0f)), 0u);
  EXPECT_EQ(bits_of(flush(0x1p-149f)), 0u);
  EXPECT_EQ(flush(-INFINITY), -INFINITY);
  EXPECT_TRUE(is_nan(flush(NAN)));
}

TEST(FloatBits, RoundHalfEven) {
  const float values[] = {0.5f,        1.5f,   2.5f,    -0.5f,      -1.5f, -2.5f,
                          0.49999997f, 126.5f, -127.5f, 4194303.5f, 3.0f};
  const int wanted[] = {0, 2, 2, 0, -2, -2, 0, 126, -128, 4194304, 3};
  for (size_t i = 0; i < std::size(values); ++i)
    EXPECT_EQ(round_half_even(values[i]), wanted[i]) << values[i];
}

}  // namespace
}  // namespace spillway::numerics
