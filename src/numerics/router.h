// From router logits to the experts of a token and their weights (docs/numerics.md, "Router and experts").
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"

namespace spillway::numerics {

enum class Gating : uint8_t {
  kSoftmax,        // probabilities by softmax over all experts
  kSigmoid,        // probabilities by sigmoid, each on its own
  kSoftmaxOfTopK,  // chosen by logit, softmax over the chosen ones only (gpt-oss)
};

struct RouterParams {
  Gating gating = Gating::kSoftmax;
  uint32_t n_experts = 0;
  uint32_t n_used = 0;
  // Added (flushed) to a probability for the choice only, not for the weight (n_experts values), or null.
  const float* bias = nullptr;
  // Group-limited choice: experts lie in n_groups runs of equal length; only the n_groups_used best groups
  // take part. A group's score is the sum of its `group_top` best choice values in rank order (DeepSeek V3:
  // 2, V2: 1).
  uint32_t n_groups = 1;
  uint32_t n_groups_used = 1;
  uint32_t group_top = 2;
  bool renormalise = false;  // weights times reciprocal(max(their sum in rank order, 2^-14))
  float scale = 1.0f;        // then times this, where it isn't 1
};

// Contradictions between these values, which come from a file.
Result<void> check_router(const RouterParams& params);

// logits (n_experts), overwritten. ids and weights (n_used) in rank order: descending choice value, ties to
// the lower index; a NaN ranks as -inf, so that the ids are always distinct and in range. Requires:
// check_router passed.
void route(const RouterParams& params, float* logits, uint32_t* ids, float* weights);

// The k largest values in rank order (ties to the lower index, NaN as -inf). Requires: k <= values.size().
// O(n k).
void top_k(std::span<const float> values, uint32_t k, uint32_t* ids);

}  // namespace spillway::numerics
