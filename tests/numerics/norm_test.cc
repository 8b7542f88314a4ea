#include "numerics/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "numerics/float_bits.h"
#include "numerics/glu.h"
#include "numerics/reduce.h"

namespace spillway::numerics {
namespace {

// 40 values: lane 0 adds 0, 16, 32; lane 8 adds 8, 24. Values that lose small parts show the order.
TEST(Reduce, LanesThenHalves) {
  std::vector<float> x(40);
  x[0] = 0x1p24f;
  x[16] = 1;  // lost in lane 0
  x[8] = 1;   // lane 8: 1 + 1 = 2, then met by lane 0: 2^24 + 2
  x[24] = 1;
  x[1] = -0x1p24f;  // lane 1, met last
  EXPECT_EQ(reduce_sum(x.size(), [&](size_t i) { return x[i]; }), 2.0f);
}

TEST(Norm, AgainstDouble) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  for (const uint32_t n : {1u, 15u, 64u, 129u, 2048u}) {
    std::vector<float> x(n), w(n), y(n);
    double ss = 0;
    for (uint32_t i = 0; i < n; ++i) {
      x[i] = normal(random) * 3, w[i] = normal(random);
      ss += double{x[i]} * x[i];
    }
    const double s = 1 / std::sqrt(ss / n + 1e-6);
    rms_norm(x.data(), w.data(), n, 1e-6f, y.data());
    for (uint32_t i = 0; i < n; ++i)
      ASSERT_NEAR(y[i], x[i] * s * w[i], 6e-7 * std::abs(x[i] * s * w[i])) << n;
    rms_norm(x.data(), nullptr, n, 1e-6f, x.data());
    for (uint32_t i = 0; i < n; ++i) ASSERT_NEAR(y[i], x[i] * w[i], 3e-7 * std::abs(y[i])) << n;
  }
}

TEST(Norm, ZerosAndNan) {
  float x[4] = {0, 0, 0, 0};
  rms_norm(x, nullptr, 4, 0.0f, x);
  for (const float v : x) EXPECT_EQ(bits_of(v), 0u);
  x[2] = NAN;
  rms_norm(x, nullptr, 4, 1e-6f, x);
  for (const float v : x) EXPECT_TRUE(is_nan(v));
}

TEST(Softmax, AgainstDouble) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const uint32_t n : {1u, 16u, 17u, 128u, 1000u}) {
    std::vector<float> x(n);
    for (float& v : x) v = normal(random) * 5;
    std::vector<double> wanted(n);
    double sum = 0;
    for (uint32_t i = 0; i < n; ++i) sum += wanted[i] = std::exp(double{x[i]});
    softmax(x.data(), n);
    for (uint32_t i = 0; i < n; ++i) ASSERT_NEAR(x[i], wanted[i] / sum, 2e-6 * wanted[i] / sum);
  }
}

TEST(Softmax, Specials) {
  std::vector<float> x = {1, -INFINITY, 1};
  softmax(x.data(), 3);
  EXPECT_EQ(x[0], 0.5f);
  EXPECT_EQ(x[1], 0.0f);
  x = {1, INFINITY, 1};
  softmax(x.data(), 3);
  for (const float v : x) EXPECT_TRUE(is_nan(v));
  x = {-INFINITY, -INFINITY};
  softmax(x.data(), 2);
  EXPECT_TRUE(is_nan(x[0]));
  x = {1, NAN, 3e38f, -3e38f};
  softmax(x.data(), 4);
  EXPECT_TRUE(is_nan(x[0]));
}

// gpt-oss: alpha 1.702, limit 7. By double: g = 7, u = -7 -> 7 sigmoid(11.914) * -6.
TEST(Glu, ClampedSwiglu) {
  EXPECT_NEAR(clamped_swiglu(100, -100, 1.702f, 7), 7 / (1 + std::exp(-11.914)) * -6, 1e-4);
  EXPECT_NEAR(clamped_swiglu(-2, 0.5f, 1.702f, 7), -2 / (1 + std::exp(3.404)) * 1.5, 1e-6);
  EXPECT_TRUE(is_nan(clamped_swiglu(NAN, 1, 1.702f, 7)));
  EXPECT_TRUE(is_nan(clamped_swiglu(1, NAN, 1.702f, 7)));
}

TEST(Glu, AddScaledRoundsTheProductFirst) {
  // 3 * (1 + 2^-23) = 3 + 3 * 2^-23 rounds to 3 + 2^-21 (ties to even); then 3 is taken away. Fused it would
  // be 3 * 2^-23.
  float y = -3;
  const float x = 1 + 0x1p-23f;
  add_scaled(&y, &x, 3, 1);
  EXPECT_EQ(y, 0x1p-21f);
  float z = 1;
  const float tiny = 0x1p-41f;
  add_scaled(&z, &tiny, 0x1p60f, 1);
  EXPECT_EQ(z, 1.0f);
}

}  // namespace
}  // namespace spillway::numerics
