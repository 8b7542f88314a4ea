#include "tune/tuner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "report/statistics.h"
#include "tune/search.h"
#include "tune/sim_machines.h"

namespace spillway::tune {
namespace {

using experts::Choice;

constexpr PromptShape kShape{.routes = {.n_layers = 4, .n_experts = 32, .n_used = 4},
                             .calibration = 4,
                             .held_out = 4,
                             .prompt_tokens = 96,
                             .answer_tokens = 120};

// A third of the experts' 365 MB fit.
SimMachine tuned_machine(const experts::HardwareProfile& profile) {
  SimMachine machine;
  machine.profile = profile;
  machine.believed = experts::default_profile();
  machine.dense_bytes = 300'000'000;
  machine.max_cache_bytes = 120'000'000;
  machine.token_us = 30;
  machine.step_noise = 0.04;
  machine.run_noise = 0.01;
  return machine;
}

SimMachine without_noise(SimMachine machine) {
  machine.step_noise = machine.run_noise = 0;
  return machine;
}

// What a setting comes to on the held-out prompts, known exactly.
Figures exactly(const SimMachine& machine, const std::vector<SimPrompt>& prompts, const Settings& settings) {
  sys::FakeClock clock;
  SimLab lab(without_noise(machine), prompts, clock);
  return figures_of(lab.run(settings, {.warm_up = {0, 2}, .measured = {1, 3}, .generate = 120}).value().run);
}

// The best of an exhaustive sweep.
Predicted sweep(const SimMachine& machine, const std::vector<SimPrompt>& prompts, Goal goal) {
  std::vector<uint32_t> ubatches = {0}, threads = {0};
  if (goal == Goal::kTtft) ubatches = machine.ubatches;
  for (const ThreadChoice& choice : machine.threads) threads.push_back(choice.threads);
  const Figures reference = exactly(machine, prompts, {});
  Predicted best{.figures = reference};
  for (const double size : {0.0, 0.125, 0.25, 0.5, 0.75, 1.0})
    for (const double share : {-1.0, 0.0, 0.25, 0.5, 0.75, 0.9, 1.0})
      for (const uint32_t ubatch : ubatches)
        for (const uint32_t n : threads) {
          const Settings settings{
              .cache_bytes = static_cast<uint64_t>(size * static_cast<double>(machine.max_cache_bytes)),
              .cpu_share = share < 0 ? Choice::automatic() : Choice::number(share),
              .ubatch = ubatch,
              .threads = n};
          const Predicted row{settings, exactly(machine, prompts, settings)};
          if (!hurts(row.figures, reference, kMostHarm) && times_better(row.figures, best.figures, goal) > 1)
            best = row;
        }
  return best;
}

TuneReport tuned(const SimMachine& machine, const std::vector<SimPrompt>& prompts,
                 const TuneOptions& options = {}) {
  sys::FakeClock clock;
  SimLab lab(machine, prompts, clock);
  auto report = tune(lab, machine.believed, options);
  EXPECT_TRUE(report) << (report ? "" : report.error().message);
  EXPECT_LE(clock.now_s(), options.seconds);
  return *std::move(report);
}

// Within 3 % of the best that there is.
void expect_near_best(const SimMachine& machine, const std::vector<SimPrompt>& prompts,
                      const TuneReport& report, Goal goal, const Predicted& best) {
  const Figures found = exactly(machine, prompts, report.recommended);
  EXPECT_GE(times_better(found, best.figures, goal), 0.97)
      << command_text(report.recommended) << ", and the best is " << command_text(best.settings) << "\n"
      << report.result.conclusion;
}

// Every expert costs the device a long launch that the planner does not know of: a small cache is best.
TEST(Tuner, FindsASmallCacheWhereLaunchesAreDear) {
  SimMachine machine = tuned_machine(sim_profile(290, 60, 55, 12));
  machine.profile.device_expert_us = {100};
  machine.max_cache_bytes = 300'000'000;
  const auto prompts = sim_prompts({});
  const Predicted best = sweep(machine, prompts, Goal::kDecode);
  EXPECT_GT(times_better(best.figures, exactly(machine, prompts, {}), Goal::kDecode), 1.05);
  EXPECT_LT(*best.settings.cache_bytes, machine.max_cache_bytes * 3 / 4);
  const TuneReport report = tuned(machine, prompts);
  expect_near_best(machine, prompts, report, Goal::kDecode, best);
  EXPECT_EQ(report.outcome, Outcome::kTuned) << report.result.conclusion;
  EXPECT_GT(report.gain, 1 + kLeastGain);
}

// A slow link, a CPU that is fast with fewer threads than are loaded, and much contention.
TEST(Tuner, FindsTheThreads) {
  SimMachine machine = tuned_machine(sim_profile(290, 60, 20, 2));
  machine.threads = {{8, 1.0}, {4, 1.3}, {2, 0.7}};
  machine.max_cache_bytes = 60'000'000;
  const auto prompts = sim_prompts(kShape);
  const Predicted best = sweep(machine, prompts, Goal::kDecode);
  EXPECT_EQ(best.settings.threads, 4u);
  const TuneReport report = tuned(machine, prompts);
  expect_near_best(machine, prompts, report, Goal::kDecode, best);
  EXPECT_EQ(report.recommended.threads, 4u) << report.result.conclusion;
  EXPECT_EQ(report.outcome, Outcome::kTuned);
}

// Long prompts that stream all experts for each micro-batch: the larger it is, the sooner the first token.
TEST(Tuner, FindsTheMicroBatchForTheFirstToken) {
  SimMachine machine = tuned_machine(sim_profile(290, 60, 10, 6));
  machine.profile.device_tokens = {400};
  machine.ubatches = {64, 128, 256, 512, 1024};
  PromptShape shape = kShape;
  shape.prompt_tokens = 1000;
  shape.answer_tokens = 40;
  const auto prompts = sim_prompts(shape);
  const Predicted best = sweep(machine, prompts, Goal::kTtft);
  EXPECT_EQ(best.settings.ubatch, 1024u);
  const TuneReport report = tuned(machine, prompts, {.goal = Goal::kTtft});
  expect_near_best(machine, prompts, report, Goal::kTtft, best);
  EXPECT_EQ(report.recommended.ubatch, 1024u) << report.result.conclusion;
}

// Where the default is as good as anything, it is kept, and nothing else is made of noise.
TEST(Tuner, KeepsAGoodDefault) {
  const SimMachine machine = tuned_machine(sim_profile(290, 42, 36, 12));
  const auto prompts = sim_prompts(kShape);
  const Predicted best = sweep(machine, prompts, Goal::kDecode);
  const TuneReport report = tuned(machine, prompts);
  EXPECT_EQ(report.outcome, Outcome::kDefault) << report.result.conclusion;
  EXPECT_EQ(report.recommended, Settings{});
  expect_near_best(machine, prompts, report, Goal::kDecode, best);
}

// A device that computes slower than the CPU, behind a slow link.
TEST(Tuner, RecommendsNoCacheWhereItNeverPays) {
  const SimMachine machine = tuned_machine(sim_profile(12, 60, 50, 2));
  const TuneReport report = tuned(machine, sim_prompts(kShape));
  EXPECT_EQ(report.outcome, Outcome::kNoCache) << report.result.conclusion;
  EXPECT_EQ(report.recommended.cache_bytes, 0u);
  EXPECT_NE(report.result.conclusion.find("does not pay"), std::string::npos);
}

TEST(Tuner, SaysThatEverythingFits) {
  SimMachine machine = tuned_machine(sim_profile(290, 42, 36, 12));
  machine.max_cache_bytes = 400'000'000;
  sys::FakeClock clock;
  SimLab lab(machine, sim_prompts(kShape), clock);
  const TuneReport report = tune(lab, machine.believed, {}).value();
  EXPECT_EQ(report.outcome, Outcome::kEverythingFits);
  EXPECT_NE(report.result.conclusion.find("Leave out -cmoe"), std::string::npos) << report.result.conclusion;
  EXPECT_EQ(lab.runs(), 0u);
}

// Of held-out prompts, with noise; and every row says what it is.
TEST(Tuner, PredictsHeldOutPrompts) {
  std::vector<double> errors;
  const auto prompts = sim_prompts(kShape);
  for (const auto& profile :
       {sim_profile(290, 42, 36, 12), sim_profile(700, 100, 20, 25), sim_profile(290, 150, 110, 6)}) {
    const TuneReport report = tuned(tuned_machine(profile), prompts);
    EXPECT_FALSE(report.model_failed) << report.model_error;
    size_t predicted = 0;
    for (const report::Row& row : report.result.rows) {
      predicted += row.label == Label::kPredicted;
      EXPECT_TRUE(row.label == Label::kPredicted || row.label == Label::kMeasured);
      EXPECT_TRUE(row.label == Label::kMeasured || !row.predicted_tok_s);
      if (row.predicted_tok_s) errors.push_back(std::abs(*row.predicted_tok_s / row.decode_tok_s - 1));
    }
    EXPECT_GT(predicted, 30u);
    EXPECT_EQ(report.result.rows[0].setting, "cache auto, share auto");
    EXPECT_GE(report.result.settings.size(), 3u);
    for (const report::Run& run : report.result.runs) EXPECT_LT(run.setting, report.result.settings.size());
  }
  ASSERT_GE(errors.size(), 9u);
  EXPECT_LE(report::median(errors), 0.05);
  RecordProperty("median_error_percent", std::to_string(100 * report::median(errors)));
}

// 20 GB that decode 20 tokens a second, in the ten minutes of the default; in one it says what it left out.
TEST(Tuner, KeepsTheTime) {
  SimMachine machine = tuned_machine(sim_profile(290, 30, 18, 8));
  PromptShape shape = kShape;
  shape.routes.expert_bytes = 20'000'000'000 / (shape.routes.n_layers * shape.routes.n_experts);
  machine.dense_bytes = 2'000'000'000;
  machine.max_cache_bytes = 5'000'000'000;
  const auto prompts = sim_prompts(shape);
  const Figures by_default = exactly(machine, prompts, {});
  EXPECT_LT(by_default.decode_tok_s, 23);
  EXPECT_GT(by_default.decode_tok_s, 17);
  const TuneReport ten = tuned(machine, prompts);
  EXPECT_NE(ten.outcome, Outcome::kInterrupted);
  EXPECT_FALSE(ten.model_failed);
  const TuneReport one = tuned(machine, prompts, {.seconds = 60});
  EXPECT_TRUE(std::ranges::any_of(one.result.notes, [](const std::string& note) {
    return note.find("There was time to run") != std::string::npos;
  }));
  tuned(machine, prompts, {.seconds = 20});
}

// A machine with a fault of its own: nothing is predicted, the term is named, and what was measured stands.
TEST(Tuner, NamesTheTermAndKeepsToMeasuredRows) {
  SimMachine machine = tuned_machine(sim_profile(290, 42, 36, 12));
  machine.slow_cpu_every = 5;
  machine.slow_cpu = 8;
  const TuneReport report = tuned(machine, sim_prompts(kShape));
  EXPECT_TRUE(report.model_failed);
  EXPECT_GT(report.model_error, kMostModelError);
  for (const report::Row& row : report.result.rows) EXPECT_EQ(row.label, Label::kMeasured);
  EXPECT_GE(report.result.rows.size(), 3u);
  EXPECT_TRUE(std::ranges::any_of(report.result.notes, [](const std::string& note) {
    return note.find("The term that failed is cpu_gb_s") != std::string::npos;
  }));
}

TEST(Tuner, RefusesLimitsThatAllowNothing) {
  SimMachine machine = tuned_machine(sim_profile(290, 42, 36, 12));
  machine.max_cache_bytes = 5'000'000;  // an expert has 2.85 MB, and six are needed
  sys::FakeClock clock;
  SimLab lab(machine, sim_prompts(kShape), clock);
  const auto report = tune(lab, machine.believed, {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, Error::Kind::kNoMemory);
  EXPECT_NE(report.error().message.find("--max-device-mib 303 is the least"), std::string::npos)
      << report.error().message;
}

// Pinned memory makes the link three times as fast; loading takes its time, which is counted.
TEST(Tuner, FindsTheLoadingMode) {
  SimMachine machine = tuned_machine(sim_profile(290, 60, 3, 20));
  machine.load_modes = {{"mmap", 0.3}, {"none", 1.0}, {"mlock", 0.31}};
  machine.load_s = 10;
  const TuneReport report = tuned(machine, sim_prompts(kShape));
  EXPECT_EQ(report.recommended.load_mode, "none")
      << fmt::format("{}\n{}", report.result.conclusion, fmt::join(report.result.notes, "\n"));
  EXPECT_EQ(report.outcome, Outcome::kTuned);
  EXPECT_NE(report.result.conclusion.find("Load it with -lm none"), std::string::npos);
}

// Ctrl-C keeps what was measured.
TEST(Tuner, KeepsWhatWasMeasuredWhenStopped) {
  const SimMachine machine = tuned_machine(sim_profile(290, 42, 36, 12));
  const auto prompts = sim_prompts(kShape);
  for (const uint64_t after : {1, 6, 16}) {
    sys::FakeClock clock;
    SimLab lab(machine, prompts, clock);
    lab.stop_after(after);
    const TuneReport report = tune(lab, machine.believed, {}).value();
    EXPECT_FALSE(report.result.conclusion.empty());
    EXPECT_TRUE(report.stopped);
    // Two runs or fewer of each are no ground for an interval, nor for a gain.
    EXPECT_EQ(report.result.conclusion.find("inf"), std::string::npos) << report.result.conclusion;
    EXPECT_EQ(report.gain, 1);
    EXPECT_EQ(report.result.runs.size(), after > 4 ? after - 4 : 0);  // calibration's four are records only
  }
}

}  // namespace
}  // namespace spillway::tune
