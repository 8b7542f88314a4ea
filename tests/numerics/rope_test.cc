#include "numerics/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spillway::numerics {
namespace {

TEST(Rope, PlainFrequencies) {
  RopeParams p;
  p.rope_length = 128;
  p.base = 1e6;
  const std::vector<double> f = rope_frequencies(p, {});
  ASSERT_EQ(f.size(), 64u);
  EXPECT_EQ(f[0], 1.0);
  for (size_t i = 0; i < 64; ++i)
    EXPECT_NEAR(f[i], std::exp(-double(i) / 64 * std::log(1e6)), 1e-14 * f[i] * 10);
  p.scaling = RopeScaling::kLinear;
  p.factor = 8;
  EXPECT_EQ(rope_frequencies(p, {})[5], f[5] / 8);
  std::vector<float> factors(64, 1.0f);
  factors[3] = 4;
  p.scaling = RopeScaling::kNone;
  EXPECT_EQ(rope_frequencies(p, factors)[3], f[3] / 4);
}

// YaRN for 64 values, base 10000, factor 4, context 2048 by hand: pairs of 32 turns and of 1 turn are
// 64 ln(2048 / (32 * 2 pi)) / (2 ln 10000) = 8.06 and 64 ln(2048 / (2 pi)) / (2 ln 10000) = 20.11, so the
// ramp runs from 8 to 21.
TEST(Rope, Yarn) {
  RopeParams p;
  p.rope_length = 64;
  const std::vector<double> plain = rope_frequencies(p, {});
  p.scaling = RopeScaling::kYarn;
  p.factor = 4;
  p.original_context = 2048;
  const std::vector<double> f = rope_frequencies(p, {});
  for (size_t i = 0; i <= 8; ++i) EXPECT_DOUBLE_EQ(f[i], plain[i]);
  for (size_t i = 21; i < 32; ++i) EXPECT_DOUBLE_EQ(f[i], plain[i] / 4);
  const double ramp = (14.0 - 8) / (21 - 8);
  EXPECT_NEAR(f[14], plain[14] / 4 * ramp + plain[14] * (1 - ramp), 1e-15);
  EXPECT_NEAR(rope_magnitude(p), 1.1386294361119891, 1e-15);  // 1 + 0.1 ln 4
  p.whole_ramp = false;
  const double low = 8.0644, high = 20.1063;
  EXPECT_NEAR(rope_frequencies(p, {})[14] / plain[14], 1 - 0.75 * (14 - low) / (high - low), 1e-4);
}

TEST(Rope, TablesAgainstLongDouble) {
  RopeParams p;
  p.rope_length = 64;
  p.base = 500000;
  const std::vector<double> f = rope_frequencies(p, {});
  std::vector<float> cos(3 * 32), sin(3 * 32);
  rope_tables(f, 1.0, 131070, 3, cos.data(), sin.data());
  for (size_t t = 0; t < 3; ++t) {
    for (size_t i = 0; i < 32; ++i) {
      const long double angle = (131070.0L + t) * std::pow(500000.0L, -2.0L * i / 64);
      EXPECT_NEAR(cos[t * 32 + i], static_cast<double>(std::cos(angle)), 6e-8);
      EXPECT_NEAR(sin[t * 32 + i], static_cast<double>(std::sin(angle)), 6e-8);
    }
  }
  rope_tables(f, 2.0, 0, 1, cos.data(), sin.data());
  EXPECT_EQ(cos[0], 2.0f);
  EXPECT_EQ(sin[31], 0.0f);
}

TEST(Rope, Rotation) {
  const float cos[] = {0, 0.5f}, sin[] = {1, 0.25f};
  float x[] = {1, 2, 3, 4, 5, /* second head */ 1, 2, 3, 4, 5};
  rope_neox(x, 2, 5, 4, cos, sin);  // pairs (0,2), (1,3); value 4 stays
  const float neox[] = {-3, 0, 1, 2.5f, 5};
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(x[i], neox[i % 5]) << i;
  float y[] = {1, 2, 3, 4, 5};
  rope_normal(y, 1, 5, 4, cos, sin);  // pairs (0,1), (2,3)
  const float normal[] = {-2, 1, 0.5f, 2.75f, 5};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(y[i], normal[i]) << i;
}

TEST(Rope, Refusals) {
  RopeParams p;
  p.rope_length = 63;
  EXPECT_FALSE(check_rope(p, {}));
  p.rope_length = 64;
  EXPECT_TRUE(check_rope(p, {}));
  EXPECT_FALSE(check_rope(p, std::vector<float>(31, 1.0f)));
  EXPECT_FALSE(check_rope(p, std::vector<float>(32, 0.0f)));
  p.base = NAN;
  EXPECT_FALSE(check_rope(p, {}));
  p.base = 10000;
  p.scaling = RopeScaling::kYarn;
  EXPECT_FALSE(check_rope(p, {}));  // no original context
  p.original_context = 4096;
  EXPECT_TRUE(check_rope(p, {}));
}

}  // namespace
}  // namespace spillway::numerics
