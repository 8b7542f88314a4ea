#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/assert.h"

namespace spillway::sample {
namespace {

Result<void> check_range(std::string_view name, float value, float low, float high) {
  if (value >= low && value <= high) return {};
  return invalid("{} is {}, must lie between {} and {}", name, value, low, high);
}

// splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

Result<void> validate(const SamplerParams& p, uint32_t vocabulary) {
  SW_TRY(check_range("temperature", p.temperature, 0.0f, 100.0f));
  SW_TRY(check_range("top-p", p.top_p, 0.0f, 1.0f));
  SW_TRY(check_range("min-p", p.min_p, 0.0f, 1.0f));
  SW_TRY(check_range("repeat penalty", p.repeat_penalty, 0.01f, 10000.0f));
  SW_TRY(check_range("presence penalty", p.presence_penalty, -100.0f, 100.0f));
  SW_TRY(check_range("frequency penalty", p.frequency_penalty, -100.0f, 100.0f));
  if (p.repeat_last_n < -1)
    return invalid("repeat-last-n is {}, must be -1 (all), 0 (none) or more", p.repeat_last_n);
  for (const auto& [id, bias] : p.logit_bias) {
    if (id < 0 || static_cast<uint32_t>(id) >= vocabulary)
      return invalid("logit bias names token {}, the vocabulary holds 0 to {}", id, vocabulary - 1);
    if (std::isnan(bias) || bias == INFINITY)
      return invalid("logit bias of token {} is {}, must be a number", id, bias);
  }
  return {};
}

Sampler::Sampler(SamplerParams params, uint32_t vocabulary)
    : params_(std::move(params)), vocabulary_(vocabulary), adjusted_(vocabulary), state_(params_.seed) {
  candidates_.reserve(vocabulary);
}

void Sampler::accept(int32_t token) { history_.push_back(token); }

void Sampler::apply_penalties() {
  for (const auto& [id, bias] : params_.logit_bias) adjusted_[id] += bias;

  const bool off =
      params_.repeat_penalty == 1.0f && params_.presence_penalty == 0.0f && params_.frequency_penalty == 0.0f;
  if (off || params_.repeat_last_n == 0) return;
  const size_t window =
      params_.repeat_last_n < 0 ? history_.size() : std::min<size_t>(history_.size(), params_.repeat_last_n);
  std::map<int32_t, uint32_t> counts;
  for (size_t i = history_.size() - window; i < history_.size(); ++i) ++counts[history_[i]];
  for (const auto& [id, count] : counts) {
    if (static_cast<uint32_t>(id) >= vocabulary_) continue;
    float& logit = adjusted_[id];
    logit = logit > 0 ? logit / params_.repeat_penalty : logit * params_.repeat_penalty;
    logit -= static_cast<float>(count) * params_.frequency_penalty + params_.presence_penalty;
  }
}

// Sorts the most likely candidates to the front, best first, and returns how many are kept.
size_t Sampler::keep_top_k() {
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  const size_t all = candidates_.size();
  const size_t k = params_.top_k <= 0 ? all : std::min<size_t>(all, params_.top_k);
  std::partial_sort(candidates_.begin(), candidates_.begin() + k, candidates_.end(), better);
  return k;
}

double Sampler::next_uniform() { return static_cast<double>(next_random(state_) >> 11) * 0x1p-53; }

Result<int32_t> Sampler::sample(std::span<const float> logits) {
  SW_ASSERT(logits.size() >= vocabulary_);
  std::copy_n(logits.begin(), vocabulary_, adjusted_.begin());
  apply_penalties();

  candidates_.clear();
  for (uint32_t id = 0; id < vocabulary_; ++id) {
    if (std::isnan(adjusted_[id]))
      return invalid(
          "the logit of token {} is not a number: the model file is damaged (a block scale that is NaN or "
          "infinite; 'spillway inspect --check' looks for them)",
          id);
    if (adjusted_[id] > -INFINITY) candidates_.push_back({static_cast<int32_t>(id), adjusted_[id]});
  }
  if (candidates_.empty()) return invalid("no token can be chosen: every logit is minus infinity");

  if (params_.temperature == 0.0f || params_.top_k == 1) {
    const auto best = std::ranges::max_element(candidates_, {}, &Candidate::logit);  // the first of equals
    accept(best->id);
    return best->id;
  }

  size_t kept = keep_top_k();
  const double top = candidates_[0].logit;
  weights_.resize(kept);
  double sum = 0;
  for (size_t i = 0; i < kept; ++i) sum += weights_[i] = std::exp(candidates_[i].logit - top);
  if (params_.top_p < 1.0f) {
    double mass = 0;
    size_t n = 0;
    while (n < kept && (n == 0 || mass < params_.top_p * sum)) mass += weights_[n++];
    kept = n;
  }
  if (params_.min_p > 0.0f)
    while (kept > 1 && weights_[kept - 1] < params_.min_p * weights_[0]) --kept;

  sum = 0;
  for (size_t i = 0; i < kept; ++i)
    sum += weights_[i] = std::exp((candidates_[i].logit - top) / params_.temperature);
  double left = next_uniform() * sum;
  size_t chosen = 0;
  while (chosen + 1 < kept && left >= weights_[chosen]) left -= weights_[chosen++];
  accept(candidates_[chosen].id);
  return candidates_[chosen].id;
}

}  // namespace spillway::sample
