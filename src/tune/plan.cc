#include "tune/plan.h"

#include <algorithm>
#include <cmath>

#include "experts/bounds.h"
#include "experts/cost_model.h"

namespace spillway::tune {
namespace {

using experts::CostModel;
using experts::Counters;

// Everything of a step that the simulator does not know of: layers that are resident or the CPU's, their mean
// over the second half of the steps, which is what counts.
std::span<const experts::Routes::Step> late_steps(const experts::Routes& all) {
  const auto steps = all.steps();
  return steps.size() < 2 ? steps : steps.subspan(steps.size() - steps.size() / 2);  // as the simulator does
}

struct Rest {
  double device_us = 0, cpu_us = 0;
};

Rest rest_of(const PlanModel& model, const Layout& layout, const CostModel& cost,
             const experts::Routes& all) {
  std::vector<uint64_t> bytes(layout.experts.size());
  for (const experts::GroupShape& group : model.groups)
    for (const experts::LayerId layer : group.layers) bytes[layer] = group.expert_bytes;
  Rest rest;
  const auto steps = late_steps(all);
  double tokens = 0;
  for (const experts::Routes::Step& step : steps) {
    tokens += step.n_tokens;
    for (const experts::Routes::Layer& layer : all.layers(step))
      for (const experts::Use& use : all.routing(layer).uses) {
        if (layout.experts[layer.layer] == engine::ExpertPlace::kResident)
          rest.device_us += cost.device_us(bytes[layer.layer], use.tokens);
        if (layout.experts[layer.layer] == engine::ExpertPlace::kCpu)
          rest.cpu_us += cost.cpu_us(bytes[layer.layer], use.tokens);
      }
  }
  const double n = static_cast<double>(steps.size());
  rest.device_us /= n;
  rest.cpu_us /= n;
  // The dense part of layers on the CPU, as the cost model prices experts.
  rest.cpu_us += cost.cpu_us(layout.cpu_dense_bytes, static_cast<uint32_t>(std::lround(tokens / n)));
  return rest;
}

struct Replayed {
  experts::SimulationResult simulated;
  Rest rest;
  double us_per_step = 0;  // of the second half
  double tokens_per_step = 0;
};

Result<Replayed> replay(const PlanModel& model, const Layout& layout, const PlanMachine& machine,
                        const experts::Routes& all, uint64_t dense_bytes) {
  const CostModel cost(machine.profile);
  Replayed result;
  result.rest = rest_of(model, layout, cost, all);
  const double fixed_us = machine.profile.step_us.value + result.rest.device_us + result.rest.cpu_us;
  const experts::Routes planned = routes_of_planned(all, layout);
  const auto late = late_steps(all);
  for (const experts::Routes::Step& step : late)
    result.tokens_per_step += static_cast<double>(step.n_tokens) / static_cast<double>(late.size());
  if (planned.groups.empty()) {
    // Nothing is left to decide: a step is the sum of its parts.
    const double dense_us = static_cast<double>(dense_bytes) / (machine.profile.device_gb_s.value * 1000.0) *
                            std::max(1.0, result.tokens_per_step / machine.profile.device_tokens.value);
    result.us_per_step = dense_us + fixed_us;
    return result;
  }
  experts::SimulationSetup setup;
  setup.machine = machine.profile;
  setup.dense_bytes = dense_bytes;
  setup.step_us = fixed_us;
  for (const uint32_t pool : layout.placement.group_pool) {
    setup.slots.push_back(layout.placement.pools[pool].cache_slots);
    setup.ring_slots.push_back(layout.placement.pools[pool].ring_slots);
  }
  SW_ASSIGN(result.simulated, experts::simulate(planned, setup));
  const double us = all.steps().size() < 2 ? result.simulated.us : result.simulated.late_us;
  result.us_per_step = us / static_cast<double>(late.size());
  return result;
}

// Where the time of a decoded token goes: how long each resource would be busy with its part, alone.
report::Resources resources_of(const PlanModel& model, const Layout& layout, const PlanMachine& machine,
                               const Replayed& replayed, const Counters& counters) {
  const CostModel cost(machine.profile);
  const experts::HardwareProfile& p = machine.profile;
  report::Resources r;
  r.total_us = replayed.us_per_step;
  r.device_us = static_cast<double>(layout.device_dense_bytes) / (p.device_gb_s.value * 1000.0) +
                replayed.rest.device_us;
  r.cpu_us = replayed.rest.cpu_us;
  r.wait_us = p.step_us.value;
  double n_layers = 0, n_bytes = 0;
  for (const experts::GroupShape& group : layout.placement.groups) {
    const double n = static_cast<double>(group.layers.size());
    n_layers += n;
    n_bytes += n * static_cast<double>(group.expert_bytes);
  }
  if (n_layers == 0 || counters.tokens == 0) return r;
  const double tokens = static_cast<double>(counters.tokens) / n_layers;
  const auto bytes = static_cast<uint64_t>(n_bytes / n_layers);  // of a mean expert
  const auto each = [&](uint64_t n) { return static_cast<double>(n) / tokens; };
  const double on_device = each(counters.hits + counters.uploaded + counters.streamed + counters.joined);
  r.device_us += on_device * cost.device_us(bytes, 1);
  r.link_us = each(counters.uploaded + counters.streamed + counters.promoted) * cost.link_us(bytes);
  r.cpu_us += each(counters.cpu) * cost.cpu_us(bytes, 1);
  // A layer waits for the host if it misses anything.
  const double used = static_cast<double>(model.groups[0].n_used);
  r.wait_us += n_layers * (1 - std::pow(counters.hit_rate(), used)) * p.layer_us.value;
  return r;
}

Result<Estimate> estimate(const PlanModel& model, const Layout& layout, const PlanMachine& machine,
                          const RoutesByRepetition& routes, const std::function<bool()>& go_on) {
  const double part = machine.uncertainty;
  const auto speed = [&](Repetition repetition, double rates) -> Result<Speed> {
    if (!go_on()) return fail(Error::Kind::kCancelled, "stopped");
    return estimate_speed(model, layout, with_rates(machine, rates), routes[static_cast<size_t>(repetition)]);
  };
  Estimate result;
  SW_ASSIGN(result.typical, speed(Repetition::kTypical, 1));
  SW_ASSIGN(result.low, speed(Repetition::kLess, 1 - part));
  SW_ASSIGN(result.high, speed(Repetition::kMore, 1 + part));
  return result;
}

}  // namespace

Result<Speed> estimate_speed(const PlanModel& model, const Layout& layout, const PlanMachine& machine,
                             const PlanRoutes& routes) {
  Speed speed;
  SW_ASSIGN(const Replayed decode, replay(model, layout, machine, routes.decode, layout.device_dense_bytes));
  speed.decode_tok_s = 1e6 / decode.us_per_step;
  // Once the cache is full it is warm; a cache that never fills is cold throughout.
  const Counters& warm = decode.simulated.warm;
  const Counters& counters = warm.tokens > 0 ? warm : decode.simulated.cold;
  // Of all layers' experts: those of resident layers are hits, those of the CPU's are none.
  speed.hit_rate =
      (layout.placement.n_planned_layers() * counters.hit_rate() + layout.placement.n_resident_layers()) /
      static_cast<double>(layout.experts.size());
  speed.resources = resources_of(model, layout, machine, decode, counters);
  if (routes.prefill.steps().empty()) return speed;
  // Logits are wanted of a prompt's last token alone.
  const uint64_t without_output =
      layout.device_dense_bytes - (layout.placement.output_on_device ? layout.output_bytes : 0);
  SW_ASSIGN(const Replayed prefill, replay(model, layout, machine, routes.prefill, without_output));
  speed.prefill_tok_s = 1e6 * prefill.tokens_per_step / prefill.us_per_step;
  return speed;
}

double decode_limit(const PlanModel& model, const Layout& layout, const experts::HardwareProfile& profile) {
  const experts::DecodeLimits limits{
      .dense_bytes = static_cast<double>(layout.device_dense_bytes + layout.cpu_dense_bytes),
      .expert_bytes = static_cast<double>(model.token_expert_bytes),
      .device_gb_s = profile.device_gb_s.value,
      .dram_gb_s = profile.dram_gb_s.value,
      .cpu_gb_s = profile.cpu_gb_s.value,
      .link_gb_s = profile.link_gb_s.value};
  return 1e6 / limits.best_possible_us();
}

Result<MachinePlan> plan_on_machine(const PlanModel& model, const PlanMachine& machine, const PlanUse& use,
                                    const RoutesByRepetition& routes, const std::function<bool()>& go_on) {
  MachinePlan plan{.name = machine.profile.name, .machine = machine};
  auto own = lay_out(model, machine, use);
  plan.device_too_small = !own && own.error().kind == Error::Kind::kNoMemory;
  if (plan.device_too_small) return plan;
  SW_ASSIGN(plan.layout, std::move(own));
  plan.limit_tok_s = decode_limit(model, plan.layout, machine.profile);
  if (plan.layout.host_missing_bytes > 0) return plan;
  SW_ASSIGN(plan.estimate, estimate(model, plan.layout, machine, routes, go_on));
  double most = 0;
  for (const Change& change : changes_of(machine)) {
    SW_ASSIGN(const Layout layout, lay_out(model, change.machine, use));
    SW_ASSIGN(Estimate changed, estimate(model, layout, change.machine, routes, go_on));
    if (changed.typical.decode_tok_s > most) {
      most = changed.typical.decode_tok_s;
      plan.bottleneck = change.part;
    }
    plan.changes.push_back({change, layout.placement.cache_bytes(), changed});
  }
  return plan;
}

void add_to_result(report::ResultFile& result, const MachinePlan& plan) {
  if (!plan.estimate) return;
  const auto add = [&](const std::string& setting, const Estimate& estimate, uint64_t cache_bytes) {
    result.rows.push_back({.setting = setting,
                           .label = Label::kEstimated,
                           .cache_bytes = static_cast<double>(cache_bytes),
                           .share = "auto",
                           .decode_tok_s = estimate.typical.decode_tok_s,
                           .decode_low = estimate.low.decode_tok_s,
                           .decode_high = estimate.high.decode_tok_s,
                           .prefill_tok_s = estimate.typical.prefill_tok_s,
                           .hit_rate = estimate.typical.hit_rate,
                           .resources = estimate.typical.resources,
                           .machine = plan.name});
  };
  result.terms.push_back({.name = plan.name + ": no placement decodes faster than",
                          .unit = "tok/s",
                          .value = plan.limit_tok_s,
                          .label = Label::kEstimated,
                          .note = "closed form, without fixed costs"});
  add("as it is", *plan.estimate, plan.layout.placement.cache_bytes());
  for (const ChangedEstimate& changed : plan.changes)
    add(changed.change.name, changed.estimate, changed.cache_bytes);
}

}  // namespace spillway::tune
