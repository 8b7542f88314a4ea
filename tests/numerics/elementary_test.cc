// Errors of the written sequences against double libm. The bounds are what elementary.h states; the largest
// error goes to the XML report, and nothing is printed unless a bound is broken.
#include "numerics/elementary.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spillway::numerics {
namespace {

// |got - wanted| in units in the last place of the float32 nearest to `wanted`.
double ulps(float got, double wanted) {
  const int exponent = std::ilogb(wanted);
  return std::abs(static_cast<double>(got) - wanted) / std::ldexp(1.0, exponent - 23);
}

// The largest error of f over floats low, low + step bit patterns, ... high (both of one sign).
template <class F, class Reference>
double largest_error(float low, float high, uint32_t step, F f, Reference reference) {
  double worst = 0;
  float at = 0;
  const uint32_t first = std::min(bits_of(low), bits_of(high)), last = std::max(bits_of(low), bits_of(high));
  for (uint64_t bits = first; bits <= last; bits += step) {
    const float x = float_of(static_cast<uint32_t>(bits));
    const double error = ulps(f(x), reference(static_cast<double>(x)));
    if (!(error <= worst)) worst = error, at = x;
  }
  ::testing::Test::RecordProperty(fmt::format("from_{:a}", low), fmt::format("{} ulp at {:a}", worst, at));
  return worst;
}

double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Elementary, Reciprocal) {
  const auto exact = [](double x) { return 1 / x; };
  EXPECT_LT(largest_error(1.0f, 2.0f, 1, reciprocal, exact), 1.2);
  EXPECT_LT(largest_error(0x1p-100f, 0x1p100f, 1009, reciprocal, exact), 1.2);
  EXPECT_TRUE(is_nan(reciprocal(NAN)));
  EXPECT_EQ(reciprocal(1.0f), 1.0f);
}

TEST(Elementary, Rsqrt) {
  const auto exact = [](double x) { return 1 / std::sqrt(x); };
  EXPECT_LT(largest_error(1.0f, 4.0f, 3, rsqrt, exact), 1.3);
  EXPECT_LT(largest_error(0x1p-80f, 0x1p100f, 1009, rsqrt, exact), 1.3);
  EXPECT_TRUE(is_nan(rsqrt(NAN)));
  EXPECT_EQ(rsqrt(0.0f), rsqrt(0x1p-80f));
  EXPECT_EQ(rsqrt(-1.0f), rsqrt(0x1p-80f));
  EXPECT_EQ(rsqrt(INFINITY), rsqrt(0x1p100f));
}

TEST(Elementary, Exp) {
  const auto exact = [](double x) { return std::exp(x); };
  EXPECT_LT(largest_error(-0x1p-30f, -41.5f, 97, exp, exact), 1.2);
  EXPECT_LT(largest_error(0x1p-30f, 88.0f, 97, exp, exact), 1.2);
  EXPECT_EQ(exp(0.0f), 1.0f);
  EXPECT_EQ(exp(-0.0f), 1.0f);
  EXPECT_EQ(exp(0x1p-149f), 1.0f);
  EXPECT_EQ(bits_of(exp(std::nextafterf(-41.5f, -50))), 0u);
  EXPECT_EQ(bits_of(exp(-INFINITY)), 0u);
  EXPECT_EQ(bits_of(exp(-1e30f)), 0u);
  EXPECT_EQ(exp(INFINITY), exp(88.0f));
  EXPECT_EQ(exp(1e30f), exp(88.0f));
  EXPECT_TRUE(std::isfinite(exp(88.0f)));
  EXPECT_TRUE(is_nan(exp(NAN)));
  EXPECT_TRUE(is_nan(exp(-NAN)));
}

TEST(Elementary, Sigmoid) {
  EXPECT_LT(largest_error(0x1p-30f, 60.0f, 97, sigmoid, exact_sigmoid), 3.0);
  EXPECT_LT(largest_error(-0x1p-30f, -41.5f, 97, sigmoid, exact_sigmoid), 3.0);
  EXPECT_EQ(sigmoid(0.0f), 0.5f);
  EXPECT_EQ(sigmoid(INFINITY), 1.0f);
  EXPECT_EQ(sigmoid(-INFINITY), 0.0f);
  EXPECT_EQ(sigmoid(-1e30f), 0.0f);
  EXPECT_TRUE(is_nan(sigmoid(NAN)));
}

TEST(Elementary, Silu) {
  const auto exact = [](double x) { return x * exact_sigmoid(x); };
  EXPECT_LT(largest_error(0x1p-39f, 0x1p100f, 499, silu, exact), 3.5);
  EXPECT_LT(largest_error(-0x1p-39f, -41.5f, 97, silu, exact), 3.5);
  EXPECT_EQ(silu(-1e30f), 0.0f);
  EXPECT_EQ(bits_of(silu(-0x1p-100f)), 0u);
  EXPECT_EQ(silu(INFINITY), INFINITY);
  EXPECT_TRUE(is_nan(silu(-INFINITY)));
  EXPECT_TRUE(is_nan(silu(NAN)));
}

TEST(Elementary, Gelu) {
  const auto exact = [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };
  for (float x = -4; x < 8; x += 0.001f)
    ASSERT_NEAR(gelu(x), exact(x), 2e-7 * std::max(0.5, std::abs(exact(x)))) << x;
  EXPECT_EQ(gelu(1e30f), 1e30f);
  EXPECT_EQ(gelu(-1e30f), 0.0f);
  EXPECT_TRUE(is_nan(gelu(NAN)));
}

}  // namespace
}  // namespace spillway::numerics
