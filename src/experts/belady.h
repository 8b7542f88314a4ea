// Belady's rule with bypass: the victim is the expert whose next use lies farthest ahead, and a newcomer
// whose own next use lies farther still is not admitted. It needs the future, so it is the simulator's bound.
#pragma once

#include <vector>

#include "experts/policy.h"

namespace spillway {
namespace experts {

// When each expert of a pool is used: (n_layers, n_experts) lists of ascending positions in the layer's
// sequence of micro-batches (0, 1, ...).
struct Future {
  std::vector<std::vector<uint32_t>> uses;
};

// A score is 1 / (micro-batches until the next use), 0 for never; with an admission factor of 1 the planner
// then bypasses as the rule says. victim() is O(slots).
std::unique_ptr<Policy> make_belady(const PoolShape& shape, Future future);

}  // namespace experts
}  // namespace spillway
