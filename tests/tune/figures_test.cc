#include "tune/figures.h"

#include <gtest/gtest.h>

#include "report/summary.h"

namespace spillway::tune {
namespace {

report::Run run_of(double ttft_s, std::vector<double> itl_ms) {
  report::Request request{.prompt_tokens = 100,
                          .cached_tokens = 20,
                          .generated_tokens = static_cast<uint32_t>(itl_ms.size() + 1),
                          .ttft_s = ttft_s,
                          .prefill_s = 0.4,
                          .itl_ms = std::move(itl_ms),
                          .finish = "length"};
  for (const double ms : request.itl_ms) request.decode_s += 1e-3 * ms;
  return {.warm = true, .requests = {request}, .experts = report::Experts{.hits = 3, .misses = 1}};
}

TEST(Figures, AreThoseOfTheSummary) {
  const report::Run a = run_of(0.1, {10, 10, 10, 30}), b = run_of(0.2, {20, 20}), c = run_of(0.9, {50});
  const report::Run* all[] = {&a, &b, &c};
  const Figures figures = figures_of(all);
  EXPECT_DOUBLE_EQ(figures.decode_tok_s, 7 / 0.15);
  EXPECT_DOUBLE_EQ(figures.prefill_tok_s, 200);
  EXPECT_DOUBLE_EQ(figures.ttft_s, 0.2);     // the median: one slow start moves the mean to 0.4
  EXPECT_DOUBLE_EQ(figures.p95_itl_ms, 44);  // 0.7 of the way from 30 to 50
  EXPECT_DOUBLE_EQ(figures.hit_rate, 0.75);
  const report::Summary sum = report::summarize(all);
  EXPECT_EQ(figures.ttft_s, sum.ttft_s);
  EXPECT_EQ(figures.p95_itl_ms, sum.p95_itl_ms);
  EXPECT_EQ(figures_of(std::span<const report::Run* const>()).ttft_s, 0);
}

TEST(Figures, TimesBetterIsAboveOneForTheBetter) {
  const Figures slow{.decode_tok_s = 10, .ttft_s = 0.4, .p95_itl_ms = 100};
  const Figures fast{.decode_tok_s = 20, .ttft_s = 0.2, .p95_itl_ms = 50};
  for (const Goal goal : {Goal::kDecode, Goal::kTtft, Goal::kP95, Goal::kMixed}) {
    EXPECT_DOUBLE_EQ(times_better(fast, slow, goal), 2);
    EXPECT_DOUBLE_EQ(times_better(fast, {}, goal), 1);  // nothing to choose by
  }
  EXPECT_TRUE(hurts(slow, fast, 0.05));
  EXPECT_FALSE(hurts(fast, slow, 0.05));
}

}  // namespace
}  // namespace spillway::tune
