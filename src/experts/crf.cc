// Combined recency and frequency: the victim is the resident expert with the smallest decayed use count.
#include "experts/policies.h"
#include "experts/score.h"

namespace spillway {
namespace experts {
namespace {

class Crf final : public HeapPolicy {
 public:
  Crf(const PoolShape& shape, double half_life)
      : HeapPolicy(shape), counts_(shape.n_layers, shape.n_experts, half_life) {}
  void use(uint32_t layer, uint32_t n_tokens, std::span<const Use> uses) override {
    if (counts_.use(layer, n_tokens, uses)) keys_changed(layer);
  }
  double score(uint32_t layer, ExpertId expert) const override { return counts_.score(layer, expert); }

 private:
  double key(uint32_t layer, ExpertId expert) const override { return counts_.raw(layer, expert); }

  DecayedCounts counts_;
};

}  // namespace

std::unique_ptr<Policy> make_crf(const PoolShape& shape, double half_life) {
  return std::make_unique<Crf>(shape, half_life);
}

}  // namespace experts
}  // namespace spillway
