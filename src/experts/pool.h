// A pool: the slots of one group together with the policy's order over those that may be evicted, and the
// floors of its layers. Its invariant is that a slot is in the policy's order exactly when it is resident,
// read by no plan and not held as a victim-to-be.
#pragma once

#include <memory>
#include <vector>

#include "experts/policy.h"
#include "experts/slots.h"

namespace spillway {
namespace experts {

enum class UseFloors : uint8_t { kNo, kYes };

// Layers are numbered within the pool. Nothing allocates after construction. Not thread safe.
class Pool {
 public:
  Pool(const GroupShape& shape, uint32_t n_slots, std::unique_ptr<Policy> policy, UseFloors use_floors);

  const GroupShape& shape() const { return shape_; }
  const SlotTable& slots() const { return slots_; }
  Policy& policy() { return *policy_; }
  const Policy& policy() const { return *policy_; }

  bool takes_part(uint32_t layer) const { return layer < floors_.n_layers; }
  const Floors& floors() const { return floors_; }
  bool below_floor(uint32_t layer) const { return slots_.occupied(layer) < floor_of(layer); }

  void pin(SlotId slot);
  void unpin(SlotId slot);
  void arrived(SlotId slot);
  void failed(SlotId slot) { slots_.failed(slot); }

  // Takes the weakest slot that `layer` may get out of the order, or gives kNoSlot. A layer at its floor
  // loses a slot only to itself. O(layers + log slots) with the heap policies.
  SlotId hold_weakest(uint32_t layer);
  void unhold(SlotId slot);

  // A slot for the expert, now filling: a free one, or that of `held`, whose expert is evicted.
  // Requires: the expert has no slot; held is held, or kNoSlot and slots().has_free().
  SlotId take(uint32_t layer, ExpertId expert, SlotId held);

  // Requires: resident, no pins, not held.
  void evict(SlotId slot);

 private:
  uint32_t floor_of(uint32_t layer) const { return takes_part(layer) ? floors_.floor : 0; }
  void leave_order(SlotId slot);
  void enter_order(SlotId slot);
  SlotId weakest(uint32_t layer);

  GroupShape shape_;
  Floors floors_;
  SlotTable slots_;
  std::unique_ptr<Policy> policy_;
  std::vector<uint8_t> in_order_;  // (n_slots)
  std::vector<uint32_t> held_;     // (n_layers) slots held
  std::vector<uint8_t> may_lose_;  // (n_layers) scratch
};

}  // namespace experts
}  // namespace spillway
