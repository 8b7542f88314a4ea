// The planner's copies: tickets, and what is promoted in idle link time.
#include <algorithm>

#include "base/assert.h"
#include "experts/controller.h"
#include "experts/planner.h"

namespace spillway {
namespace experts {
namespace {

// A ticket names its group and slot, so that nothing has to be looked up: serial, group, slot.
constexpr uint32_t kSlotBits = 24;
constexpr uint32_t kGroupBits = 8;

// Promotions that may be under way at once: one that the link works on and one that it goes on with.
constexpr uint32_t kMostPromotions = 2;

}  // namespace

Ticket Planner::start_copy(GroupId group, SlotId slot, Purpose purpose) {
  const Ticket ticket = (++serial_ << (kSlotBits + kGroupBits)) | (Ticket{group} << kSlotBits) | slot;
  groups_[group].copies[slot] = {ticket, purpose, !groups_[group].full};
  if (purpose == Purpose::kPromotion) ++groups_[group].promotions;
  return ticket;
}

Planner::Ended Planner::end_copy(Ticket ticket) {
  const SlotId slot = ticket & ((1u << kSlotBits) - 1);
  const GroupId id = ticket >> kSlotBits & ((1u << kGroupBits) - 1);
  SW_ASSERT(id < groups_.size() && slot < groups_[id].copies.size());
  Group& group = groups_[id];
  SW_ASSERT(group.copies[slot].ticket == ticket && ticket != kNoTicket);
  const Copy copy = group.copies[slot];
  if (copy.purpose == Purpose::kPromotion) --group.promotions;
  group.copies[slot] = {};
  return {group, slot, group.pool.shape().layers[group.pool.slots().key(slot).layer], copy};
}

void Planner::arrived(Ticket ticket) {
  const Ended ended = end_copy(ticket);
  ended.group.pool.arrived(ended.slot);
  if (listener_ != nullptr) listener_->arrived(ticket);
}

void Planner::failed(Ticket ticket) {
  const Ended ended = end_copy(ticket);
  ++counters_of(ended.layer, ended.copy.cold).failed;
  ended.group.pool.failed(ended.slot);
  if (listener_ != nullptr) listener_->failed(ticket);
}

bool Planner::in_use(Ticket ticket) const {
  const SlotId slot = ticket & ((1u << kSlotBits) - 1);
  const Group& group = groups_[ticket >> kSlotBits & ((1u << kGroupBits) - 1)];
  SW_ASSERT(group.copies[slot].ticket == ticket);
  return group.pool.slots().pins(slot) > 0;
}

void Planner::cancelled(Ticket ticket) {
  SW_ASSERT(!in_use(ticket));
  const Ended ended = end_copy(ticket);
  SW_ASSERT(ended.copy.purpose == Purpose::kPromotion);
  Counters& counted = counters_of(ended.layer, ended.copy.cold);
  --counted.promoted;
  counted.bytes_promoted -= ended.group.pool.shape().expert_bytes;
  saved_link_us_ += cost_.link_us(ended.group.pool.shape().expert_bytes);
  ended.group.pool.failed(ended.slot);
  if (listener_ != nullptr) listener_->cancelled(ticket);
}

// Of a copy under way half is left on average, of those behind it all.
double Planner::ahead_us() const {
  double us = 0.0;
  for (const Group& group : groups_)
    if (group.promotions > 0) us += (group.promotions - 0.5) * cost_.link_us(group.pool.shape().expert_bytes);
  return us;
}

// The most wanted of the experts that this plan found missing and does not keep, most wanted first.
void Planner::remember_wanted(Open& open) {
  const Group& group = groups_[open.plan.group];
  Layer& layer = layers_[open.plan.layer];
  layer.wanted.fill(kNone);
  if (!promote_ || !group.pool.takes_part(layer.index)) return;
  std::array<double, kWanted> scores{};
  for (const PlanEntry& entry : open.entries) {
    if (group.pool.slots().find(layer.index, entry.expert) != kNoSlot) continue;
    ExpertId expert = entry.expert;
    double score = group.pool.policy().score(layer.index, expert);
    for (uint32_t i = 0; i < kWanted; ++i) {
      if (score <= scores[i]) continue;
      std::swap(score, scores[i]);
      std::swap(expert, layer.wanted[i]);
    }
  }
}

std::optional<PromotionCopy> Planner::next_promotion(LayerId next, double idle_link_us) {
  const auto copy = promote(next, idle_link_us);
  if (listener_ != nullptr) listener_->asked(next, idle_link_us, copy);
  return copy;
}

std::optional<PromotionCopy> Planner::promote(LayerId next, double idle_link_us) {
  if (controller_ && idle_link_us > 0.0)
    controller_->link_idles(std::max(0.0, idle_link_us - after_copies_us_));
  if (!promote_) return std::nullopt;
  // Idle time is saved up for two copies at most: a long pause is no reason for a long queue.
  double longest = 0.0;
  uint32_t under_way = 0;
  for (const Group& group : groups_) {
    longest = std::max(longest, cost_.link_us(group.pool.shape().expert_bytes));
    under_way += group.promotions;
  }
  saved_link_us_ = std::min(saved_link_us_ + std::max(idle_link_us, 0.0), kMostPromotions * longest);
  if (under_way >= kMostPromotions) return std::nullopt;

  // The most wanted of all layers; of equals, the one that is planned soonest.
  LayerId best = kNone;
  double most = 0.0;
  const auto n = static_cast<uint32_t>(layers_.size());
  for (uint32_t i = 0; i < n; ++i) {
    const LayerId id = (next + i) % n;
    const Layer& layer = layers_[id];
    if (layer.group == kNone || layer.wanted[0] == kNone) continue;
    const double score = groups_[layer.group].pool.policy().score(layer.index, layer.wanted[0]);
    if (score > most) {
      best = id;
      most = score;
    }
  }
  if (best == kNone) return std::nullopt;
  Layer& layer = layers_[best];
  Group& group = groups_[layer.group];
  const double us = cost_.link_us(group.pool.shape().expert_bytes);
  if (saved_link_us_ < us) return std::nullopt;
  const ExpertId expert = layer.wanted[0];
  std::rotate(layer.wanted.begin(), layer.wanted.begin() + 1, layer.wanted.end());
  layer.wanted.back() = kNone;

  // Its victim is the weakest that its layer may get.
  promotion_evicted_.clear();
  const SlotId slot = take_slot(group, layer.index, {expert, 0, most}, promotion_evicted_);
  if (slot == kNoSlot) return std::nullopt;
  saved_link_us_ -= us;
  Counters& counters = counters_of(best, !group.full);
  ++counters.promoted;
  counters.bytes_promoted += group.pool.shape().expert_bytes;
  counters.evicted += promotion_evicted_.size();
  if (group.pool.slots().occupied() >= group.fill) group.full = true;
  PromotionCopy copy{
      {best, expert}, layer.group, slot, start_copy(layer.group, slot, Purpose::kPromotion), std::nullopt};
  if (!promotion_evicted_.empty()) copy.evicted = promotion_evicted_.front();
  return copy;
}

}  // namespace experts
}  // namespace spillway
