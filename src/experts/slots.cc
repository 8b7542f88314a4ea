#include "experts/slots.h"

#include <algorithm>

#include "base/assert.h"

namespace spillway {
namespace experts {

SlotTable::SlotTable(uint32_t n_layers, uint32_t n_experts, uint32_t n_slots)
    : n_layers_(n_layers),
      n_experts_(n_experts),
      slots_(n_slots),
      slot_of_(size_t{n_layers} * n_experts, kNoSlot),
      free_(n_slots),
      occupied_of_layer_(n_layers, 0),
      resident_of_layer_(n_layers, 0) {
  for (uint32_t i = 0; i < n_slots; ++i) free_[i] = n_slots - 1 - i;  // slot 0 is taken first
}

SlotId SlotTable::acquire(uint32_t layer, ExpertId expert) {
  SW_ASSERT(has_free());
  SW_ASSERT(layer < n_layers_ && expert < n_experts_ && find(layer, expert) == kNoSlot);
  const SlotId slot = free_.back();
  free_.pop_back();
  slots_[slot] = {layer, expert, 0, SlotState::kFilling};
  slot_of_[size_t{layer} * n_experts_ + expert] = slot;
  ++occupied_;
  ++occupied_of_layer_[layer];
  return slot;
}

void SlotTable::arrived(SlotId slot) {
  SW_ASSERT(slots_[slot].state == SlotState::kFilling);
  slots_[slot].state = SlotState::kResident;
  ++resident_of_layer_[slots_[slot].layer];
}

void SlotTable::release(SlotId slot) {
  SW_ASSERT(slots_[slot].pins == 0);
  --occupied_;
  --occupied_of_layer_[slots_[slot].layer];
  slots_[slot] = {};
  free_.push_back(slot);
}

void SlotTable::failed(SlotId slot) {
  Slot& s = slots_[slot];
  SW_ASSERT(s.state == SlotState::kFilling);
  slot_of_[size_t{s.layer} * n_experts_ + s.expert] = kNoSlot;
  s.state = SlotState::kBroken;
  if (s.pins == 0) release(slot);
}

void SlotTable::evict(SlotId slot) {
  Slot& s = slots_[slot];
  SW_ASSERT(s.state == SlotState::kResident && s.pins == 0);
  --resident_of_layer_[s.layer];
  slot_of_[size_t{s.layer} * n_experts_ + s.expert] = kNoSlot;
  release(slot);
}

void SlotTable::pin(SlotId slot) {
  SW_ASSERT(slots_[slot].state != SlotState::kFree);
  ++slots_[slot].pins;
}

bool SlotTable::unpin(SlotId slot) {
  SW_ASSERT(slots_[slot].pins > 0);
  if (--slots_[slot].pins > 0) return false;
  if (slots_[slot].state == SlotState::kBroken) release(slot);
  return true;
}

Floors plan_floors(uint32_t n_layers, uint32_t n_experts, uint32_t n_used, uint32_t n_slots) {
  const uint32_t floor = std::min(n_experts, n_used + (n_used + 1) / 2);
  if (n_slots >= floor) return {floor, std::min(n_layers, n_slots / floor)};
  // Less than one floor: one layer can still hold a token's experts.
  if (n_slots >= n_used) return {n_slots, 1};
  return {0, 0};
}

}  // namespace experts
}  // namespace spillway
