#include "experts/pool.h"

#include "base/assert.h"

namespace spillway {
namespace experts {

Pool::Pool(const GroupShape& shape, uint32_t n_slots, std::unique_ptr<Policy> policy, UseFloors use_floors)
    : shape_(shape),
      floors_(use_floors == UseFloors::kYes
                  ? plan_floors(static_cast<uint32_t>(shape.layers.size()), shape.n_experts, shape.n_used,
                                n_slots)
                  : Floors{0, n_slots > 0 ? static_cast<uint32_t>(shape.layers.size()) : 0}),
      slots_(static_cast<uint32_t>(shape.layers.size()), shape.n_experts, n_slots),
      policy_(std::move(policy)),
      in_order_(n_slots, 0),
      held_(shape.layers.size(), 0),
      may_lose_(shape.layers.size(), 0) {}

void Pool::leave_order(SlotId slot) {
  SW_ASSERT(in_order_[slot] != 0);
  in_order_[slot] = 0;
  policy_->remove(slot);
}

void Pool::enter_order(SlotId slot) {
  SW_ASSERT(in_order_[slot] == 0 && slots_.state(slot) == SlotState::kResident && slots_.pins(slot) == 0);
  in_order_[slot] = 1;
  const ExpertKey key = slots_.key(slot);
  policy_->add(slot, key.layer, key.expert);
}

void Pool::pin(SlotId slot) {
  if (in_order_[slot] != 0) leave_order(slot);
  slots_.pin(slot);
}

void Pool::unpin(SlotId slot) {
  if (slots_.unpin(slot) && slots_.state(slot) == SlotState::kResident) enter_order(slot);
}

void Pool::arrived(SlotId slot) {
  slots_.arrived(slot);
  if (slots_.pins(slot) == 0) enter_order(slot);
}

SlotId Pool::weakest(uint32_t layer) {
  for (uint32_t l = 0; l < slots_.n_layers(); ++l)
    may_lose_[l] = l == layer || slots_.occupied(l) - held_[l] > floor_of(l);
  return policy_->victim(may_lose_);
}

SlotId Pool::hold_weakest(uint32_t layer) {
  const SlotId slot = weakest(layer);
  if (slot == kNoSlot) return kNoSlot;
  leave_order(slot);
  ++held_[slots_.key(slot).layer];
  return slot;
}

void Pool::unhold(SlotId slot) {
  --held_[slots_.key(slot).layer];
  enter_order(slot);
}

SlotId Pool::take(uint32_t layer, ExpertId expert, SlotId held) {
  if (held != kNoSlot) {
    SW_ASSERT(in_order_[held] == 0);
    --held_[slots_.key(held).layer];
    slots_.evict(held);
  }
  return slots_.acquire(layer, expert);
}

void Pool::evict(SlotId slot) {
  leave_order(slot);
  slots_.evict(slot);
}

}  // namespace experts
}  // namespace spillway
