#include "experts/belady.h"

#include "base/assert.h"

namespace spillway {
namespace experts {
namespace {

class Belady final : public Policy {
 public:
  Belady(const PoolShape& shape, Future future)
      : n_experts_(shape.n_experts),
        future_(std::move(future)),
        next_(size_t{shape.n_layers} * shape.n_experts, 0),
        clock_(shape.n_layers, 0),
        holders_(shape.n_slots) {
    SW_ASSERT(future_.uses.size() == next_.size());
  }

  void use(uint32_t layer, uint32_t, std::span<const Use> uses) override {
    const uint32_t now = clock_[layer]++;
    for (const Use& use : uses) {
      const size_t i = size_t{layer} * n_experts_ + use.expert;
      SW_ASSERT(next_[i] < future_.uses[i].size() && future_.uses[i][next_[i]] == now);
      ++next_[i];
    }
  }

  // Of the micro-batches to come, the first is 1 away.
  double score(uint32_t layer, ExpertId expert) const override {
    const size_t i = size_t{layer} * n_experts_ + expert;
    if (next_[i] == future_.uses[i].size()) return 0.0;
    return 1.0 / (1.0 + future_.uses[i][next_[i]] - clock_[layer]);
  }

  void add(SlotId slot, uint32_t layer, ExpertId expert) override { holders_[slot] = {layer, expert}; }
  void remove(SlotId slot) override { holders_[slot] = {}; }

  SlotId victim(std::span<const uint8_t> may_lose) const override {
    SlotId best = kNoSlot;
    double least = 0.0;
    for (SlotId slot = 0; slot < holders_.size(); ++slot) {
      const ExpertKey& holder = holders_[slot];
      if (holder.layer == kNone || may_lose[holder.layer] == 0) continue;
      const double wanted = score(holder.layer, holder.expert);
      if (best == kNoSlot || wanted < least) {
        best = slot;
        least = wanted;
      }
    }
    return best;
  }

 private:
  uint32_t n_experts_;
  Future future_;
  std::vector<uint32_t> next_;      // (n_layers, n_experts) index of the next use
  std::vector<uint32_t> clock_;     // (n_layers) micro-batches seen
  std::vector<ExpertKey> holders_;  // (n_slots) what may be evicted
};

}  // namespace

std::unique_ptr<Policy> make_belady(const PoolShape& shape, Future future) {
  return std::make_unique<Belady>(shape, std::move(future));
}

}  // namespace experts
}  // namespace spillway
