#include "tune/plan_routes.h"

#include <algorithm>

namespace spillway::tune {
namespace {

constexpr uint64_t kSeed = 1;

}  // namespace

experts::RoutingStatistic routing_statistic(Repetition repetition) {
  switch (repetition) {
    case Repetition::kLess:
      return {.zipf = 0.6, .topic = 1.9, .tokens_of_topic = 70};
    case Repetition::kTypical:
      break;
    case Repetition::kMore:
      return {.zipf = 0.8, .topic = 2.5, .tokens_of_topic = 150};
  }
  return {};
}

Result<RoutesByRepetition> routes_from_statistic(const PlanModel& model, const PlanUse& use,
                                                 const std::function<bool()>& go_on) {
  const auto stopped = [] { return fail(Error::Kind::kCancelled, "stopped"); };
  if (!go_on()) return stopped();
  experts::SyntheticRouter prompt(model.groups, routing_statistic(Repetition::kTypical), kSeed + 1);
  prompt.step(std::min(use.ubatch, use.context));
  experts::Routes twice = prompt.routes();
  const experts::Routes& once = prompt.routes();
  twice.begin_step(once.steps()[0].n_tokens);
  for (const experts::Routes::Layer& layer : once.layers(once.steps()[0])) twice.add(once.routing(layer));

  RoutesByRepetition routes;
  for (uint32_t r = 0; r < kRepetitions; ++r) {
    experts::SyntheticRouter decode(model.groups, routing_statistic(static_cast<Repetition>(r)), kSeed);
    for (uint32_t i = 0; i < kDecodeTokens; ++i) {
      if (!go_on()) return stopped();
      decode.step(1);
    }
    routes[r] = {decode.routes(), twice};
  }
  return routes;
}

Result<PlanRoutes> routes_from_trace(const PlanModel& model, const experts::Trace& trace) {
  const experts::Routes recorded = experts::routes_of(trace);
  for (const experts::GroupShape& here : model.groups)
    for (const experts::GroupShape& there : recorded.groups)
      if (here.n_experts != there.n_experts || here.n_used != there.n_used)
        return invalid(
            "the trace is of a model with {} experts a layer of which {} are used, this one has {} and uses "
            "{}: record one of "
            "this model, or leave it out",
            there.n_experts, there.n_used, here.n_experts, here.n_used);
  const uint32_t n_layers = experts::count_layers(model.groups);
  PlanRoutes routes;
  routes.decode.groups = routes.prefill.groups = model.groups;
  for (const experts::Routes::Step& step : recorded.steps()) {
    const auto layers = recorded.layers(step);
    if (layers.empty()) continue;
    experts::Routes& to = step.n_tokens == 1 ? routes.decode : routes.prefill;
    to.begin_step(step.n_tokens);
    for (experts::LayerId l = 0; l < n_layers; ++l) {
      experts::Routing routing = recorded.routing(layers[l % layers.size()]);
      routing.layer = l;
      to.add(routing);
    }
  }
  if (routes.decode.n_tokens() < 2)
    return invalid("the trace has no tokens that were decoded one by one; record one with -n 256");
  return routes;
}

experts::Routes routes_of_planned(const experts::Routes& all, const Layout& layout) {
  experts::Routes planned;
  planned.groups = layout.placement.groups;
  for (const experts::Routes::Step& step : all.steps()) {
    planned.begin_step(step.n_tokens);
    for (const experts::Routes::Layer& layer : all.layers(step)) {
      if (layout.experts[layer.layer] != engine::ExpertPlace::kPlanned) continue;
      experts::Routing routing = all.routing(layer);
      routing.layer = layout.planner_layer[layer.layer];
      planned.add(routing);
    }
  }
  return planned;
}

}  // namespace spillway::tune
