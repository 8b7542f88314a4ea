// The slots of one pool: which expert each holds, and whether it may be read, replaced or is under way.
//
//   free --acquire--> filling --arrived--> resident --evict--> free
//                        |                    (pins: plans that read it and are not complete)
//                        +--failed--> free, or broken until its last pin is gone, then free
//
// An expert is in at most one slot. A filling slot is not resident: resident() never gives a half-arrived
// expert. A slot with pins is never evicted. Everything is O(1); nothing allocates after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "experts/types.h"

namespace spillway {
namespace experts {

enum class SlotState : uint8_t { kFree, kFilling, kResident, kBroken };

class SlotTable {
 public:
  // Layers are numbered within the pool.
  SlotTable(uint32_t n_layers, uint32_t n_experts, uint32_t n_slots);

  // The slot that holds or receives the expert, or kNoSlot.
  SlotId find(uint32_t layer, ExpertId expert) const { return slot_of_[size_t{layer} * n_experts_ + expert]; }
  // The slot that the expert can be read from, or kNoSlot.
  SlotId resident(uint32_t layer, ExpertId expert) const {
    const SlotId slot = find(layer, expert);
    return slot != kNoSlot && slots_[slot].state == SlotState::kResident ? slot : kNoSlot;
  }

  bool has_free() const { return !free_.empty(); }
  // Requires: has_free(), find(layer, expert) == kNoSlot. The slot is filling.
  SlotId acquire(uint32_t layer, ExpertId expert);
  // Requires: filling.
  void arrived(SlotId slot);
  // Requires: filling. The expert is in no slot any more.
  void failed(SlotId slot);
  // Requires: resident, no pins.
  void evict(SlotId slot);

  // Requires: not free. A filling slot may be pinned: by the plan that fills it and those that wait for it.
  void pin(SlotId slot);
  // Requires: pinned. Returns whether no pin is left.
  bool unpin(SlotId slot);

  SlotState state(SlotId slot) const { return slots_[slot].state; }
  uint32_t pins(SlotId slot) const { return slots_[slot].pins; }
  // Of a slot that is not free: the layer within the pool, and the expert.
  ExpertKey key(SlotId slot) const { return {slots_[slot].layer, slots_[slot].expert}; }
  uint32_t n_slots() const { return static_cast<uint32_t>(slots_.size()); }
  uint32_t n_layers() const { return n_layers_; }
  uint32_t n_experts() const { return n_experts_; }
  uint32_t occupied() const { return occupied_; }
  uint32_t occupied(uint32_t layer) const { return occupied_of_layer_[layer]; }
  uint32_t resident_of_layer(uint32_t layer) const { return resident_of_layer_[layer]; }

 private:
  struct Slot {
    uint32_t layer = kNone;
    ExpertId expert = kNone;
    uint32_t pins = 0;
    SlotState state = SlotState::kFree;
  };
  void release(SlotId slot);

  uint32_t n_layers_;
  uint32_t n_experts_;
  uint32_t occupied_ = 0;  // slots that are not free
  std::vector<Slot> slots_;
  std::vector<SlotId> slot_of_;              // (n_layers, n_experts)
  std::vector<SlotId> free_;                 // a stack
  std::vector<uint32_t> occupied_of_layer_;  // (n_layers)
  std::vector<uint32_t> resident_of_layer_;  // (n_layers)
};

// How a pool's slots are meant for its layers. Every layer that takes part keeps `floor` slots from the
// others: 1.5 k, rounded up, so that a shared cache smaller than one token's experts does not end at 0 % hits
// (an LRU list that is cycled through). Where slots don't suffice for all, the first layers take part and the
// others have no cache.
struct Floors {
  uint32_t floor = 0;
  uint32_t n_layers = 0;  // layers 0..n_layers-1 of the pool take part
};
Floors plan_floors(uint32_t n_layers, uint32_t n_experts, uint32_t n_used, uint32_t n_slots);

}  // namespace experts
}  // namespace spillway
