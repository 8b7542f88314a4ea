#include "tune/time_model.h"

#include <gtest/gtest.h>

#include "tune/sim_machines.h"

namespace spillway::tune {
namespace {

using experts::Choice;

// Runs of the kinds that calibration makes.
struct Runs {
  std::vector<std::string> names;
  std::vector<Trial> trials;

  std::vector<Recorded> recorded() const {
    std::vector<Recorded> all;
    for (size_t i = 0; i < trials.size(); ++i) all.push_back({names[i], &trials[i].trace});
    return all;
  }
};

Runs record(const SimMachine& machine, const PromptShape& shape = {.calibration = 2, .held_out = 0}) {
  sys::FakeClock clock;
  SimLab lab(machine, sim_prompts(shape), clock);
  const uint64_t all = lab.facts().max_cache_bytes;
  Runs runs;
  for (const Settings& settings :
       {Settings{.cache_bytes = all, .cpu_share = Choice::number(0)},
        Settings{.cache_bytes = all / 4, .cpu_share = Choice::number(1)},
        Settings{.cache_bytes = all / 4, .cpu_share = Choice::number(0.5)}, Settings{}}) {
    runs.names.push_back(short_name(settings));
    runs.trials.push_back(
        lab.run(settings, {.warm_up = {0}, .measured = {1}, .generate = 160, .trace = true}).value());
  }
  return runs;
}

SimMachine machine_of(const experts::HardwareProfile& profile) {
  SimMachine machine;
  machine.profile = profile;
  machine.believed = experts::default_profile();  // its rates are others
  // Experts of one size: fixed costs can't be told from rates, a probe has to find them.
  machine.believed.copy_us = {1.2 * profile.copy_us.value};
  machine.believed.device_expert_us = {1.2 * profile.device_expert_us.value};
  machine.dense_bytes = 400'000'000;
  machine.max_cache_bytes = 300'000'000;
  machine.token_us = 30;
  machine.step_noise = 0.03;
  machine.run_noise = 0.005;
  return machine;
}

TEST(TimeModel, FindsTheRatesThatWereSet) {
  // The last one's device is so slow that it, not the link, is what prompts wait for.
  for (const auto& profile :
       {sim_profile(290, 42, 36, 12), sim_profile(700, 150, 60, 24), sim_profile(40, 60, 30, 25)}) {
    const SimMachine machine = machine_of(profile);
    const Runs runs = record(machine);
    const auto records = runs.recorded();
    const TimeModel model = fit_time_model(records, machine.believed).value();
    for (const std::string_view name :
         {"device_gb_s", "cpu_gb_s", "link_gb_s", "cpu_contended_gb_s", "link_contended_gb_s", "cpu_tokens",
          "step_us", "layer_us", "cpu_start_us"}) {
      double set = 0;
      for (const auto& [key, quantity] : profile.quantities())
        if (key == name) set = quantity->value;
      const auto term = std::ranges::find(model.terms, name, &report::Term::name);
      ASSERT_NE(term, model.terms.end()) << name;
      EXPECT_EQ(term->label, Label::kPredicted) << name;
      EXPECT_NEAR(term->value, set, 0.1 * set) << name;
      ASSERT_TRUE(term->low && term->high) << name;
      EXPECT_LE(*term->low, term->value) << name;
      EXPECT_GE(*term->high, term->value) << name;
    }
    if (profile.device_gb_s.value < 100) {
      EXPECT_NEAR(model.profile.device_tokens.value, profile.device_tokens.value, 1.6);
    }
    EXPECT_NEAR(model.token_gap_us, machine.token_us, 0.1 * machine.token_us);
    const ModelCheck check = check_time_model(model, records).value();
    EXPECT_EQ(check.runs.size(), 4u);
    EXPECT_LT(check.error, 0.03);
  }
}

// What was not recorded keeps its value and its label.
TEST(TimeModel, KeepsWhatTheRecordsDontSay) {
  const SimMachine machine = machine_of(sim_profile(290, 42, 36, 12));
  Runs runs = record(machine);
  const std::vector<Recorded> links = {runs.recorded()[0]};
  experts::HardwareProfile start = experts::default_profile();
  start.cpu_gb_s = {33, Label::kMeasured};
  const TimeModel model = fit_time_model(links, start).value();
  EXPECT_EQ(model.profile.cpu_gb_s.value, 33);
  const auto cpu = std::ranges::find(model.terms, "cpu_gb_s", &report::Term::name);
  EXPECT_EQ(cpu->label, Label::kMeasured);
  EXPECT_FALSE(cpu->low);
  const auto link = std::ranges::find(model.terms, "link_gb_s", &report::Term::name);
  EXPECT_EQ(link->label, Label::kPredicted);
}

// A CPU that now and then is slow for reasons of its own: the check names it.
TEST(TimeModel, NamesTheTermThatFails) {
  SimMachine machine = machine_of(sim_profile(290, 42, 36, 12));
  machine.slow_cpu_every = 5;
  machine.slow_cpu = 8;
  const Runs runs = record(machine);
  const auto records = runs.recorded();
  const TimeModel model = fit_time_model(records, machine.believed).value();
  const ModelCheck check = check_time_model(model, records).value();
  EXPECT_GT(check.error, 0.1);
  EXPECT_EQ(check.worst_term, "cpu_gb_s") << check.words;
  EXPECT_NE(check.words.find("the CPU's part took"), std::string::npos) << check.words;
}

TEST(TimeModel, RefusesRecordsWithoutTimes) {
  experts::Trace empty;
  const Recorded record{"nothing", &empty};
  EXPECT_FALSE(fit_time_model({&record, 1}, experts::default_profile()));
}

}  // namespace
}  // namespace spillway::tune
