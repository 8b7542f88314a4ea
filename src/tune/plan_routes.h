// What the routers of a model are taken to say, for all of its MoE layers: from a recorded trace or from a
// statistic (experts/synthetic_routes.h).
//
// Of the decoded tokens the first half fills and settles the cache, the second is counted.
#pragma once

#include <array>
#include <functional>
#include <string>

#include "experts/simulator.h"
#include "experts/synthetic_routes.h"
#include "experts/trace.h"
#include "tune/plan_layout.h"

namespace spillway::tune {

// How well routing suits a cache: the statistic as it is, and with less and with more repetition. With 128
// experts of which 8 are used and a cache of 12 / 20 / 30 % of them the hit rates (CRF) are 57 / 70 / 80,
// 65 / 78 / 86 and 72 / 84 / 92 %; public traces had 65 / 78 / 87. A recorded trace is the same in all three.
enum class Repetition : uint8_t { kLess, kTypical, kMore };
inline constexpr uint32_t kRepetitions = 3;
experts::RoutingStatistic routing_statistic(Repetition repetition);

// Layers are numbered among the model's MoE layers.
struct PlanRoutes {
  experts::Routes decode;   // steps of one token
  experts::Routes prefill;  // micro-batches
};

// Tokens that are decoded, for each repetition.
inline constexpr uint32_t kDecodeTokens = 320;
// One after the other: less, typical, more. Prefill is the same in all three, one micro-batch that comes
// twice: a long one uses nearly all experts whatever the statistic. `go_on`: asked before each of the
// kStatisticSteps; false stops with kCancelled.
inline constexpr uint32_t kStatisticSteps = kRepetitions * kDecodeTokens + 1;
using RoutesByRepetition = std::array<PlanRoutes, kRepetitions>;
Result<RoutesByRepetition> routes_from_statistic(const PlanModel& model, const PlanUse& use,
                                                 const std::function<bool()>& go_on);

// Of a trace of the same model, or of one with as many experts of which as many are used: layers that the
// trace lacks (they were resident when it was recorded) take those of others in turn. Steps of one token are
// decoding; a trace without longer ones gives no prefill routes, one without single tokens is refused.
Result<PlanRoutes> routes_from_trace(const PlanModel& model, const experts::Trace& trace);

// The routes of the layers that the layout leaves to the planner, with its numbers for them.
experts::Routes routes_of_planned(const experts::Routes& all, const Layout& layout);

}  // namespace spillway::tune
