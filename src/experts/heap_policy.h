// What crf, lru and static share: a heap of evictable slots per layer. The victim is the least of the heads
// of those layers that may lose one: O(layers); putting in and taking out is O(log slots of the layer).
#pragma once

#include <vector>

#include "experts/policy.h"
#include "experts/slot_heap.h"

namespace spillway {
namespace experts {

class HeapPolicy : public Policy {
 public:
  explicit HeapPolicy(const PoolShape& shape);
  void add(SlotId slot, uint32_t layer, ExpertId expert) final;
  void remove(SlotId slot) final;
  SlotId victim(std::span<const uint8_t> may_lose) const override;

 protected:
  // Orders the experts of one layer as score() does.
  virtual double key(uint32_t layer, ExpertId expert) const { return score(layer, expert); }
  // How layers are compared when a victim is sought.
  virtual double worth(uint32_t layer, ExpertId expert) const { return score(layer, expert); }
  // To be called when the keys of a layer changed other than by uses of experts that are out of the order.
  void keys_changed(uint32_t layer);

  PoolShape shape_;

 private:
  struct Holder {
    uint32_t layer = kNone;
    ExpertId expert = kNone;
  };
  uint64_t serial_ = 0;
  std::vector<SlotHeap> heaps_;     // (n_layers)
  std::vector<uint32_t> position_;  // (n_slots) in its layer's heap
  std::vector<Holder> holders_;     // (n_slots)
};

}  // namespace experts
}  // namespace spillway
