// Fixed placement by frequency: for the first `static_tokens` of a layer the least used resident expert goes
// first, counted without decay; after that the layer gives up nothing any more.
#include "experts/policies.h"

namespace spillway {
namespace experts {
namespace {

class Static final : public HeapPolicy {
 public:
  Static(const PoolShape& shape, uint32_t static_tokens)
      : HeapPolicy(shape),
        static_tokens_(static_tokens),
        clock_(shape.n_layers, 0),
        may_lose_(shape.n_layers, 0),
        counts_(size_t{shape.n_layers} * shape.n_experts, 0) {}

  void use(uint32_t layer, uint32_t n_tokens, std::span<const Use> uses) override {
    clock_[layer] += n_tokens;
    for (const Use& use : uses) counts_[size_t{layer} * shape_.n_experts + use.expert] += use.tokens;
  }
  double score(uint32_t layer, ExpertId expert) const override {
    return static_cast<double>(counts_[size_t{layer} * shape_.n_experts + expert]);
  }
  SlotId victim(std::span<const uint8_t> may_lose) const override {
    for (uint32_t layer = 0; layer < shape_.n_layers; ++layer)
      may_lose_[layer] = may_lose[layer] != 0 && clock_[layer] < static_tokens_;
    return HeapPolicy::victim(may_lose_);
  }

 private:
  uint64_t static_tokens_;
  std::vector<uint64_t> clock_;            // (n_layers)
  mutable std::vector<uint8_t> may_lose_;  // (n_layers) scratch
  std::vector<uint64_t> counts_;           // (n_layers, n_experts)
};

}  // namespace

std::unique_ptr<Policy> make_static(const PoolShape& shape, uint32_t static_tokens) {
  return std::make_unique<Static>(shape, static_tokens);
}

}  // namespace experts
}  // namespace spillway
