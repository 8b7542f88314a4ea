// Where the time of a layer goes on this machine, found from records of runs: the terms of a hardware profile
// (experts/profile.h, whose formulas experts/cost_model.h has), fitted by bounded least squares, each with
// its interval. A term that the records say nothing about keeps the value that it had before, and its label.
//
// Every plan of a record says how long device, link and CPU took for so many bytes, experts and tokens. Lone
// rates come from plans in which a resource worked alone, contended ones from plans in which link and CPU
// worked side by side; that is why calibration runs a setting of each kind. Where all experts have the same
// bytes, a fixed cost per copy can't be told from the rate: it keeps its value and the rate takes the rest,
// which predicts the same.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experts/simulator.h"
#include "report/result.h"

namespace spillway::tune {

struct Recorded {
  std::string name;  // of its setting
  const experts::Trace* trace = nullptr;
};

struct TimeModel {
  experts::HardwareProfile profile;
  // Outside of the experts' parts: a step of one token, and each further token of a micro-batch.
  double gap_us = 0, token_gap_us = 0;
  std::vector<report::Term> terms;

  // What the simulated clock takes for these routes; steps_us are whole steps.
  Result<experts::SimulationResult> replay(const experts::Routes& routes,
                                           experts::SimulationSetup setup) const;
};

// `start`: what the planner of the recorded runs started from, and what stays where nothing is recorded.
// kInvalid where the records hold no plan with times.
Result<TimeModel> fit_time_model(std::span<const Recorded> records, const experts::HardwareProfile& start);

// The recorded settings once more, through the planner on the fitted machine.
struct ModelCheck {
  struct Run {
    std::string name;
    double measured_us = 0, predicted_us = 0;
    double error() const { return predicted_us / measured_us - 1; }
  };
  std::vector<Run> runs;
  double error = 0;  // the largest |error()|
  // The term whose prediction, given the recorded decisions, is farthest from what was seen.
  std::string worst_term;
  std::string words;  // what was seen of it, a sentence
};
Result<ModelCheck> check_time_model(const TimeModel& model, std::span<const Recorded> records);

}  // namespace spillway::tune
