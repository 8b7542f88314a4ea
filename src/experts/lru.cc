// Least recently used. A score is 1 / (1 + tokens of the layer since the last use before the present
// micro-batch), so that an expert that is used now for the first time after long does not rank above
// everything: what it would be worth is what its past says.
#include "experts/policies.h"

namespace spillway {
namespace experts {
namespace {

class Lru final : public HeapPolicy {
 public:
  explicit Lru(const PoolShape& shape)
      : HeapPolicy(shape), clock_(shape.n_layers, 0), uses_(size_t{shape.n_layers} * shape.n_experts) {}

  void use(uint32_t layer, uint32_t n_tokens, std::span<const Use> uses) override {
    clock_[layer] += n_tokens;
    for (const Use& use : uses) {
      Times& times = at(layer, use.expert);
      times.before = times.last;
      times.last = clock_[layer];
    }
  }
  double score(uint32_t layer, ExpertId expert) const override {
    const Times& times = uses_[size_t{layer} * shape_.n_experts + expert];
    const uint64_t clock = clock_[layer];
    const uint64_t last = times.last == clock ? times.before : times.last;
    return last == 0 ? 0.0 : 1.0 / (1.0 + static_cast<double>(clock - last));
  }

 private:
  struct Times {
    uint64_t last = 0;  // the layer's clock after the use; 0: never
    uint64_t before = 0;
  };
  // What goes in the heap was used or not, and is ordered by its last use.
  double key(uint32_t layer, ExpertId expert) const override {
    return static_cast<double>(uses_[size_t{layer} * shape_.n_experts + expert].last);
  }
  double worth(uint32_t layer, ExpertId expert) const override {
    return 1.0 / (1.0 + static_cast<double>(clock_[layer]) - key(layer, expert));
  }
  Times& at(uint32_t layer, ExpertId expert) { return uses_[size_t{layer} * shape_.n_experts + expert]; }

  std::vector<uint64_t> clock_;  // (n_layers)
  std::vector<Times> uses_;      // (n_layers, n_experts)
};

}  // namespace

std::unique_ptr<Policy> make_lru(const PoolShape& shape) { return std::make_unique<Lru>(shape); }

}  // namespace experts
}  // namespace spillway
