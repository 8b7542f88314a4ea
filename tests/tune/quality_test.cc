#include "tune/quality.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace spillway::tune {
namespace {

// Logits that give these probabilities, at any height.
std::vector<float> row(std::vector<double> probabilities, double height = 0) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p) + height));
  return logits;
}

TEST(Quality, RowsByHand) {
  // KL = 1/2 log((1/2)/(1/4)) + 1/4 log((1/4)/(1/2)) + 1/4 log(1) = 1/4 log 2.
  const auto p = row({0.5, 0.25, 0.25}), q = row({0.25, 0.5, 0.25}, 7);
  const RowDifference d = compare_rows(p, q, 1);
  EXPECT_FALSE(d.identical);
  EXPECT_TRUE(d.finite);
  EXPECT_NEAR(d.kl, 0.25 * std::log(2.0), 1e-6);
  EXPECT_FALSE(d.same_top);
  EXPECT_NEAR(*d.reference_nll, std::log(4.0), 1e-6);
  EXPECT_NEAR(*d.other_nll, std::log(2.0), 1e-6);
  // The height of the logits is no difference in what they say, but one in bits.
  const RowDifference shifted = compare_rows(p, row({0.5, 0.25, 0.25}, 3), {});
  EXPECT_FALSE(shifted.identical);
  EXPECT_NEAR(shifted.kl, 0, 1e-6);
  EXPECT_TRUE(shifted.same_top);
  EXPECT_FALSE(shifted.reference_nll);
  const RowDifference same = compare_rows(p, p, 0);
  EXPECT_TRUE(same.identical);
  EXPECT_EQ(same.kl, 0);
}

TEST(Quality, ZerosDifferInTheirSign) {
  EXPECT_FALSE(compare_rows(std::vector{0.0f, 1.0f}, std::vector{-0.0f, 1.0f}, {}).identical);
}

TEST(Quality, LargeLogitsDoNotOverflow) {
  const RowDifference d = compare_rows(std::vector{3e38f, -3e38f}, std::vector{3e38f, 0.0f}, 0);
  EXPECT_TRUE(d.finite);
  EXPECT_EQ(d.kl, 0);
  EXPECT_EQ(*d.other_nll, 0);
}

TEST(Quality, TheLikeliest) {
  EXPECT_EQ(likeliest(std::vector{1.0f, 3.0f, 3.0f}), 1u);
  EXPECT_EQ(likeliest(std::vector{NAN, 1.0f, NAN}), 1u);
}

TEST(Quality, PerplexityByHand) {
  // Reference gives the tokens that follow 1/2, 1/4 and 1/8; the other 1/4 each.
  Quality quality;
  for (const double p : {0.5, 0.25, 0.125}) quality.add(compare_rows(row({p, 1 - p}), row({0.25, 0.75}), 0));
  EXPECT_EQ(quality.predicted_rows(), 3u);
  // Mean of 1, 2 and 3 times log 2; their standard deviation is log 2, over the root of 3.
  const WithError reference = quality.reference_perplexity();
  EXPECT_NEAR(reference.value, 4, 1e-5);
  EXPECT_NEAR(reference.error, 4 * std::log(2.0) / std::sqrt(3.0), 1e-5);
  EXPECT_NEAR(quality.other_perplexity().value, 4, 1e-5);
  EXPECT_NEAR(quality.other_perplexity().error, 0, 1e-5);
  // Differences of +1, 0 and -1 times log 2.
  EXPECT_NEAR(quality.perplexity_ratio().value, 1, 1e-5);
  EXPECT_NEAR(quality.perplexity_ratio().error, std::log(2.0) / std::sqrt(3.0), 1e-5);
  // The likeliest differs in the first row alone: there 1/2 ties, and the lower one counts.
  EXPECT_NEAR(quality.top1(), 2.0 / 3, 1e-9);
}

TEST(Quality, WhatBothFindHardCancelsOut) {
  Quality quality;
  for (int i = 0; i < 50; ++i) {
    const double p = i % 2 == 0 ? 0.9 : 0.01;
    quality.add(compare_rows(row({p, 1 - p}), row({p / 1.1, 1 - p / 1.1}), 0));
  }
  EXPECT_NEAR(quality.perplexity_ratio().value, 1.1, 1e-4);
  EXPECT_LT(quality.perplexity_ratio().error, 1e-4);
  EXPECT_GT(quality.reference_perplexity().error, 1);
}

TEST(Quality, FindsTheFirstAndTheWorst) {
  Quality quality;
  const auto p = row({0.5, 0.5});
  quality.add(compare_rows(p, p, {}));
  EXPECT_FALSE(quality.first_difference());
  quality.add(compare_rows(p, row({0.6, 0.4}), {}));
  quality.add(compare_rows(p, row({0.9, 0.1}), {}));
  quality.add(compare_rows(p, std::vector{NAN, 0.0f}, {}));
  EXPECT_EQ(quality.rows(), 4u);
  EXPECT_EQ(quality.identical_rows(), 1u);
  EXPECT_EQ(quality.bad_rows(), 1u);
  EXPECT_EQ(quality.first_difference(), 1u);
  EXPECT_EQ(quality.max_kl_row(), 2u);
  EXPECT_NEAR(quality.max_kl(), 0.5 * std::log(0.5 / 0.9) + 0.5 * std::log(0.5 / 0.1), 1e-6);
  EXPECT_NEAR(quality.mean_kl().value,
              (quality.max_kl() + 0.5 * std::log(0.5 / 0.6) + 0.5 * std::log(0.5 / 0.4)) / 3, 1e-6);
}

TEST(Quality, SaysWhatFallsShort) {
  const auto p = row({0.5, 0.25, 0.25}), q = row({0.4, 0.35, 0.25});
  Quality equal, close, wrong;
  equal.add(compare_rows(p, p, 1));
  EXPECT_TRUE(shortfalls(equal, true, {}).empty());
  EXPECT_TRUE(shortfalls(equal, false, {}).empty());
  close.add(compare_rows(p, q, 1));  // KL about 0.027, ratio 0.25/0.35
  EXPECT_TRUE(shortfalls(close, false, {}).empty());
  ASSERT_EQ(shortfalls(close, true, {}).size(), 1u);
  EXPECT_NE(shortfalls(close, true, {})[0].find("1 of 1 rows"), std::string::npos);
  EXPECT_EQ(shortfalls(close, false, {.max_kl = 0.02}).size(), 1u);
  EXPECT_EQ(shortfalls(close, false, {.max_perplexity_ratio = 0.7}).size(), 1u);
  wrong.add(compare_rows(p, row({0.05, 0.9, 0.05}), 0));
  EXPECT_EQ(shortfalls(wrong, false, {}).size(), 3u);
  wrong.add(compare_rows(p, std::vector<float>{NAN, 0, 0}, 0));
  EXPECT_EQ(shortfalls(wrong, false, {}).size(), 4u);
}

}  // namespace
}  // namespace spillway::tune
