#include "experts/heap_policy.h"

namespace spillway {
namespace experts {

HeapPolicy::HeapPolicy(const PoolShape& shape)
    : shape_(shape), heaps_(shape.n_layers), position_(shape.n_slots, kNone), holders_(shape.n_slots) {
  for (SlotHeap& heap : heaps_) heap.reserve(std::min(shape.n_slots, shape.n_experts));
}

void HeapPolicy::add(SlotId slot, uint32_t layer, ExpertId expert) {
  holders_[slot] = {layer, expert};
  heaps_[layer].push({key(layer, expert), serial_++, slot}, position_);
}

void HeapPolicy::remove(SlotId slot) { heaps_[holders_[slot].layer].erase(slot, position_); }

void HeapPolicy::keys_changed(uint32_t layer) {
  heaps_[layer].rekey([&](SlotId slot) { return key(layer, holders_[slot].expert); }, position_);
}

SlotId HeapPolicy::victim(std::span<const uint8_t> may_lose) const {
  SlotId best = kNoSlot;
  double least = 0.0;
  for (uint32_t layer = 0; layer < shape_.n_layers; ++layer) {
    if (may_lose[layer] == 0 || heaps_[layer].empty()) continue;
    const SlotId slot = heaps_[layer].top().slot;
    const double wanted = worth(layer, holders_[slot].expert);
    if (best == kNoSlot || wanted < least) {
      best = slot;
      least = wanted;
    }
  }
  return best;
}

}  // namespace experts
}  // namespace spillway
