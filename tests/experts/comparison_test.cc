#include "experts/comparison.h"

#include <gtest/gtest.h>

#include "experts/bounds.h"
#include "support/synthetic_routes.h"

namespace spillway {
namespace experts {
namespace {

// On SYNTHETIC routes (support/synthetic_routes.h): auto is never below 0.98 of the reference at the best F
// that hindsight finds, better on average, and never slower than doing without a cache.
TEST(Comparison, AutoAgainstTheReferenceAtItsBest) {
  std::vector<Routes> runs;
  // Two of a big model's shape, one of a small model's.
  runs.push_back(synthetic_routes({.n_experts = 128, .n_used = 8, .prompt = 200, .tokens = 400}));
  runs.push_back(synthetic_routes({.n_experts = 128, .n_used = 4, .tokens = 500, .seed = 2}));
  runs.push_back(synthetic_routes(
      {.n_layers = 6, .n_experts = 64, .n_used = 4, .prompt = 60, .tokens = 500, .seed = 3}));
  const auto rows = compare(runs);
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 32u);
  double sum = 0.0;
  for (const ComparisonRow& row : *rows) {
    EXPECT_GE(row.ratio(), 0.98) << row.model << " " << row.machine << " " << row.cache_share;
    EXPECT_LE(row.ours_us, 1.01 * row.without_us)
        << row.model << " " << row.machine << " " << row.cache_share;
    EXPECT_LT(row.reference_hits, row.belady_hits);
    sum += row.ratio();
  }
  EXPECT_GT(sum / 32, 1.05);
  const std::string table = comparison_table(*rows);
  fmt::print("{}", table.substr(table.find("\nEstimated.")));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2 + 32 + 2);
}

TEST(Comparison, StandsForTheBigModel) {
  // A run without a cache and all on the CPU takes what the closed form says, whatever the small model's
  // size.
  const ModelSizes& model = known_models()[0];
  HardwareProfile machine = known_machines()[3];
  for (Quantity* q : {&machine.step_us, &machine.layer_us, &machine.cpu_start_us}) q->value = 0.0;
  machine.link_gb_s = {0.001};
  const DecodeLimits limits{
      double(model.dense_bytes), double(model.n_layers) * model.n_used * double(model.expert_bytes),
      machine.device_gb_s.value, machine.dram_gb_s.value,
      machine.cpu_gb_s.value,    machine.link_gb_s.value};
  const std::vector<Routes> runs = {
      synthetic_routes({.n_layers = 3, .n_experts = 16, .n_used = 2, .tokens = 20})};
  const auto rows = compare(runs, {std::span(&machine, 1), known_models().first(1), {0.2}});
  ASSERT_TRUE(rows);
  EXPECT_NEAR((*rows)[0].without_us, limits.cpu_only_us(), 0.001 * limits.cpu_only_us());
}

TEST(Comparison, NeedsTokens) {
  const std::vector<Routes> runs(1);
  EXPECT_FALSE(compare(runs));
}

}  // namespace
}  // namespace experts
}  // namespace spillway
