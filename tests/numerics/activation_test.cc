#include "numerics/activation.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "numerics/float_bits.h"

namespace spillway::numerics {
namespace {

struct Block {
  std::array<int8_t, 32> q;
  float d;
};

Block quantized(std::vector<float> x) {
  x.resize(32);
  Block block;
  quantize_block(x.data(), 32, block.q.data(), block.d);
  return block;
}

bool all_zero(const Block& block) {
  return std::all_of(block.q.begin(), block.q.end(), [](int8_t q) { return q == 0; });
}

// a = 127 makes r = 127 * reciprocal(127) = 1 within an ulp; the values were chosen so that it is exactly 1.
TEST(Activation, HalvesGoToEven) {
  const Block block = quantized({127, -127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 3.25f, 126.5f});
  EXPECT_EQ(block.d, 1.0f);
  const int wanted[] = {127, -127, 0, 2, 2, 0, -2, -2, 3, 126};
  for (size_t i = 0; i < std::size(wanted); ++i) EXPECT_EQ(block.q[i], wanted[i]) << i;
}

TEST(Activation, Zeros) {
  const Block block = quantized({0.0f, -0.0f});
  EXPECT_EQ(bits_of(block.d), 0u);
  EXPECT_TRUE(all_zero(block));
}

TEST(Activation, NanAndInfinityMakeTheScaleNan) {
  for (const float bad : {NAN, -NAN, INFINITY, -INFINITY, 0x1p100f, -3e38f}) {
    const Block block = quantized({1.0f, bad, 2.0f});
    EXPECT_TRUE(is_nan(block.d)) << bad;
    EXPECT_TRUE(all_zero(block)) << bad;
  }
  const Block largest = quantized({std::nextafterf(0x1p100f, 0.0f), 0x1p99f});
  EXPECT_EQ(largest.q[0], 127);
  EXPECT_EQ(largest.q[1], 64);  // 63.5 to even
  EXPECT_TRUE(std::isfinite(largest.d));
}

TEST(Activation, SmallValues) {
  EXPECT_TRUE(all_zero(quantized({0x1p-149f, -0x1p-130f, 0x1.fffffep-41f})));
  // The scale 2^-34/127 is below 2^-40, so everything reads as zero.
  const Block small = quantized({0x1p-34f, 0x1p-35f});
  EXPECT_EQ(bits_of(small.d), 0u);
  EXPECT_TRUE(all_zero(small));
  const Block enough = quantized({0x1p-33f, 0x1p-35f, 0x1p-41f});
  EXPECT_GT(enough.d, 0.0f);
  EXPECT_EQ(enough.q[0], 127);
  EXPECT_EQ(enough.q[1], 32);
  EXPECT_EQ(enough.q[2], 0);
}

TEST(Activation, LargestIsAlways127) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const float a = float_of((random() % (0x71800000u - 0x2f800000u)) + 0x2f800000u);  // 2^-32..2^100
    const Block block = quantized({a, -a});
    ASSERT_EQ(block.q[0], 127) << a;
    ASSERT_EQ(block.q[1], -127) << a;
  }
}

TEST(Activation, RowsAndSums) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> x(512);
  for (float& v : x) v = normal(random);
  std::vector<int8_t> q(512);
  std::vector<float> d(16);
  std::vector<int16_t> sums(32);
  quantize_row_256(x.data(), 512, q.data(), d.data(), sums.data());
  for (size_t i = 0; i < 512; ++i) ASSERT_NEAR(q[i] * d[i / 256], x[i], 0.5001 * d[i / 256]);
  for (size_t s = 0; s < 32; ++s) {
    int sum = 0;
    for (size_t i = 0; i < 16; ++i) sum += q[16 * s + i];
    ASSERT_EQ(sums[s], sum);
  }
  quantize_row_32(x.data(), 512, q.data(), d.data(), sums.data());
  for (size_t i = 0; i < 512; ++i) ASSERT_NEAR(q[i] * d[i / 32], x[i], 0.5001 * d[i / 32]);
  for (size_t s = 0; s < 16; ++s) {
    int sum = 0;
    for (size_t i = 0; i < 32; ++i) sum += q[32 * s + i];
    ASSERT_EQ(sums[s], sum);
  }
}

}  // namespace
}  // namespace spillway::numerics
