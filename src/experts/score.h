// CRF (combined recency and frequency): for every (layer, expert) a count of uses that halves every
// `half_life` tokens of that layer. It is kept for all experts, resident or not, so that an eviction forgets
// nothing.
//
// Instead of shrinking all counts at every token, a new use counts for more: a layer's counts are kept in
// units that shrink with its clock, and a use at clock t adds 2^(t / half_life - whole). When the clock
// passes a whole half-life, the layer's counts are halved, which is exact. So the order of two experts of one
// layer changes only when one of them is used, advancing costs O(1) (O(n_experts) once a half-life), and the
// score is a division away.
//
// All arithmetic is that of experts/arithmetic.h; the clock is an integer, so nothing drifts.
#pragma once

#include <cstdint>
#include <vector>

#include "experts/types.h"

namespace spillway {
namespace experts {

class DecayedCounts {
 public:
  // Requires: half_life >= 1 (tokens).
  DecayedCounts(uint32_t n_layers, uint32_t n_experts, double half_life);

  // A micro-batch of `n_tokens` passed the layer. Its uses count as if spread evenly over its tokens, so that
  // a score means the same however a prompt was cut: with n tokens a use counts (1 + d + ... + d^(n-1)) / n,
  // d being the decay of one token, and 1 at n = 1. Returns whether the layer's counts were rescaled (their
  // order stays, but for those that reached 0).
  bool use(uint32_t layer, uint32_t n_tokens, std::span<const Use> uses);

  // Uses, decayed to the layer's present clock. Comparable over layers. O(1).
  double score(uint32_t layer, ExpertId expert) const { return raw(layer, expert) / unit_[layer]; }
  // Orders the experts of one layer as score() does, without the division.
  double raw(uint32_t layer, ExpertId expert) const { return counts_[size_t{layer} * n_experts_ + expert]; }
  uint64_t clock(uint32_t layer) const { return clock_[layer]; }

 private:
  double spread(uint32_t n_tokens);

  uint32_t n_experts_;
  double half_life_;
  double decay_;                // of one token: 2^(-1 / half_life)
  uint32_t spread_tokens_ = 1;  // spread() of this is spread_value_
  double spread_value_ = 1.0;
  std::vector<uint64_t> clock_;     // (n_layers) tokens seen
  std::vector<uint64_t> halvings_;  // (n_layers) whole half-lives passed
  std::vector<double> unit_;        // (n_layers) what one use adds now, in [1, 2)
  std::vector<double> counts_;      // (n_layers, n_experts)
};

}  // namespace experts
}  // namespace spillway
