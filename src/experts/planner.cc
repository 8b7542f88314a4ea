#include "experts/planner.h"

#include <algorithm>

#include "base/assert.h"
#include "experts/b12191.h"
#include "experts/controller.h"

namespace spillway {
namespace experts {
namespace {

// A plan's id names its place among the open ones: kMaxLayers of them at most.
constexpr uint32_t kPlaceBits = 10;

}  // namespace

const Plan& Planner::plan(const Routing& routing) {
  Open& open = begin(routing);
  classify(open, routing);
  // Hits are the device's. After this, joins wait for their copies and the first n_copied_ of the misses are
  // to be copied; the others are the CPU's.
  divide(open, routing);
  place(open, routing);
  if (!keep_) give_up_cache(open);
  finish(open, routing);
  if (controller_) {
    controller_->rehearse(routing, cost_);
    follow_controller();
  }
  if (listener_ != nullptr) listener_->planned(open.plan);
  return open.plan;
}

Planner::Open& Planner::begin(const Routing& routing) {
  SW_ASSERT(routing.layer < layers_.size() && layers_[routing.layer].group != kNone);
  SW_ASSERT(!routing.uses.empty() && !free_open_.empty());
  const uint32_t place = free_open_.back();
  free_open_.pop_back();
  Open& open = open_[place];
  const GroupId group = layers_[routing.layer].group;
  open.open = true;
  open.cold = !groups_[group].full;
  open.entries.clear();
  open.evicted.clear();
  open.best_us = 0.0;
  open.plan = {(++serial_ << kPlaceBits) | place, routing.layer, group, routing.n_tokens, {}, {}, {}};
  return open;
}

// The reference does not let batches change the cache that are larger than 32 tokens or than its slots.
bool Planner::only_reads(const Group& group, const Routing& routing) const {
  return settings_.policy.kind == PolicyKind::kB12191 &&
         (routing.n_tokens > kReferenceMaxTokens || routing.uses.size() > group.pool.slots().n_slots());
}

// Sorts the uses into hits, joins and misses, pins the first two, and lets the policy count all of them.
void Planner::classify(Open& open, const Routing& routing) {
  Group& group = groups_[open.plan.group];
  const uint32_t layer = layers_[routing.layer].index;
  hits_.clear();
  joins_.clear();
  misses_.clear();
  for (const Use& use : routing.uses) {
    SW_ASSERT(use.expert < group.pool.shape().n_experts && use.tokens > 0);
    const SlotId slot = group.pool.slots().find(layer, use.expert);
    if (slot == kNoSlot) {
      misses_.push_back({use.expert, use.tokens});
      continue;
    }
    const bool hit = group.pool.slots().state(slot) == SlotState::kResident;
    (hit ? hits_ : joins_).push_back({use.expert, use.tokens});
    group.pool.pin(slot);
  }
  Counters& counters = counters_of(routing.layer, open.cold);
  ++counters.plans;
  counters.tokens += routing.n_tokens;
  counters.hits += hits_.size();
  counters.misses += joins_.size() + misses_.size();

  if (!only_reads(group, routing)) group.pool.policy().use(layer, routing.n_tokens, routing.uses);
  for (Wanted& miss : misses_) miss.score = group.pool.policy().score(layer, miss.expert);
}

// Which of the misses are copied, and whether joins are waited for.
void Planner::divide(Open& open, const Routing& routing) {
  Group& group = groups_[open.plan.group];
  const auto n_misses = static_cast<uint32_t>(misses_.size());

  // The reference copies all that a batch misses which only reads the cache.
  if (settings_.cpu_share.is_number() && only_reads(group, routing)) {
    n_copied_ = n_misses;
    return;
  }

  // A fixed share: none of it before the slots are full, then the least wanted go to the CPU.
  if (settings_.cpu_share.is_number()) {
    std::sort(misses_.begin(), misses_.end(), [](const Wanted& a, const Wanted& b) {
      return a.score > b.score || (a.score == b.score && a.expert < b.expert);
    });
    n_copied_ = n_misses - (group.full ? group.share.take(n_misses) : 0);
    return;
  }

  // Else what finishes the layer soonest.
  std::sort(misses_.begin(), misses_.end(), [](const Wanted& a, const Wanted& b) {
    if (a.tokens != b.tokens) return a.tokens > b.tokens;
    return a.score > b.score || (a.score == b.score && a.expert < b.expert);
  });
  const auto tokens_of = [](std::vector<uint32_t>& tokens, const std::vector<Wanted>& experts) {
    tokens.clear();
    for (const Wanted& expert : experts) tokens.push_back(expert.tokens);
  };
  tokens_of(hit_tokens_, hits_);
  tokens_of(join_tokens_, joins_);
  tokens_of(miss_tokens_, misses_);
  const bool copies = group.n_ring > 0 || group.pool.takes_part(layers_[routing.layer].index);
  constexpr Corrections kUncorrected = {1.0, 1.0, 1.0, 1.0};
  const Split best = splitter_.best({group.pool.shape().expert_bytes, hit_tokens_, join_tokens_, miss_tokens_,
                                     copies ? n_misses : 0, ahead_us()},
                                    cost_, controller_ ? controller_->corrections() : kUncorrected);
  const Split split = controller_ ? controller_->choose(best, splitter_) : best;
  if (split.kind != best.kind) open.best_us = best.us;
  n_copied_ = split.copies;
  if (!split.join) joins_to_cpu(open);
}

// Waiting for copies under way would take longer: they are not read by this plan.
void Planner::joins_to_cpu(Open& open) {
  Pool& pool = groups_[open.plan.group].pool;
  for (const Wanted& join : joins_) {
    pool.unpin(pool.slots().find(layers_[open.plan.layer].index, join.expert));
    cpu_.push_back(join);
  }
  joins_.clear();
}

bool Planner::admits(const Pool& pool, uint32_t layer, double score, SlotId victim) const {
  // A layer below its floor gets what it is owed.
  if (pool.below_floor(layer)) return true;
  const ExpertKey loser = pool.slots().key(victim);
  return admit_ == 0.0 || score > admit_ * pool.policy().score(loser.layer, loser.expert);
}

// A slot for what is copied, the most wanted first; else the ring; else the CPU.
void Planner::place(Open& open, const Routing& routing) {
  Group& group = groups_[open.plan.group];
  Pool& pool = group.pool;
  const uint32_t layer = layers_[routing.layer].index;
  std::sort(misses_.begin(), misses_.begin() + n_copied_, [](const Wanted& a, const Wanted& b) {
    return a.score > b.score || (a.score == b.score && a.expert < b.expert);
  });
  for (const Wanted& hit : hits_)
    open.entries.push_back(
        {hit.expert, hit.tokens, Decision::kHit, pool.slots().find(layer, hit.expert), kNoTicket});
  for (const Wanted& join : joins_) {
    const SlotId slot = pool.slots().find(layer, join.expert);
    open.entries.push_back({join.expert, join.tokens, Decision::kJoin, slot, group.copies[slot].ticket});
  }
  const auto first_copy = static_cast<std::ptrdiff_t>(open.entries.size());
  bool slots_left = keep_ && pool.takes_part(layer) && !only_reads(group, routing);
  for (uint32_t i = 0; i < n_copied_; ++i) {
    const Wanted& miss = misses_[i];
    const SlotId slot = slots_left ? take_slot(group, layer, miss, open.evicted) : kNoSlot;
    if (slot != kNoSlot) {
      pool.pin(slot);
      open.entries.push_back({miss.expert, miss.tokens, Decision::kUpload, slot,
                              start_copy(open.plan.group, slot, Purpose::kUpload)});
      continue;
    }
    slots_left = false;  // those to come are wanted less, and meet the same victim
    if (group.n_ring > 0) {
      open.entries.push_back({miss.expert, miss.tokens, Decision::kStream});
    } else {
      cpu_.push_back(miss);
    }
  }
  // The device has work soonest, and little left when the last copy is there, if the experts with the most
  // tokens are copied first (two machines in a row: Johnson's rule, copies being equally long).
  std::sort(open.entries.begin() + first_copy, open.entries.end(),
            [](const PlanEntry& a, const PlanEntry& b) {
              return a.tokens > b.tokens || (a.tokens == b.tokens && a.expert < b.expert);
            });
  for (PlanEntry& entry : open.entries) {
    if (entry.decision != Decision::kStream) continue;
    entry.slot = group.next_ring;
    group.next_ring = (group.next_ring + 1) % group.n_ring;
  }
}

SlotId Planner::take_slot(Group& group, uint32_t layer, const Wanted& newcomer,
                          std::vector<ExpertKey>& evicted) {
  Pool& pool = group.pool;
  if (pool.slots().has_free()) return pool.take(layer, newcomer.expert, kNoSlot);
  const SlotId victim = pool.hold_weakest(layer);
  if (victim == kNoSlot) return kNoSlot;
  if (!admits(pool, layer, newcomer.score, victim)) {
    pool.unhold(victim);
    return kNoSlot;
  }
  const ExpertKey loser = pool.slots().key(victim);
  evicted.push_back({group.pool.shape().layers[loser.layer], loser.expert});
  return pool.take(layer, newcomer.expert, victim);
}

// Where a cache does not pay, what it holds must go: the device computes its hits before anybody is asked.
void Planner::give_up_cache(Open& open) {
  Pool& pool = groups_[open.plan.group].pool;
  const uint32_t layer = layers_[open.plan.layer].index;
  if (pool.slots().resident_of_layer(layer) == 0) return;
  for (ExpertId expert = 0; expert < pool.shape().n_experts; ++expert) {
    const SlotId slot = pool.slots().resident(layer, expert);
    if (slot == kNoSlot || pool.slots().pins(slot) > 0) continue;
    pool.evict(slot);
    open.evicted.push_back({open.plan.layer, expert});
  }
}

void Planner::finish(Open& open, const Routing& routing) {
  Group& group = groups_[open.plan.group];
  cpu_.insert(cpu_.end(), misses_.begin() + n_copied_, misses_.end());
  std::sort(cpu_.begin(), cpu_.end(), [](const Wanted& a, const Wanted& b) {
    return a.tokens > b.tokens || (a.tokens == b.tokens && a.expert < b.expert);
  });
  for (const Wanted& expert : cpu_)
    open.entries.push_back({expert.expert, expert.tokens, Decision::kCpu, kNoSlot, kNoTicket});
  cpu_.clear();
  SW_ASSERT(open.entries.size() == routing.uses.size());
  remember_wanted(open);

  open.work = work_of(open.entries, group.pool.shape().expert_bytes, cost_, ahead_us());
  open.plan.entries = open.entries;
  open.plan.evicted = open.evicted;
  open.plan.predicted = cost_.finish(open.work);
  open.kind = split_kind(open.work);
  after_copies_us_ = std::max(0.0, open.plan.predicted.total_us - open.plan.predicted.link_us);
  if (group.pool.slots().occupied() >= group.fill) group.full = true;
  Counters& counters = counters_of(routing.layer, open.cold);
  for (const PlanEntry& entry : open.entries) {
    counters.cpu += entry.decision == Decision::kCpu;
    counters.joined += entry.decision == Decision::kJoin;
    counters.uploaded += entry.decision == Decision::kUpload;
    counters.streamed += entry.decision == Decision::kStream;
    if (entry.decision == Decision::kUpload || entry.decision == Decision::kStream)
      counters.bytes_uploaded += group.pool.shape().expert_bytes;
  }
  counters.evicted += open.evicted.size();
}

void Planner::complete(uint64_t plan_id, const Observation& seen) {
  const uint32_t place = plan_id & ((1u << kPlaceBits) - 1);
  SW_ASSERT(place < open_.size() && open_[place].open && open_[place].plan.id == plan_id);
  Open& open = open_[place];
  Group& group = groups_[open.plan.group];
  cpu_tokens_.clear();
  device_tokens_.clear();
  for (const PlanEntry& entry : open.entries) {
    (entry.decision == Decision::kCpu ? cpu_tokens_ : device_tokens_).push_back(entry.tokens);
    if (entry.decision == Decision::kHit || entry.decision == Decision::kJoin ||
        entry.decision == Decision::kUpload)
      group.pool.unpin(entry.slot);
  }
  // What background copies did to it is known now, and no fault of the prediction.
  const double background_us = static_cast<double>(seen.background_ns) / 1000.0;
  open.work.ahead_us = std::min(open.work.ahead_us, background_us);
  open.work.behind_us = background_us - open.work.ahead_us;
  if (controller_)
    controller_->observe(open.kind, cost_.finish(open.work).total_us, open.best_us,
                         static_cast<double>(seen.total_ns) / 1000.0);
  cost_.learn(open.work, cpu_tokens_, device_tokens_, seen);
  Counters& counters = counters_of(open.plan.layer, open.cold);
  counters.device_ns += seen.device_ns;
  counters.link_ns += seen.link_ns;
  counters.cpu_ns += seen.cpu_ns;
  counters.total_ns += seen.total_ns;
  open.open = false;
  free_open_.push_back(place);
  if (listener_ != nullptr) listener_->completed(plan_id, seen);
}

void Planner::follow_controller() {
  const Alternative& chosen = controller_->chosen();
  admit_ = chosen.admit;
  promote_ = chosen.promote;
  keep_ = chosen.cache;
}

const ControllerReport* Planner::report() const { return controller_ ? &controller_->report() : nullptr; }

bool Planner::takes_part(LayerId layer) const {
  return groups_[layers_[layer].group].pool.takes_part(layers_[layer].index);
}

SlotId Planner::resident(ExpertKey key) const {
  return groups_[layers_[key.layer].group].pool.slots().resident(layers_[key.layer].index, key.expert);
}

Counters& Planner::counters_of(LayerId layer, bool cold) {
  LayerCounters& counters = layers_[layer].counters;
  return cold ? counters.cold : counters.warm;
}

LayerCounters Planner::total() const {
  LayerCounters sum;
  for (const Layer& layer : layers_) {
    sum.cold.add(layer.counters.cold);
    sum.warm.add(layer.counters.warm);
  }
  return sum;
}

}  // namespace experts
}  // namespace spillway
