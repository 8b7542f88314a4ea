// What a model would do on a machine, without the machine: its header tells sizes, the engine's placement
// where they would lie, and the planner that would run there decides over routes under the simulated clock
// (experts/simulator.h). For people who decide what to buy. Everything is *estimated*, with a range: rates a
// little lower and routing that suits a cache less, and the other way round.
//
// Not in it: waits of the processor for the device beside the profile's fixed times, other programs, a
// driver's moods; sampling; the growth of attention's arithmetic with the context (its reads are in it, at
// half the context).
#pragma once

#include <optional>

#include "report/result.h"
#include "tune/plan_layout.h"
#include "tune/plan_routes.h"

namespace spillway::tune {

struct Speed {
  double decode_tok_s = 0, prefill_tok_s = 0;
  double hit_rate = 0;
  report::Resources resources;  // of a decoded token
};

struct Estimate {
  Speed typical, low, high;
};

// One machine with one set of routes. Requires: the layout fits.
Result<Speed> estimate_speed(const PlanModel& model, const Layout& layout, const PlanMachine& machine,
                             const PlanRoutes& routes);

// Changes below it are within what the order of the controller's tries does to a replay of some hundred
// tokens (seen: up to 3.5 % either way), and to one of a single warm micro-batch (6 %).
inline constexpr double kNoDifference = 0.04, kNoPrefillDifference = 0.08;

struct ChangedEstimate {
  Change change;
  uint64_t cache_bytes = 0;
  Estimate estimate;
};

struct MachinePlan {
  std::string name;
  PlanMachine machine;
  Layout layout;
  bool device_too_small = false;         // not even a layer's dense part fits: there is no layout either
  std::optional<Estimate> estimate;      // nothing where the model does not fit
  double limit_tok_s = 0;                // no placement decodes faster on it (experts/bounds.h)
  std::vector<ChangedEstimate> changes;  // what a person could buy
  std::string bottleneck;                // the part whose relief would help decoding most
};

// `go_on`: asked before each of the replays; false stops with kCancelled.
Result<MachinePlan> plan_on_machine(const PlanModel& model, const PlanMachine& machine, const PlanUse& use,
                                    const RoutesByRepetition& routes, const std::function<bool()>& go_on);

// Of a machine as it is and with each change: typical, low, high.
inline constexpr uint64_t kReplaysOfMachine = 3 * 6;
// How long one takes, in steps of the statistic: measured with models of 128 and 512 experts.
inline constexpr uint64_t kReplayWeight = 10;

// The closed-form limit of this model on this machine, in tokens per second.
double decode_limit(const PlanModel& model, const Layout& layout, const experts::HardwareProfile& profile);

// Rows and terms of a result of kind "plan"; facts of build and model are left to the caller.
void add_to_result(report::ResultFile& result, const MachinePlan& plan);

}  // namespace spillway::tune
