#include "experts/expected_hits.h"

#include <gtest/gtest.h>

namespace spillway::experts {
namespace {

TEST(ExpectedHits, FollowTheReplayedPoints) {
  EXPECT_EQ(expected_hit_rate(0), 0);
  EXPECT_DOUBLE_EQ(expected_hit_rate(0.20), 0.78);
  EXPECT_DOUBLE_EQ(expected_hit_rate(0.40), 0.91);  // half way from 0.87 at 0.30 to 0.95 at 0.50
  EXPECT_EQ(expected_hit_rate(1), 1);
}

// By hand: four layers that use 4 of 16 experts keep 6 slots each. 16 slots serve two of them, which hold
// half of their experts: 0.95 of the uses of half the layers.
TEST(ExpectedHits, LayersBeyondTheFloorsHitNothing) {
  EXPECT_DOUBLE_EQ(expected_hit_rate(4, 16, 4, 16), 0.475);
  EXPECT_EQ(expected_hit_rate(4, 16, 4, 3), 0);
  EXPECT_DOUBLE_EQ(expected_hit_rate(4, 16, 4, 32), expected_hit_rate(0.5));
  EXPECT_EQ(expected_hit_rate(4, 16, 4, 64), 1);
}

}  // namespace
}  // namespace spillway::experts
