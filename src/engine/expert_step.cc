#include "engine/expert_step.h"

#include <algorithm>

#include "base/assert.h"

namespace spillway::engine {

using backend::BufferId;
using backend::Device;
using backend::MoeSpec;
using backend::Point;
using experts::Decision;
using experts::PlanEntry;

namespace {

bool copies(Decision decision) { return decision == Decision::kUpload || decision == Decision::kStream; }

}  // namespace

ExpertStep::ExpertStep(Device& device, cpu::ExpertCompute* cpu, experts::Planner* planner,
                       const Program& program, const Placement& placement,
                       std::span<const backend::Matrix> matrices, const sys::Clock& clock)
    : device_(device),
      cpu_(cpu),
      planner_(planner),
      program_(program),
      placement_(placement),
      matrices_(matrices),
      clock_(clock),
      counter_(std::max(program.experts, 1u)),
      resident_uses_(program.layers.size()),
      on_cpu_(program.experts, 0) {
  model_layer_.resize(placement.n_planned_layers());
  for (uint32_t l = 0; l < placement.layers.size(); ++l)
    if (placement.layers[l].experts == ExpertPlace::kPlanned)
      model_layer_[placement.layers[l].planner_layer] = l;
  for (const PoolPlacement& pool : placement.pools) ring_free_.emplace_back(pool.ring_slots);
}

void ExpertStep::moe(BufferId x, const MoeSpec& spec, BufferId out) {
  const LayerPlacement& at = placement_.layers[spec.layer];
  if (at.experts == ExpertPlace::kPlanned) return moe_planned(x, spec, at, out);
  device_.route(x, spec, Device::ForHost::kLater);
  device_.experts_in_table(x, spec);
  device_.combine(spec, out);
  ++times_.resident_layers;
  resident_passed_.push_back({spec.layer, spec.routing.n_experts, spec.routing.n_used});
}

void ExpertStep::moe_planned(BufferId x, const MoeSpec& spec, const LayerPlacement& at, BufferId out) {
  take_promotions();  // before the table is read
  std::unique_ptr<Open> taken = take_open();
  Open& open = *taken;
  device_.route(x, spec, Device::ForHost::kNow);
  open.routed = device_.mark();
  device_.submit();
  device_.experts_in_table(x, spec);
  open.hits = device_.mark();
  device_.submit();
  if (!wait(open.routed)) return;  // the device keeps the error for finish()
  open.host_routed_ns = clock_.now_ns();
  complete_reached(false);  // the layers before this one

  const backend::Routed routed = device_.routed();
  const std::span<const experts::Use> uses = counter_.count(routed.ids, spec.routing.n_experts);
  const auto rows = static_cast<uint32_t>(routed.ids.size() / spec.routing.n_used);
  const experts::Plan& plan = planner_->plan({at.planner_layer, rows, uses});
  open.plan = &plan;
  for (const experts::ExpertKey key : plan.evicted) forget_slot(key);
  const uint64_t planned_ns = clock_.now_ns();
  times_.plan_ns += planned_ns - open.host_routed_ns;
  if (timeline_) timeline_->add(Lane::kPlanner, "plan", spec.layer, open.host_routed_ns, planned_ns);

  issue(open, x, spec, at);
  run_on_cpu(open, spec);
  device_.combine(spec, out);
  open.done = device_.mark();
  promote(open, at);
  last_plan_ns_ = open.host_routed_ns;
  open_.push_back(std::move(taken));
}

std::unique_ptr<ExpertStep::Open> ExpertStep::take_open() {
  if (spare_.empty()) return std::make_unique<Open>();
  std::unique_ptr<Open> open = std::move(spare_.back());
  spare_.pop_back();
  open->computed.clear(), open->copies.clear(), open->tickets.clear();
  open->cpu_ns = 0;
  return open;
}

bool ExpertStep::wait(Point point) {
  const uint64_t begin = clock_.now_ns();
  const bool fine = device_.wait(point).has_value();
  ++times_.waits;
  times_.wait_ns += clock_.now_ns() - begin;
  return fine;
}

// Starts the copies in the order of the plan, and computes what they bring in batches, so that a batch is
// copied while the one before is computed.
void ExpertStep::issue(Open& open, BufferId x, const MoeSpec& spec, const LayerPlacement& at) {
  const uint32_t pool = at.pool;
  const uint32_t ring = placement_.pools[pool].ring_slots;
  const size_t most = std::max(1u, ring / 2);
  batch_.clear();
  batch_arrives_ = {};
  batch_ring_.clear();
  const auto flush = [&] {
    if (batch_.empty()) return;
    run_batch(open, x, spec);
    for (const uint32_t slot : batch_ring_) ring_free_[pool][slot] = open.computed.back();
    batch_ring_.clear();
  };
  for (const PlanEntry& entry : open.plan->entries) {
    if (entry.decision == Decision::kJoin) {
      const auto found = under_way_.find(entry.ticket);
      SW_ASSERT(found != under_way_.end());
      if (found->second.value > batch_arrives_.value) batch_arrives_ = found->second;
      batch_.push_back({entry.expert, device_slot(pool, entry.slot)});
    } else if (copies(entry.decision)) {
      const bool stream = entry.decision == Decision::kStream;
      // A ring slot may be filled again once the batch that read it has been computed.
      const Point after = stream ? ring_free_[pool][entry.slot] : Point{};
      const uint32_t slot = stream ? device_slot(pool, placement_.pools[pool].cache_slots + entry.slot)
                                   : device_slot(pool, entry.slot);
      if (stream) batch_ring_.push_back(entry.slot);
      batch_arrives_ = device_.copy_expert(pool, slot, matrices_of(spec.layer, entry.expert), after);
      open.copies.push_back(batch_arrives_);
      if (!stream) {
        open.tickets.push_back(entry.ticket);
        under_way_[entry.ticket] = batch_arrives_;
      }
      batch_.push_back({entry.expert, slot});
    } else {
      continue;
    }
    if (batch_.size() >= most) flush();
  }
  flush();
  // From the next time on these are hits. The stream has waited for them above.
  for (const PlanEntry& entry : open.plan->entries)
    if (entry.decision == Decision::kUpload)
      device_.set_slot(spec.layer, entry.expert, device_slot(pool, entry.slot));
  device_.submit();
}

void ExpertStep::run_batch(Open& open, BufferId x, const MoeSpec& spec) {
  device_.stream_wait(batch_arrives_);  // the link works in order: the batch's last one is the last to arrive
  device_.mark();                       // so that the next point's interval is the computing alone
  device_.experts_in_slots(x, spec, batch_);
  open.computed.push_back(device_.mark());
  device_.submit();
  batch_.clear();
}

void ExpertStep::run_on_cpu(Open& open, const MoeSpec& spec) {
  bool any = false;
  std::fill(on_cpu_.begin(), on_cpu_.end(), 0);
  for (const PlanEntry& entry : open.plan->entries)
    if (entry.decision == Decision::kCpu) on_cpu_[entry.expert] = 1, any = true;
  if (!any) return;
  const uint64_t begin = clock_.now_ns();
  const backend::Routed routed = device_.routed();
  const uint32_t used = spec.routing.n_used;
  cpu_->run({.x = routed.x.data(),
             .x_stride = program_.hidden,
             .rows = static_cast<uint32_t>(routed.ids.size() / used),
             .used = used,
             .ids = routed.ids},
            spec, std::span(on_cpu_).first(spec.routing.n_experts));
  const uint64_t end = clock_.now_ns();
  open.cpu_ns = end - open.host_routed_ns;
  times_.cpu_ns += end - begin;
  if (timeline_) timeline_->add(Lane::kCpu, "experts", spec.layer, begin, end);
  device_.take_outputs(spec, cpu_->pairs(), cpu_->outputs());
}

// Copies for later, while the link has nothing to do.
void ExpertStep::promote(const Open& open, const LayerPlacement& at) {
  const auto planned = static_cast<uint32_t>(model_layer_.size());
  const uint32_t next = (at.planner_layer + 1) % planned;
  // From one plan to the next, less what this one's copies take.
  double idle_us = last_plan_ns_ == 0 ? 0.0
                                      : static_cast<double>(open.host_routed_ns - last_plan_ns_) * 1e-3 -
                                            open.plan->predicted.link_us;
  idle_us = std::max(idle_us, 0.0);
  while (const auto copy = planner_->next_promotion(next, idle_us)) {
    idle_us = 0;
    if (copy->evicted) forget_slot(*copy->evicted);
    const uint32_t pool = placement_.group_pool[copy->group];
    const Point point = device_.copy_expert(pool, device_slot(pool, copy->slot),
                                            matrices_of(model_layer_[copy->key.layer], copy->key.expert), {});
    under_way_[copy->ticket] = point;
    promotions_.push_back({*copy, point});
  }
}

void ExpertStep::take_promotions() {
  std::erase_if(promotions_, [&](const Promotion& p) {
    if (!device_.reached(p.point)) return false;
    device_.stream_wait(p.point);
    const uint32_t pool = placement_.group_pool[p.copy.group];
    device_.set_slot(model_layer_[p.copy.key.layer], p.copy.key.expert, device_slot(pool, p.copy.slot));
    planner_->arrived(p.copy.ticket);
    under_way_.erase(p.copy.ticket);
    const backend::Interval i = device_.interval(p.point);
    promoted_[next_promoted_++ % promoted_.size()] = i;
    if (timeline_ && device_to_host_ns_ != INT64_MAX) {
      const auto shift = static_cast<uint64_t>(device_to_host_ns_);
      timeline_->add(Lane::kLink, "promotion", model_layer_[p.copy.key.layer], i.begin_ns + shift,
                     i.end_ns + shift);
    }
    return true;
  });
}

void ExpertStep::end_step() {
  complete_reached(true);
  for (const Passed& passed : resident_passed_) {
    const std::span<const uint32_t> ids = device_.chosen(passed.layer);
    ResidentUses& uses = resident_uses_[passed.layer];
    ++uses.passes;
    uses.tokens += ids.size() / passed.n_used;
    uses.experts += counter_.count(ids, passed.n_experts).size();
  }
  resident_passed_.clear();
  last_plan_ns_ = 0;
}

Result<void> ExpertStep::empty_cache() {
  for (const Promotion& promotion : promotions_) SW_TRY(device_.wait(promotion.point));
  take_promotions();
  for (uint32_t layer = 0; layer < model_layer_.size(); ++layer) {
    const auto n_experts = static_cast<uint32_t>(program_.layers[model_layer_[layer]].experts.size());
    for (uint32_t e = 0; e < n_experts; ++e)
      if (planner_->resident({layer, e}) != experts::kNoSlot) forget_slot({layer, e});
  }
  return device_.finish();
}

void ExpertStep::complete_reached(bool all) {
  while (!open_.empty() && (all || device_.reached(open_.front()->done))) {
    complete(*open_.front());
    spare_.push_back(std::move(open_.front()));
    open_.pop_front();
  }
}

void ExpertStep::complete(Open& open) {
  const experts::Plan& plan = *open.plan;
  const uint32_t layer = model_layer_[plan.layer];
  for (const experts::Ticket ticket : open.tickets) {
    planner_->arrived(ticket);
    under_way_.erase(ticket);
  }
  // Each resource's end, from the moment when the ids were known.
  const uint64_t start = device_.interval(open.routed).end_ns;
  const auto since = [&](uint64_t ns) { return start != 0 && ns > start ? ns - start : 0; };
  experts::Observation seen{.cpu_ns = open.cpu_ns};
  const backend::Interval hits = device_.interval(open.hits);
  const bool any_hit =
      std::ranges::any_of(plan.entries, [](const PlanEntry& e) { return e.decision == Decision::kHit; });
  if (any_hit) seen.device_ns = since(hits.end_ns);
  for (const Point point : open.computed)
    seen.device_ns = std::max(seen.device_ns, since(device_.interval(point).end_ns));
  if (!open.copies.empty()) {
    const uint64_t begin = since(device_.interval(open.copies.front()).begin_ns);
    seen.link_ns = std::max(since(device_.interval(open.copies.back()).end_ns), begin) - begin;
  }
  const uint64_t end = device_.interval(open.done).end_ns;
  seen.total_ns = since(end);
  // The link may have been at promotions meanwhile.
  for (const backend::Interval& promoted : promoted_)
    seen.background_ns += since(std::min(promoted.end_ns, end)) - since(std::min(promoted.begin_ns, end));
  if (timeline_) add_to_timeline(open, layer, any_hit);
  planner_->complete(plan.id, seen);
}

// The device's lanes, on the host's clock.
void ExpertStep::add_to_timeline(const Open& open, uint32_t layer, bool any_hit) {
  const uint64_t routed_ns = device_.interval(open.routed).end_ns;
  if (routed_ns == 0) return;  // the device has no clock
  device_to_host_ns_ = std::min(device_to_host_ns_,
                                static_cast<int64_t>(open.host_routed_ns) - static_cast<int64_t>(routed_ns));
  const auto add = [&](Lane lane, std::string_view name, Point point) {
    const backend::Interval i = device_.interval(point);
    const auto shift = static_cast<uint64_t>(device_to_host_ns_);  // wraps as the difference did
    timeline_->add(lane, name, layer, i.begin_ns + shift, i.end_ns + shift);
  };
  add(Lane::kDevice, "attention, router", open.routed);
  if (any_hit) add(Lane::kDevice, "hits", open.hits);
  for (const Point point : open.computed) add(Lane::kDevice, "copied experts", point);
  for (const Point point : open.copies) add(Lane::kLink, "copy", point);
  add(Lane::kDevice, "sum", open.done);
}

void ExpertStep::forget_slot(experts::ExpertKey key) {
  device_.set_slot(model_layer_[key.layer], key.expert, Device::kNoSlot);
}

backend::ExpertMatrices ExpertStep::matrices_of(uint32_t layer, uint32_t expert) const {
  const backend::ExpertWeights& ids = program_.layers[layer].experts[expert];
  return {.gate = matrices_[ids.gate], .up = matrices_[ids.up], .down = matrices_[ids.down]};
}

}  // namespace spillway::engine
