// The forward pass in plain double precision over the dequantized weights: no activation is rounded, no KV
// cache, no kernel of ours. The yardstick for how far a way of computing is from exact.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace spillway::test_support {

struct ExactLogits {
  std::vector<double> rows;  // (tokens, vocabulary)
  std::vector<double> gaps;  // (tokens): over all layers, the smallest distance in router logits between the
                             // last expert chosen and the first one left out; infinite without experts
};

Result<ExactLogits> exact_forward(const std::string& path, std::span<const int32_t> tokens);

// How far rows of logits are from the exact ones.
struct Distance {
  std::vector<double> kl;  // per position: KL divergence of softmax(got) from softmax(exact)
  double rms = 0;          // over all logits
  double same_top1 = 0;    // share of positions with the same largest logit

  double mean_kl() const;
  double max_kl() const;
  double median_kl() const;
};
Distance distance(std::span<const double> exact, std::span<const float> got, size_t vocabulary);

}  // namespace spillway::test_support
