#include "experts/score.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spillway {
namespace experts {
namespace {

std::vector<Use> one(ExpertId expert, uint32_t tokens = 1) { return {{expert, tokens}}; }

TEST(Score, HalvesEveryHalfLife) {
  DecayedCounts counts(2, 4, 8.0);
  counts.use(0, 1, one(2));
  EXPECT_DOUBLE_EQ(counts.score(0, 2), 1.0);
  for (int i = 0; i < 8; ++i) counts.use(0, 1, one(1));
  EXPECT_NEAR(counts.score(0, 2), 0.5, 1e-14);
  for (int i = 0; i < 80; ++i) counts.use(0, 1, one(1));
  EXPECT_NEAR(counts.score(0, 2), std::exp2(-11.0), 1e-16);
  // A use every token tends to 1 / (1 - 2^(-1/8)); after 88 of them it lacks a share of 2^-11.
  EXPECT_NEAR(counts.score(0, 1), (1.0 - std::exp2(-11.0)) / (1.0 - std::exp2(-0.125)), 1e-12);
  EXPECT_EQ(counts.score(1, 2), 0.0);  // the other layer's clock stood still
  EXPECT_EQ(counts.clock(0), 89u);
  EXPECT_EQ(counts.clock(1), 0u);
}

TEST(Score, ABatchCountsAsItsTokensSpreadEvenly) {
  DecayedCounts whole(1, 2, 20.0);
  DecayedCounts pieces(1, 2, 20.0);
  whole.use(0, 64, one(0, 64));
  for (int i = 0; i < 64; ++i) pieces.use(0, 1, one(0));
  EXPECT_NEAR(whole.score(0, 0), pieces.score(0, 0), 1e-9);
  DecayedCounts half(1, 2, 20.0);
  half.use(0, 64, one(0, 32));
  EXPECT_NEAR(half.score(0, 0), pieces.score(0, 0) / 2, 1e-9);
}

TEST(Score, KeepsOrderOverRescalesAndLongPauses) {
  DecayedCounts counts(1, 4, 1.0);
  counts.use(0, 1, one(0));
  counts.use(0, 1, one(1));
  counts.use(0, 1, one(2));
  EXPECT_LT(counts.score(0, 0), counts.score(0, 1));
  EXPECT_LT(counts.score(0, 1), counts.score(0, 2));
  counts.use(0, 100000, one(3));  // 2^-100000 of the others is 0, not a denormal
  EXPECT_EQ(counts.score(0, 2), 0.0);
  EXPECT_GT(counts.score(0, 3), 0.0);
}

TEST(UseCounter, CountsDistinctExpertsInOrder) {
  UseCounter counter(8);
  const std::vector<uint32_t> ids = {5, 1, 7, 5, 1, 5};
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto uses = counter.count(ids, 8);
    ASSERT_EQ(uses.size(), 3u);
    EXPECT_EQ(uses[0].expert, 1u);
    EXPECT_EQ(uses[0].tokens, 2u);
    EXPECT_EQ(uses[1].expert, 5u);
    EXPECT_EQ(uses[1].tokens, 3u);
    EXPECT_EQ(uses[2].expert, 7u);
  }
}

TEST(Shapes, ContradictionsAreRefused) {
  const GroupShape good{{0, 1}, 8, 2, 100};
  EXPECT_TRUE(check_groups(std::vector{good}));
  const auto refused = [](GroupShape group, std::string_view word) {
    const auto result = check_groups(std::vector{group});
    return !result && result.error().message.find(word) != std::string::npos;
  };
  EXPECT_FALSE(check_groups({}));
  EXPECT_TRUE(check_groups(std::vector{GroupShape{{0, 2}, 8, 2, 100}}));  // layer 1 is resident
  EXPECT_TRUE(refused({{0, 5000}, 8, 2, 100}, "layer 5000"));
  EXPECT_TRUE(refused({{1, 0}, 8, 2, 100}, "ascending"));
  EXPECT_TRUE(refused({{0, 0}, 8, 2, 100}, "already"));
  EXPECT_TRUE(refused({{0}, 8, 9, 100}, "9 of 8"));
  EXPECT_TRUE(refused({{0}, 0, 0, 100}, "0 experts"));
  EXPECT_TRUE(refused({{0}, 8, 2, 0}, "0 bytes"));
}

}  // namespace
}  // namespace experts
}  // namespace spillway
