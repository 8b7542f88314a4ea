#include "experts/simulator.h"

#include <algorithm>

#include "experts/belady.h"
#include "experts/layer_clock.h"

namespace spillway {
namespace experts {
namespace {

// Enough for the double buffering of a prompt; the simulated clock does not wait for ring slots.
constexpr uint32_t kRingSlots = 8;

std::vector<uint32_t> slots_of(const SimulationSetup& setup, std::span<const GroupShape> groups) {
  if (!setup.slots.empty()) return setup.slots;
  std::vector<uint32_t> slots;
  for (const GroupShape& group : groups)
    slots.push_back(static_cast<uint32_t>(setup.cache_share * static_cast<double>(group.layers.size()) *
                                          group.n_experts));
  return slots;
}

Result<SimulationResult> run(const Routes& routes, const SimulationSetup& setup, const PolicyMaker& maker) {
  SW_TRY(setup.machine.check());
  std::vector<GroupShape> groups = routes.groups;
  if (setup.expert_bytes > 0)
    for (GroupShape& group : groups) group.expert_bytes = setup.expert_bytes;
  std::vector<uint32_t> rings(groups.size(), kRingSlots);
  if (!setup.ring_slots.empty()) rings = setup.ring_slots;
  SW_ASSIGN(const std::unique_ptr<Planner> planner,
            Planner::create(setup.settings, groups, slots_of(setup, groups), rings,
                            setup.believed.value_or(setup.machine), maker));
  const CostModel machine(setup.machine);
  const double n_layers = std::max(count_layers(groups), 1u);
  const double fixed_us = setup.step_us.value_or(setup.machine.step_us.value);
  LayerClock clock;
  SimulationResult result;
  for (const Routes::Step& step : routes.steps()) {
    const double dense_us = static_cast<double>(setup.dense_bytes) /
                            (setup.machine.device_gb_s.value * 1000.0) *
                            std::max(1.0, step.n_tokens / setup.machine.device_tokens.value);
    const double gap_us = (dense_us + fixed_us) / n_layers;
    double us = 0.0;
    const auto layers = routes.layers(step);
    for (size_t i = 0; i < layers.size(); ++i)
      us += gap_us + clock.run(*planner, machine, routes.routing(layers[i]),
                               layers[(i + 1) % layers.size()].layer, gap_us);
    result.us += us;
    result.tokens += step.n_tokens;
    if (2 * result.steps_us.size() >= routes.steps().size()) {
      result.late_us += us;
      result.late_tokens += step.n_tokens;
      result.longest_step_us = std::max(result.longest_step_us, us);
    }
    result.steps_us.push_back(us);
  }
  std::vector<double> step_us = result.steps_us;
  if (!step_us.empty()) {
    const auto middle = step_us.begin() + static_cast<std::ptrdiff_t>(step_us.size() / 2);
    std::nth_element(step_us.begin(), middle, step_us.end());
    result.median_step_us = *middle;
  }
  const LayerCounters counters = planner->total();
  if (planner->report() != nullptr) result.report = *planner->report();
  result.cold = counters.cold;
  result.warm = counters.warm;
  result.notes.assign(planner->notes().begin(), planner->notes().end());
  return result;
}

}  // namespace

SimulationSetup setup_of(const TraceHead& head) {
  SimulationSetup setup;
  setup.settings = head.settings;
  setup.slots = head.slots;
  setup.ring_slots = head.ring_slots;
  setup.machine = head.profile;
  setup.dense_bytes = head.dense_bytes;
  return setup;
}

Result<SimulationResult> simulate(const Routes& routes, const SimulationSetup& setup) {
  return run(routes, setup, {});
}

Result<SimulationResult> simulate_belady(const Routes& routes, const SimulationSetup& setup) {
  std::vector<Future> futures(routes.groups.size());
  std::vector<std::pair<GroupId, uint32_t>> place;  // of each layer: group and index in it
  for (GroupId g = 0; g < routes.groups.size(); ++g) {
    const GroupShape& group = routes.groups[g];
    futures[g].uses.resize(group.layers.size() * group.n_experts);
    for (uint32_t i = 0; i < group.layers.size(); ++i) {
      if (place.size() <= group.layers[i]) place.resize(group.layers[i] + 1);
      place[group.layers[i]] = {g, i};
    }
  }
  std::vector<uint32_t> now(place.size(), 0);
  for (const Routes::Step& step : routes.steps())
    for (const Routes::Layer& layer : routes.layers(step)) {
      const auto [g, index] = place[layer.layer];
      for (const Use& use : routes.routing(layer).uses)
        futures[g].uses[size_t{index} * routes.groups[g].n_experts + use.expert].push_back(now[layer.layer]);
      ++now[layer.layer];
    }
  SimulationSetup belady = setup;
  belady.settings.policy = {.kind = PolicyKind::kBelady};
  belady.settings.admit = Choice::number(1.0);
  return run(routes, belady, [&](GroupId group, const PoolShape& shape) {
    return make_belady(shape, std::move(futures[group]));
  });
}

}  // namespace experts
}  // namespace spillway
