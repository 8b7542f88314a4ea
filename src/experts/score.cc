#include "experts/score.h"

#include "base/assert.h"
#include "experts/arithmetic.h"

namespace spillway {
namespace experts {

DecayedCounts::DecayedCounts(uint32_t n_layers, uint32_t n_experts, double half_life)
    : n_experts_(n_experts),
      half_life_(half_life),
      decay_(exp2_fraction(1.0 - 1.0 / half_life) / 2.0),
      clock_(n_layers, 0),
      halvings_(n_layers, 0),
      unit_(n_layers, 1.0),
      counts_(size_t{n_layers} * n_experts, 0.0) {
  SW_ASSERT(half_life >= 1.0);
}

double DecayedCounts::spread(uint32_t n_tokens) {
  if (n_tokens == spread_tokens_) return spread_value_;
  double sum = 0.0;
  double term = 1.0;
  for (uint32_t i = 0; i < n_tokens && term > 0x1p-40; ++i, term *= decay_) sum += term;
  spread_tokens_ = n_tokens;
  spread_value_ = sum / n_tokens;
  return spread_value_;
}

bool DecayedCounts::use(uint32_t layer, uint32_t n_tokens, std::span<const Use> uses) {
  clock_[layer] += n_tokens;
  const double age = static_cast<double>(clock_[layer]) / half_life_;
  const auto whole = static_cast<uint64_t>(age);
  unit_[layer] = exp2_fraction(age - static_cast<double>(whole));
  double* counts = counts_.data() + size_t{layer} * n_experts_;
  const bool rescaled = whole != halvings_[layer];
  if (rescaled) {
    const double factor = power_of_half(whole - halvings_[layer]);
    halvings_[layer] = whole;
    for (uint32_t i = 0; i < n_experts_; ++i) counts[i] *= factor;
  }
  const double amount = unit_[layer] * spread(n_tokens);
  for (const Use& use : uses) counts[use.expert] += amount * use.tokens;
  return rescaled;
}

}  // namespace experts
}  // namespace spillway
