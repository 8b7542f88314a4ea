#include "numerics/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "numerics/float_bits.h"

namespace spillway::numerics {
namespace {

bool positive(double x) { return std::isfinite(x) && x > 0; }

// The (fractional) pair that makes `turns` turns over the original context.
double pair_of_turns(const RopeParams& p, double turns) {
  return p.rope_length * std::log(p.original_context / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(p.base));
}

void rotate(float& first, float& second, float c, float s) {
  const float a = flush(first);
  const float b = flush(second);
  first = a * c - b * s;
  second = a * s + b * c;
}

}  // namespace

Result<void> check_rope(const RopeParams& p, std::span<const float> frequency_factors) {
  if (p.rope_length == 0 || p.rope_length % 2 != 0)
    return invalid("rope: {} values turn, need an even number above 0", p.rope_length);
  if (!positive(p.base) || p.base == 1)
    return invalid("rope: base is {}, need a number above 0 other than 1", p.base);
  if (p.scaling != RopeScaling::kNone && !positive(p.factor))
    return invalid("rope: scaling factor is {}, need a number above 0", p.factor);
  if (!positive(p.attention_factor))
    return invalid("rope: attention factor is {}, need a number above 0", p.attention_factor);
  if (p.scaling == RopeScaling::kYarn) {
    if (!positive(p.original_context))
      return invalid("rope: YaRN's original context is {}, need a number above 0", p.original_context);
    if (!positive(p.beta_fast) || !positive(p.beta_slow))
      return invalid("rope: YaRN's beta_fast {} and beta_slow {} must be above 0", p.beta_fast, p.beta_slow);
    if (!std::isfinite(p.extrapolation)) return invalid("rope: YaRN's extrapolation is not finite");
  }
  if (!frequency_factors.empty() && frequency_factors.size() != p.rope_length / 2)
    return invalid("rope: {} frequency factors, need {}", frequency_factors.size(), p.rope_length / 2);
  for (size_t i = 0; i < frequency_factors.size(); ++i)
    if (!positive(frequency_factors[i]))
      return invalid("rope: frequency factor {} is {}, need a number above 0", i, frequency_factors[i]);
  return {};
}

std::vector<double> rope_frequencies(const RopeParams& p, std::span<const float> frequency_factors) {
  double low = 0, high = 0;
  if (p.scaling == RopeScaling::kYarn) {
    low = pair_of_turns(p, p.beta_fast);
    high = pair_of_turns(p, p.beta_slow);
    if (p.whole_ramp) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(0.0, low);
    high = std::min(p.rope_length - 1.0, high);
  }
  std::vector<double> frequencies(p.rope_length / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double kept = std::pow(p.base, -2.0 * static_cast<double>(i) / p.rope_length);
    if (!frequency_factors.empty()) kept /= frequency_factors[i];
    if (p.scaling == RopeScaling::kNone) {
      frequencies[i] = kept;
      continue;
    }
    const double divided = kept / p.factor;
    frequencies[i] = divided;
    if (p.scaling != RopeScaling::kYarn) continue;
    const double ramp = std::clamp((static_cast<double>(i) - low) / std::max(0.001, high - low), 0.0, 1.0);
    const double keep = (1 - ramp) * p.extrapolation;
    frequencies[i] = divided * (1 - keep) + kept * keep;
  }
  return frequencies;
}

double rope_magnitude(const RopeParams& p) {
  if (p.scaling != RopeScaling::kYarn || p.extrapolation == 0) return p.attention_factor;
  return p.attention_factor * (1 + 0.1 * std::log(p.factor));
}

void rope_tables(const std::vector<double>& frequencies, double magnitude, uint32_t first, uint32_t count,
                 float* cos, float* sin) {
  const size_t pairs = frequencies.size();
  for (size_t t = 0; t < count; ++t) {
    for (size_t i = 0; i < pairs; ++i) {
      const double angle = (static_cast<double>(first) + static_cast<double>(t)) * frequencies[i];
      cos[t * pairs + i] = flush(static_cast<float>(std::cos(angle) * magnitude));
      sin[t * pairs + i] = flush(static_cast<float>(std::sin(angle) * magnitude));
    }
  }
}

void rope_neox(float* x, uint32_t n_heads, uint32_t head_length, uint32_t rope_length, const float* cos,
               const float* sin) {
  const uint32_t pairs = rope_length / 2;
  for (uint32_t h = 0; h < n_heads; ++h, x += head_length)
    for (uint32_t i = 0; i < pairs; ++i) rotate(x[i], x[i + pairs], cos[i], sin[i]);
}

void rope_normal(float* x, uint32_t n_heads, uint32_t head_length, uint32_t rope_length, const float* cos,
                 const float* sin) {
  for (uint32_t h = 0; h < n_heads; ++h, x += head_length)
    for (uint32_t i = 0; i < rope_length / 2; ++i) rotate(x[2 * i], x[2 * i + 1], cos[i], sin[i]);
}

}  // namespace spillway::numerics
