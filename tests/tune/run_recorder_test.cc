#include "tune/run_recorder.h"

#include <gtest/gtest.h>

namespace spillway::tune {
namespace {

TEST(RunRecorder, OthersUseAtMostAllCoresAndShortRunsDoNotTell) {
  EXPECT_DOUBLE_EQ(other_cores(3, 2, 2), 1.5);
  EXPECT_DOUBLE_EQ(other_cores(5, 2, 2), 2);
  EXPECT_DOUBLE_EQ(other_cores(5, 2, 0), 2.5);  // how many there are is not known
  EXPECT_DOUBLE_EQ(other_cores(-0.01, 2, 2), 0);
  // Two ticks of 10 ms in a run of 1.7 ms are no 11.8 cores.
  EXPECT_DOUBLE_EQ(other_cores(0.02, 0.0017, 2), 0);
  EXPECT_DOUBLE_EQ(other_cores(0.02, 0, 0), 0);
}

}  // namespace
}  // namespace spillway::tune
