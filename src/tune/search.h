// Looks for the best settings without running them: replays what calibration recorded through the planner, on
// the fitted machine, over a grid of cache size, share, admission, promotion, micro-batch and threads.
// Everything here is predicted.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "tune/figures.h"
#include "tune/lab.h"
#include "tune/time_model.h"

namespace spillway::tune {

// Of one calibration run: what was routed, of which the first steps were warm-up.
struct RecordedRoutes {
  experts::Routes routes;
  size_t warm_up_steps = 0;
  uint32_t ubatch = 0;  // it was recorded with
};

// At most `generate` tokens of each answer, as they would be if no more had been asked for. A step of at most
// `users` tokens is one of an answer.
RecordedRoutes shortened(const RecordedRoutes& recorded, uint32_t generate, uint32_t users);

struct Predicted {
  Settings settings;
  Figures figures;
};

class Predictor {
 public:
  // All that is referred to must outlive this. `believed`: what the planner of a run starts from.
  // `outside_us`: of a token, outside of the steps.
  Predictor(const TimeModel& model, const experts::HardwareProfile& believed, const LabFacts& facts,
            std::vector<RecordedRoutes> routes, double outside_us);

  Result<Predicted> predict(const Settings& settings);
  uint64_t replays() const { return replays_; }
  const LabFacts& facts() const { return facts_; }

 private:
  const std::vector<RecordedRoutes>& routes_at(uint32_t ubatch);

  const TimeModel& model_;
  const experts::HardwareProfile& believed_;
  const LabFacts& facts_;
  const std::vector<RecordedRoutes> recorded_;
  const double outside_us_;
  std::map<uint32_t, std::vector<RecordedRoutes>> routes_;  // by micro-batch
  uint64_t replays_ = 0;
};

struct SearchResult {
  std::vector<Predicted> rows;  // best first
  Predicted by_default, without_cache;
  bool whole = true;  // there was time for all of the grid
};

// `go_on`: with the part of the grid that is done, 0 to 1; false ends the search, which then gives what it
// has (the first two predictions are always made).
Result<SearchResult> search(Predictor& predictor, Goal goal, const std::function<bool(double)>& go_on);

// One step from a setting to either side, in size, share, admission and promotion: what is run beside it.
// The most different first.
std::vector<Settings> neighbours(const Settings& settings, const LabFacts& facts);

}  // namespace spillway::tune
