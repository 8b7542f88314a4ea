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
      : n_experts_(shape.n_experts),
        counts_(shape.n_layers, shape.n_experts, half_life),
        uses_(size_t{shape.n_layers} * shape.n_experts, 0),
        nodes_(shape.n_slots) {}

  void use(uint32_t layer, uint32_t n_tokens, std::span<const Use> uses) override {
    counts_.use(layer, n_tokens, uses);
    for (const Use& use : uses) ++uses_[size_t{layer} * n_experts_ + use.expert];
  }
  double score(uint32_t layer, ExpertId expert) const override { return counts_.score(layer, expert); }

  // At its list's tail, or where it was if it was only read meanwhile by a batch that does not count.
  void add(SlotId slot, uint32_t layer, ExpertId expert) override {
    Node& node = nodes_[slot];
    SW_ASSERT(!node.linked);
    const uint64_t used = uses_[size_t{layer} * n_experts_ + expert];
    if (node.layer != layer || node.expert != expert || node.used != used) {
      const double wanted = counts_.score(layer, expert);
      const uint32_t floor = wanted < 1.0 ? 0 : floor_log2(static_cast<uint64_t>(wanted));
      node = {layer,    expert, used, std::min<uint32_t>(floor, kReferenceClasses - 1), counts_.clock(layer),
              ++serial_};
    }
    node.previous = tails_[node.list];
    node.next = kNoSlot;
    while (node.previous != kNoSlot && nodes_[node.previous].serial > node.serial) {
      node.next = node.previous;
      node.previous = nodes_[node.previous].previous;
    }
    (node.previous == kNoSlot ? heads_[node.list] : nodes_[node.previous].next) = slot;
    (node.next == kNoSlot ? tails_[node.list] : nodes_[node.next].previous) = slot;
    node.linked = true;
  }

  void remove(SlotId slot) override {
    Node& node = nodes_[slot];
    SW_ASSERT(node.linked);
    (node.previous == kNoSlot ? heads_[node.list] : nodes_[node.previous].next) = node.next;
    (node.next == kNoSlot ? tails_[node.list] : nodes_[node.next].previous) = node.previous;
    node.linked = false;
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
    uint32_t layer = kNone;
    ExpertId expert = kNone;
    uint64_t used = 0;  // how often the expert had been used when it was put at the tail
    uint32_t list = 0;
    uint64_t since = 0;  // the layer's clock then
    uint64_t serial = 0;
    SlotId previous = kNoSlot;
    SlotId next = kNoSlot;
    bool linked = false;
  };
  static constexpr std::array<SlotId, kReferenceClasses> no_slots() {
    std::array<SlotId, kReferenceClasses> slots{};
    slots.fill(kNoSlot);
    return slots;
  }

  uint32_t n_experts_;
  DecayedCounts counts_;
  std::vector<uint64_t> uses_;  // (n_layers, n_experts)
  std::vector<Node> nodes_;     // (n_slots)
  uint64_t serial_ = 0;
  std::array<SlotId, kReferenceClasses> heads_ = no_slots();
  std::array<SlotId, kReferenceClasses> tails_ = no_slots();
};

}  // namespace

std::unique_ptr<Policy> make_b12191(const PoolShape& shape, double half_life) {
  return std::make_unique<B12191>(shape, half_life);
}

}  // namespace experts
}  // namespace spillway
