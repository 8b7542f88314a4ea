// SYNTHETIC routes for tests (experts/synthetic_routes.h) of one group: nothing here comes from a model.
#pragma once

#include <numeric>

#include "experts/synthetic_routes.h"

namespace spillway {
namespace experts {

struct SyntheticShape {
  uint32_t n_layers = 12, n_experts = 64, n_used = 6;
  uint64_t expert_bytes = 2'850'000;
  RoutingStatistic statistic;
  uint32_t prompt = 0;    // tokens of a first micro-batch
  uint32_t tokens = 600;  // one by one
  uint32_t seed = 1;
};

inline Routes synthetic_routes(const SyntheticShape& shape) {
  GroupShape group{{}, shape.n_experts, shape.n_used, shape.expert_bytes};
  group.layers.resize(shape.n_layers);
  std::iota(group.layers.begin(), group.layers.end(), 0);
  SyntheticRouter router(std::span(&group, 1), shape.statistic, shape.seed);
  if (shape.prompt > 0) router.step(shape.prompt);
  for (uint32_t i = 0; i < shape.tokens; ++i) router.step(1);
  return router.routes();
}

}  // namespace experts
}  // namespace spillway
