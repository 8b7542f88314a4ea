// The tuner's predictions on the demo model's own routes: calibrated on some passages of three topics, held
// against runs of others, on made-up machines with noise.
#include <gtest/gtest.h>

#include <cmath>

#include "demo/recorded_routes.h"
#include "report/statistics.h"
#include "tune/sim_machines.h"
#include "tune/tuner.h"

namespace spillway::tune {
namespace {

constexpr uint32_t kPromptTokens = 64, kAnswerTokens = 96, kTokens = kPromptTokens + kAnswerTokens;
constexpr uint64_t kExpertBytes = 2'850'000;

// Two passages of each topic for calibration and two held out, in turn; the experts as large as a big
// model's.
std::vector<SimPrompt> recorded_prompts() {
  RouteRecorder recorder;
  std::vector<SimPrompt> prompts;
  for (const bool held_out : {false, true, false, true})
    for (const char* topic : {"prose", "code", "german"}) {
      SimPrompt prompt{.prompt = {.topic = topic, .held_out = held_out},
                       .prompt_tokens = kPromptTokens,
                       .tokens = recorder.record(topic, prompts.size() / 3 * kTokens, kTokens, 1)};
      for (experts::GroupShape& group : prompt.tokens.groups) group.expert_bytes = kExpertBytes;
      prompts.push_back(std::move(prompt));
    }
  return prompts;
}

TEST(Prediction, OfHeldOutPassagesOfTheDemoModel) {
  const std::vector<SimPrompt> prompts = recorded_prompts();
  uint64_t expert_bytes = 0;
  for (const experts::GroupShape& group : prompts[0].tokens.groups)
    expert_bytes += group.layers.size() * group.n_experts * group.expert_bytes;
  std::vector<double> errors;
  for (const auto& profile :
       {sim_profile(290, 42, 36, 12), sim_profile(700, 100, 20, 25), sim_profile(290, 150, 110, 6)}) {
    SimMachine machine;
    machine.profile = profile;
    machine.believed = experts::default_profile();
    machine.dense_bytes = expert_bytes / 8;
    machine.max_cache_bytes = expert_bytes / 3;
    machine.token_us = 30;
    machine.step_noise = 0.04;
    machine.run_noise = 0.01;
    sys::FakeClock clock;
    SimLab lab(machine, prompts, clock);
    const auto report = tune(lab, machine.believed, {});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_FALSE(report->model_failed) << report->model_error;
    for (const report::Row& row : report->result.rows)
      if (row.predicted_tok_s) errors.push_back(std::abs(*row.predicted_tok_s / row.decode_tok_s - 1));
  }
  ASSERT_GE(errors.size(), 9u);
  const double median = report::median(errors);
  std::printf("median error of %zu predictions: %.2f %%, the largest %.2f %%\n", errors.size(), 100 * median,
              100 * std::ranges::max(errors));
  EXPECT_LE(median, 0.05);
}

}  // namespace
}  // namespace spillway::tune
