#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace spillway::sample {
namespace {

SamplerParams plain(float temperature) {
  return {.temperature = temperature, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f};
}

std::vector<int32_t> draw(const SamplerParams& params, const std::vector<float>& logits, int n) {
  Sampler sampler(params, static_cast<uint32_t>(logits.size()));
  std::vector<int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back(*sampler.sample(logits));
  return ids;
}

TEST(Sampler, GreedyTakesTheLowestOfEqualLogits) {
  EXPECT_EQ(draw(plain(0), {0.f, 3.f, 3.f, -1.f}, 2), (std::vector<int32_t>{1, 1}));
}

TEST(Sampler, SameSeedSameTokens) {
  const std::vector<float> logits(100, 0.0f);
  SamplerParams a = plain(1), b = plain(1);
  a.seed = b.seed = 7;
  EXPECT_EQ(draw(a, logits, 50), draw(b, logits, 50));
  b.seed = 8;
  EXPECT_NE(draw(a, logits, 50), draw(b, logits, 50));
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  // Probabilities 1/7, 2/7, 4/7 by hand: logits ln 1, ln 2, ln 4.
  const std::vector<float> logits = {0.0f, std::log(2.0f), std::log(4.0f)};
  std::vector<int> count(3);
  for (const int32_t id : draw(plain(1), logits, 14000)) ++count[id];
  EXPECT_NEAR(count[0], 2000, 200);
  EXPECT_NEAR(count[1], 4000, 250);
  EXPECT_NEAR(count[2], 8000, 250);
}

TEST(Sampler, FiltersKeepTheMostLikely) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  const auto seen = [&](SamplerParams params) {
    const auto ids = draw(params, logits, 3000);
    return std::set<int32_t>(ids.begin(), ids.end());
  };
  SamplerParams top_k = plain(1), top_p = plain(1), min_p = plain(1);
  top_k.top_k = 2;
  EXPECT_EQ(seen(top_k), (std::set<int32_t>{0, 1}));
  top_p.top_p = 0.7f;  // 0.5 is too little, 0.5 + 0.3 is enough
  EXPECT_EQ(seen(top_p), (std::set<int32_t>{0, 1}));
  min_p.min_p = 0.2f;  // 0.15 >= 0.1, 0.05 < 0.1
  EXPECT_EQ(seen(min_p), (std::set<int32_t>{0, 1, 2}));
  EXPECT_EQ(seen(plain(1)), (std::set<int32_t>{0, 1, 2, 3}));
}

TEST(Sampler, PenaltiesChangeTheChoice) {
  const std::vector<float> logits = {2.0f, 1.9f, 1.0f};
  SamplerParams presence = plain(0), frequency = plain(0), repeat = plain(0);
  presence.presence_penalty = 0.5f;  // 1.5 against 1.9, then 1.5 against 1.4
  EXPECT_EQ(draw(presence, logits, 3), (std::vector<int32_t>{0, 1, 0}));
  frequency.frequency_penalty = 0.2f;  // 1.8 / 1.9; then 1.8 / 1.7; then 1.6 / 1.7
  EXPECT_EQ(draw(frequency, logits, 4), (std::vector<int32_t>{0, 1, 0, 1}));
  repeat.repeat_penalty = 3.0f;
  EXPECT_EQ(draw(repeat, logits, 3), (std::vector<int32_t>{0, 1, 2}));
  repeat.repeat_last_n = 1;
  EXPECT_EQ(draw(repeat, logits, 3), (std::vector<int32_t>{0, 1, 0}));
}

TEST(Sampler, BiasAndPaddingRows) {
  SamplerParams params = plain(0);
  params.logit_bias = {{0, -INFINITY}, {2, 5.0f}};
  EXPECT_EQ(draw(params, {9.f, 1.f, 0.f}, 1), std::vector<int32_t>{2});
  Sampler padded(plain(0), 2);
  EXPECT_EQ(*padded.sample(std::vector<float>{0.f, 1.f, 50.f}), 1);
}

TEST(Sampler, DamagedLogitsAreAnError) {
  Sampler sampler(plain(0), 2);
  EXPECT_FALSE(sampler.sample(std::vector<float>{NAN, 1.f}));
  EXPECT_FALSE(sampler.sample(std::vector<float>{-INFINITY, -INFINITY}));
}

TEST(Sampler, ParametersAreChecked) {
  SamplerParams params;
  EXPECT_TRUE(validate(params, 10));
  params.logit_bias = {{10, 1.f}};
  EXPECT_FALSE(validate(params, 10));
  params.logit_bias = {{-1, 1.f}};
  EXPECT_FALSE(validate(params, 10));
  params.logit_bias = {{1, NAN}};
  EXPECT_FALSE(validate(params, 10));
  params = {};
  params.temperature = NAN;
  EXPECT_FALSE(validate(params, 10));
  params = {};
  params.top_p = 1.5f;
  EXPECT_FALSE(validate(params, 10));
}

}  // namespace
}  // namespace spillway::sample
