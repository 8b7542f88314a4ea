// A made-up machine that settings are tried on, for tests: routes of a model are carried out by the planner
// under the simulated clock, on a hardware profile that the tuner is not told, with noise. Nothing that comes
// of it was measured on anything.
#pragma once

#include <span>

#include "sys/clock.h"
#include "tune/lab.h"

namespace spillway::tune {

// What is routed for each token of a prompt and its answer, token by token.
struct SimPrompt {
  Prompt prompt;
  uint32_t prompt_tokens = 0;  // the first of the steps
  experts::Routes tokens;      // steps of one token each
};

struct SimLoadMode {
  std::string name;
  double link_rate = 1.0;  // against the profile's
};

struct SimMachine {
  experts::HardwareProfile profile;   // how it behaves
  experts::HardwareProfile believed;  // what its planner starts from
  uint64_t dense_bytes = 0;
  uint64_t max_cache_bytes = 0;
  double token_us = 0;  // outside of the experts, each further token of a micro-batch
  std::vector<ThreadChoice> threads;
  std::vector<uint32_t> ubatches = {64, 128, 256, 512};
  std::vector<SimLoadMode> load_modes = {{"none"}};  // the first is loaded
  double load_s = 0;                                 // that it takes to load another
  // Standard deviations, of logarithms: of each step's rates, and of each try's.
  double step_noise = 0, run_noise = 0;
  // What no model of it knows: every such-and-such step's CPU is this many times slower. 0: never.
  uint32_t slow_cpu_every = 0;
  double slow_cpu = 1.0;
  uint64_t seed = 1;
};

class SimLab final : public Lab {
 public:
  // Prompts of one shape (groups). `clock` goes on by what a try takes; it must outlive this.
  SimLab(const SimMachine& machine, std::vector<SimPrompt> prompts, sys::FakeClock& clock);

  const LabFacts& facts() const override { return facts_; }
  Result<Trial> run(const Settings& settings, const Task& task) override;
  double seconds() const override { return clock_.now_s(); }
  bool stopped() const override { return stop_after_ > 0 && runs_ >= stop_after_; }

  // As if a person pressed Ctrl-C after so many tries.
  void stop_after(uint64_t runs) { stop_after_ = runs; }
  uint64_t runs() const { return runs_; }

 private:
  class Session;
  const SimMachine machine_;
  const std::vector<SimPrompt> prompts_;
  sys::FakeClock& clock_;
  LabFacts facts_;
  size_t load_mode_ = 0;
  uint64_t runs_ = 0;
  uint64_t stop_after_ = 0;
};

}  // namespace spillway::tune
