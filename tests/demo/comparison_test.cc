// Auto against the reference at its best share, on the demo model's own routes over three topics, with the
// sizes of models that people run on machines that people have. docs/results holds the table.
#include "experts/comparison.h"

#include <gtest/gtest.h>

#include "demo/recorded_routes.h"

namespace spillway {
namespace {

TEST(Comparison, AutoIsNeverBelowTheReferenceAtItsBest) {
  RouteRecorder recorder;
  std::vector<experts::Routes> runs;
  for (const char* topic : {"prose", "code", "german"}) runs.push_back(recorder.record(topic, 0, 320, 64));
  const auto rows = experts::compare(runs);
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 32u);
  double total = 0;
  for (const experts::ComparisonRow& row : *rows) {
    EXPECT_GE(row.ratio(), 0.98) << row.machine << ", " << row.model << ", " << row.cache_share;
    EXPECT_LE(row.ours_us, row.without_us * 1.01)
        << "slower than without a cache: " << row.machine << ", " << row.model << ", " << row.cache_share;
    total += row.ratio();
  }
  EXPECT_GT(total / 32, 1.0);
  std::printf("%s", experts::comparison_table(*rows).c_str());
}

}  // namespace
}  // namespace spillway
