#include "report/summary.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "report/page_data.h"

namespace spillway::report {
namespace {

Run run_of(double ms, uint32_t setting = 0) {
  return {.setting = setting,
          .warm = true,
          .seconds = 2,
          .requests = {{.prompt_tokens = 100,
                        .cached_tokens = 20,
                        .generated_tokens = 5,
                        .ttft_s = 0.5,
                        .prefill_s = 0.4,
                        .decode_s = 4e-3 * ms,
                        .itl_ms = {ms, ms, ms, ms},
                        .finish = "length"}},
          .cpu_s = 3};
}

bool says(const std::vector<std::string>& notes, std::string_view words) {
  return std::ranges::any_of(notes, [&](const std::string& note) { return note.find(words) != note.npos; });
}

TEST(Summary, RatesAreTotalsOverTime) {
  // 4 tokens at 10 ms and 4 at 30 ms: 8 in 160 ms are 50 a second, the mean of the rates would be 67.
  report::Run a = run_of(10), b = run_of(30);
  b.requests[0].finish = "stop";
  b.requests[0].ttft_s = 0.7;
  b.requests[0].itl_ms[3] = 91;  // a stall
  a.experts = Experts{.hits = 30, .misses = 10, .bytes_up = 5};
  b.experts = Experts{.hits = 50, .misses = 10, .bytes_up = 6};
  a.host_peak_bytes = 7, b.host_peak_bytes = 6;
  const report::Run* both[] = {&a, &b};
  const Summary sum = summarize(both);
  EXPECT_EQ(sum.runs, 2u);
  EXPECT_EQ(sum.requests, 2u);
  EXPECT_EQ(sum.generated_tokens, 10u);
  EXPECT_DOUBLE_EQ(sum.decode_tok_s, 50);
  EXPECT_DOUBLE_EQ(sum.prefill_tok_s, 200);
  EXPECT_DOUBLE_EQ(sum.ttft_s, 0.6);
  EXPECT_DOUBLE_EQ(sum.p50_itl_ms, 20);
  EXPECT_EQ(sum.itl_count, 8u);
  EXPECT_EQ(sum.stalls, 1u);
  EXPECT_DOUBLE_EQ(*sum.hit_rate, 0.8);
  EXPECT_EQ(sum.bytes_up, 11u);
  EXPECT_DOUBLE_EQ(sum.cpu_s, 6);
  EXPECT_EQ(sum.host_peak_bytes, 7u);
  EXPECT_EQ(sum.finishes, (std::map<std::string, uint32_t>{{"length", 1}, {"stop", 1}}));
  EXPECT_FALSE(summarize(std::span<const report::Run* const>()).hit_rate);
}

TEST(Summary, QuietRunsNeedNoNotes) {
  ResultFile result{.machine = {.cores = 2}, .settings = {{.name = "s"}}};
  for (const double ms : {10.0, 10.1, 9.9, 10.0, 10.05}) result.runs.push_back(run_of(ms));
  EXPECT_TRUE(notes_about(result).empty());
}

TEST(Summary, WhatDisturbsIsSaid) {
  ResultFile result{.machine = {.cores = 2}, .settings = {{.name = "s"}}};
  for (const double ms : {10.0, 10.1, 9.9, 10.0, 10.05, 20.0}) result.runs.push_back(run_of(ms));
  EXPECT_TRUE(says(notes_about(result), "run 6 of 6 is far from the others in decode"));
  result.runs[1].load.other_cpu = 1.5;
  EXPECT_TRUE(says(notes_about(result), "during 1 of 6 runs other programs used up to 1.5 of its 2 cores"));
  result.runs[1].load.other_cpu = 10.6;
  EXPECT_TRUE(says(notes_about(result), "other programs used up to 2.0 of its 2 cores"));
  result.runs[1].seconds = 0.0017;
  EXPECT_FALSE(says(notes_about(result), "other programs"));
  result.runs[2].load.throttled_s = 0.5;
  EXPECT_TRUE(says(notes_about(result), "for up to 25 % of the time"));
  result.runs[5].cut_short = "interrupted";
  EXPECT_TRUE(says(notes_about(result), "cut short (interrupted)"));
  result.runs[0].requests[0].finish = "context";
  EXPECT_TRUE(says(notes_about(result), "1 answer ended because the context was full"));
}

TEST(Summary, DriftAndLevelsAreSaid) {
  ResultFile drifting{.settings = {{.name = "s"}}}, levels = drifting;
  for (int i = 0; i < 10; ++i) {
    drifting.runs.push_back(run_of(10 + 0.2 * i));
    levels.runs.push_back(run_of(i % 2 ? 10 + 0.01 * i : 12 + 0.01 * i));
  }
  EXPECT_TRUE(says(notes_about(drifting), "decode went down by"));
  EXPECT_TRUE(says(notes_about(levels), "decode has two levels, 8"));
}

TEST(Summary, ColdRunsAreApart) {
  ResultFile result{.settings = {{.name = "a"}, {.name = "b"}},
                    .runs = {run_of(10), run_of(10, 1), run_of(30)}};
  result.runs[2].warm = false;
  EXPECT_EQ(runs_of(result, 0, true).size(), 1u);
  EXPECT_EQ(runs_of(result, 0, false).size(), 1u);
  EXPECT_EQ(runs_of(result, 1, false).size(), 0u);
  EXPECT_EQ(rates_of(runs_of(result, 0, true), decode_tok_s), std::vector<double>{100});
}

}  // namespace
}  // namespace spillway::report
