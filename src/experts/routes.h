// What a router said over a run, without any decision: what the simulator replays.
#pragma once

#include <vector>

#include "experts/types.h"

namespace spillway {
namespace experts {

class Routes {
 public:
  std::vector<GroupShape> groups;

  struct Layer {
    LayerId layer = 0;
    uint32_t n_tokens = 0;
    size_t first_use = 0;
    size_t n_uses = 0;
  };
  // A step: a micro-batch's layers in the order in which they ran.
  struct Step {
    uint32_t n_tokens = 0;
    size_t first_layer = 0;
    size_t n_layers = 0;
  };

  void begin_step(uint32_t n_tokens) { steps_.push_back({n_tokens, layers_.size(), 0}); }
  // Requires: begin_step() was called; uses as types.h says.
  void add(const Routing& routing) {
    layers_.push_back({routing.layer, routing.n_tokens, uses_.size(), routing.uses.size()});
    uses_.insert(uses_.end(), routing.uses.begin(), routing.uses.end());
    ++steps_.back().n_layers;
  }

  std::span<const Step> steps() const { return steps_; }
  std::span<const Layer> layers(const Step& step) const {
    return std::span(layers_).subspan(step.first_layer, step.n_layers);
  }
  Routing routing(const Layer& layer) const {
    return {layer.layer, layer.n_tokens, std::span(uses_).subspan(layer.first_use, layer.n_uses)};
  }
  uint64_t n_tokens() const {
    uint64_t n = 0;
    for (const Step& step : steps_) n += step.n_tokens;
    return n;
  }

 private:
  std::vector<Step> steps_;
  std::vector<Layer> layers_;
  std::vector<Use> uses_;
};

}  // namespace experts
}  // namespace spillway
