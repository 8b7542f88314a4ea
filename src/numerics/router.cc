#include "numerics/router.h"

#include <algorithm>

#include "base/assert.h"
#include "base/limits.h"
#include "numerics/elementary.h"
#include "numerics/norm.h"

namespace spillway::numerics {
namespace {

constexpr float kMinusInfinity = -std::bit_cast<float>(kInfinityBits);
constexpr float kLeastWeightSum =
    0x1p-14f;  // the least normal half; llama.cpp's bound against a division by zero

float rank_value(float x) { return is_nan(x) ? kMinusInfinity : x; }

// Whether (value a at index i) ranks before (b, j).
bool ranks_before(float a, uint32_t i, float b, uint32_t j) {
  const float va = rank_value(a), vb = rank_value(b);
  return va > vb || (va == vb && i < j);
}

// Inserts into a list of at most k, kept in rank order.
template <class Before>
void insert_ranked(uint32_t* ids, uint32_t& n, uint32_t k, uint32_t id, Before before) {
  uint32_t at = n;
  while (at > 0 && before(id, ids[at - 1])) --at;
  if (at == k) return;
  const uint32_t last = std::min(n, k - 1);
  std::copy_backward(ids + at, ids + last, ids + last + 1);
  ids[at] = id;
  n = last + 1;
}

// Sum of the group's best values in rank order, from +0.
float group_score(std::span<const float> values, uint32_t top) {
  uint32_t best[limits::kMaxExpertsUsed];
  const auto k = std::min<uint32_t>(top, static_cast<uint32_t>(values.size()));
  top_k(values, k, best);
  float sum = 0;
  for (uint32_t i = 0; i < k; ++i) sum = sum + values[best[i]];
  return sum;
}

}  // namespace

Result<void> check_router(const RouterParams& p) {
  if (p.n_experts == 0 || p.n_experts > limits::kMaxExperts)
    return invalid("router: {} experts, need 1..{}", p.n_experts, limits::kMaxExperts);
  if (p.n_used == 0 || p.n_used > p.n_experts || p.n_used > limits::kMaxExpertsUsed)
    return invalid("router: {} of {} experts used, need 1..{}", p.n_used, p.n_experts,
                   std::min(p.n_experts, limits::kMaxExpertsUsed));
  if (p.n_groups == 0 || p.n_experts % p.n_groups != 0)
    return invalid("router: {} experts do not divide into {} groups", p.n_experts, p.n_groups);
  if (p.n_groups_used == 0 || p.n_groups_used > p.n_groups)
    return invalid("router: {} of {} expert groups used", p.n_groups_used, p.n_groups);
  if (uint64_t{p.n_groups_used} * (p.n_experts / p.n_groups) < p.n_used)
    return invalid("router: {} experts used, but {} groups hold only {}", p.n_used, p.n_groups_used,
                   p.n_groups_used * (p.n_experts / p.n_groups));
  if (p.group_top == 0 || p.group_top > limits::kMaxExpertsUsed)
    return invalid("router: group score of {} experts, need 1..{}", p.group_top, limits::kMaxExpertsUsed);
  return {};
}

void top_k(std::span<const float> values, uint32_t k, uint32_t* ids) {
  SW_ASSERT(k <= values.size());
  uint32_t n = 0;
  for (uint32_t i = 0; i < values.size() && k > 0; ++i)
    insert_ranked(ids, n, k, i,
                  [&](uint32_t a, uint32_t b) { return ranks_before(values[a], a, values[b], b); });
}

void route(const RouterParams& p, float* logits, uint32_t* ids, float* weights) {
  if (p.gating == Gating::kSoftmax) softmax(logits, p.n_experts);
  if (p.gating == Gating::kSigmoid)
    for (uint32_t e = 0; e < p.n_experts; ++e) logits[e] = sigmoid(logits[e]);
  const float* probabilities = logits;

  const auto choice = [&](uint32_t e) {
    return p.bias ? probabilities[e] + flush(p.bias[e]) : probabilities[e];
  };
  const auto before = [&](uint32_t a, uint32_t b) { return ranks_before(choice(a), a, choice(b), b); };
  uint32_t n = 0;
  if (p.n_groups_used == p.n_groups) {
    for (uint32_t e = 0; e < p.n_experts; ++e) insert_ranked(ids, n, p.n_used, e, before);
  } else {
    const uint32_t length = p.n_experts / p.n_groups;
    float choices[limits::kMaxExperts], scores[limits::kMaxExperts];
    uint32_t groups[limits::kMaxExperts];
    for (uint32_t e = 0; e < p.n_experts; ++e) choices[e] = choice(e);
    for (uint32_t g = 0; g < p.n_groups; ++g)
      scores[g] = group_score({choices + g * length, length}, p.group_top);
    top_k({scores, p.n_groups}, p.n_groups_used, groups);
    for (uint32_t g = 0; g < p.n_groups_used; ++g)
      for (uint32_t e = groups[g] * length; e < (groups[g] + 1) * length; ++e)
        insert_ranked(ids, n, p.n_used, e, before);
  }

  for (uint32_t r = 0; r < p.n_used; ++r) weights[r] = probabilities[ids[r]];
  if (p.gating == Gating::kSoftmaxOfTopK) softmax(weights, p.n_used);
  if (p.renormalise) {
    float sum = 0;
    for (uint32_t r = 0; r < p.n_used; ++r) sum = sum + weights[r];
    const float inverse = reciprocal(sum < kLeastWeightSum ? kLeastWeightSum : sum);
    for (uint32_t r = 0; r < p.n_used; ++r) weights[r] = weights[r] * inverse;
  }
  if (p.scale != 1.0f)
    for (uint32_t r = 0; r < p.n_used; ++r) weights[r] = weights[r] * p.scale;
}

}  // namespace spillway::numerics
