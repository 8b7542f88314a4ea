// Finds out while running what pays: the admission factor, promotions, the cache itself, and which resources
// a layer's split should use. Nothing here decides a single expert; that is the planner's.
//
// Two ways of looking, each within its budget:
// - Rehearsals. How a cache does with another admission factor shows only after some hundred tokens, too long
//   to try in earnest. So every alternative has a small planner of its own for a few of the layers, with
//   their part of the slots, which is given the same routes and runs under the simulated clock with the rates
//   observed so far. A stretch of steps is rehearsed, the first part of it uncounted, and the alternative
//   that took least is put in force if it beats the present one, rehearsed alike, by half a percent; no cache
//   at all if nothing beats that by as much.
// - Probes. Predictions of a kind of split that is never made can't be corrected. Now and then one layer is
//   split the second-best way. That shows in the rates that the cost model learns, and in a factor
//   observed / predicted per kind of split, for what the model has no rate for.
// What a probe cost is what it took beyond the prediction of the best split; half a percent of all time
// observed may be spent so, and half a percent on rehearsals (counted by plans made). A probe may cost a
// tenth of a step at most by its prediction, a twentieth while its kind has not been seen.
//
// (Trying alternatives in earnest, a window of tokens each, was rejected: with 1 % to spend, a factor that
// costs 20 % can be tried for one token in twenty, and the cache it would leave behind is never seen.)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experts/layer_clock.h"

namespace spillway {
namespace experts {

// A way to run the cache.
struct Alternative {
  double admit = 0.0;
  bool promote = false;
  bool cache = true;  // false: nothing is kept
  // What was found: simulated time per layer and micro-batch, over so many of them.
  double layer_us = 0.0;
  uint64_t rehearsed = 0;
};

struct ControllerReport {
  std::vector<Alternative> alternatives;
  size_t chosen = 0;
  uint64_t changes = 0;                      // of what is chosen
  Corrections corrections{};                 // observed / predicted per kind of split
  std::array<uint64_t, kSplitKinds> seen{};  // plans observed of each
  uint64_t probes = 0;
  double probes_us = 0.0;  // what they cost beyond the best split
  double dearest_probe_us = 0.0;
  uint64_t rehearsed_plans = 0;
  double watched_us = 0.0;  // all time observed
};

// For the statistics, whole sentences: what was tried, what it would take (predicted), what is in force.
std::vector<std::string> describe(const ControllerReport& report);

class Controller {
 public:
  // `first`: the alternative to begin with. Requires: settings as a planner takes them.
  Controller(const PlannerSettings& settings, std::span<const GroupShape> groups,
             std::span<const uint32_t> slots, std::span<const uint32_t> ring_slots,
             const HardwareProfile& profile);
  ~Controller();

  const Alternative& chosen() const { return report_.alternatives[report_.chosen]; }
  const Corrections& corrections() const { return report_.corrections; }
  const ControllerReport& report() const { return report_; }

  // The split to make: the best one, or the best of another kind to see how it does.
  Split choose(const Split& best, const Splitter& splitter);
  // A plan of that kind was carried out. `predicted_us`: without correction. `best_us`: of a probe, what the
  // best split would have taken; else 0.
  void observe(SplitKind kind, double predicted_us, double best_us, double seen_us);

  // The engine says how long the link idles outside of the expert parts: it makes promotions.
  void link_idles(double gap_us);
  // The same routes for the alternatives. `machine`: the rates observed so far.
  void rehearse(const Routing& routing, const CostModel& machine);

 private:
  struct Rehearsal {
    std::unique_ptr<Planner> planner;
    LayerClock clock;
    double us = 0.0;  // of the stretch, after its first part
  };
  void begin_step(const CostModel& machine);
  void judge();

  const bool may_give_up_;  // a fixed share was asked for, and with it a cache: then no
  ControllerReport report_;
  std::vector<Rehearsal> rehearsals_;  // of the alternatives
  std::vector<uint8_t> sampled_;       // by layer: is rehearsed
  LayerId first_sampled_ = kNone;
  double layers_per_step_ = 0.0;
  double gap_us_ = 0.0;
  bool promotes_ = false;  // the engine asks for promotions
  uint32_t step_ = 0;      // of the stretch, from 1; 0: none is under way
  uint64_t counted_ = 0;   // plans of each in the stretch, after its first part
  double plans_per_stretch_ = 0.0;
  uint64_t plans_ = 0;
  uint64_t last_probe_ = 0;
};

}  // namespace experts
}  // namespace spillway
