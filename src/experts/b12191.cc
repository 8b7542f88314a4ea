#include "experts/b12191.h"

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "experts/arithmetic.h"
#include "experts/policies.h"
#include "experts/score.h"

namespace spillway {
namespace experts {
namespace {

class B12191 final : public Policy {
 public:
  B12191(const PoolShape& shape, double half_life)
      : counts_(shape.n_layers, shape.n_experts, half_life), nodes_(shape.n_slots) {}

  void use(uint32_t layer, uint32_t n_tokens, std::span<const Use> uses) override {
    counts_.use(layer, n_tokens, uses);
  }
  double score(uint32_t layer, ExpertId expert) const override { return counts_.score(layer, expert); }

  void add(SlotId slot, uint32_t layer, ExpertId expert) override {
    const double wanted = counts_.score(layer, expert);
    const uint32_t floor = wanted < 1.0 ? 0 : floor_log2(static_cast<uint64_t>(wanted));
    const uint32_t list = std::min<uint32_t>(floor, kReferenceClasses - 1);
    nodes_[slot] = {layer, list, counts_.clock(layer), tails_[list], kNoSlot};
    if (tails_[list] == kNoSlot) {
      heads_[list] = slot;
    } else {
      nodes_[tails_[list]].next = slot;
    }
    tails_[list] = slot;
  }

  void remove(SlotId slot) override {
    Node& node = nodes_[slot];
    SW_ASSERT(node.layer != kNone);
    (node.previous == kNoSlot ? heads_[node.list] : nodes_[node.previous].next) = node.next;
    (node.next == kNoSlot ? tails_[node.list] : nodes_[node.next].previous) = node.previous;
    node = {};
  }

  SlotId victim(std::span<const uint8_t> may_lose) const override {
    SlotId best = kNoSlot;
    double most = 0.0;
    for (uint32_t list = 0; list < kReferenceClasses; ++list) {
      SlotId slot = heads_[list];
      while (slot != kNoSlot && may_lose[nodes_[slot].layer] == 0) slot = nodes_[slot].next;
      if (slot == kNoSlot) continue;
      const auto age = static_cast<double>(counts_.clock(nodes_[slot].layer) - nodes_[slot].since);
      const double value = age / static_cast<double>(1u << list);
      if (best == kNoSlot || value > most) {
        best = slot;
        most = value;
      }
    }
    return best;
  }

 private:
  struct Node {
    uint32_t layer = kNone;  // kNone: in no list
    uint32_t list = 0;
    uint64_t since = 0;  // the layer's clock when it was put at the tail
    SlotId previous = kNoSlot;
    SlotId next = kNoSlot;
  };
  static constexpr std::array<SlotId, kReferenceClasses> no_slots() {
    std::array<SlotId, kReferenceClasses> slots{};
    slots.fill(kNoSlot);
    return slots;
  }

  DecayedCounts counts_;
  std::vector<Node> nodes_;  // (n_slots)
  std::array<SlotId, kReferenceClasses> heads_ = no_slots();
  std::array<SlotId, kReferenceClasses> tails_ = no_slots();
};

}  // namespace

std::unique_ptr<Policy> make_b12191(const PoolShape& shape, double half_life) {
  return std::make_unique<B12191>(shape, half_life);
}

}  // namespace experts
}  // namespace spillway
