// Choosing the next token from a row of logits. The same seed and the same logits give the same tokens, on
// every machine: ties go to the lower id, and the random numbers are made here.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"

namespace spillway::sample {

// Names, meanings and order of application are llama.cpp's: bias, penalties, top-k, top-p, min-p,
// temperature.
struct SamplerParams {
  float temperature = 0.8f;       // 0 = greedy: the largest logit after bias and penalties
  int32_t top_k = 40;             // keep the k most likely; 0 or less = all
  float top_p = 0.95f;            // keep the smallest set with at least this probability; 1 = all
  float min_p = 0.05f;            // drop what is less likely than this times the most likely; 0 = none
  float repeat_penalty = 1.0f;    // divides positive and multiplies negative logits of recent tokens; 1 = off
  float presence_penalty = 0.0f;  // subtracted once from the logit of each recent token
  float frequency_penalty = 0.0f;  // subtracted per occurrence
  int32_t repeat_last_n = 64;      // how many recent tokens count; 0 = none, -1 = all
  uint64_t seed = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;  // added to the logits; -infinity bans a token
};

// Errors name the parameter, the value and the range. `vocabulary` bounds the ids of logit_bias.
Result<void> validate(const SamplerParams& params, uint32_t vocabulary);

class Sampler {
 public:
  // Requires: validate(params, vocabulary) is fine. Ids at `vocabulary` and above (rows that pad the
  // embedding) are never chosen.
  Sampler(SamplerParams params, uint32_t vocabulary);

  // Counts a token that is already in the text (the prompt's, for the penalties).
  void accept(int32_t token);

  // Chooses from `logits` (at least `vocabulary` values) and accepts the choice. A row with a NaN, or one in
  // which no token can be chosen, is an error: the model or the file is damaged.
  Result<int32_t> sample(std::span<const float> logits);

  const SamplerParams& params() const { return params_; }

 private:
  struct Candidate {
    int32_t id;
    float logit;
  };

  void apply_penalties();
  size_t keep_top_k();
  double next_uniform();  // in [0, 1)

  SamplerParams params_;
  uint32_t vocabulary_;
  std::vector<int32_t> history_;
  std::vector<float> adjusted_;        // (vocabulary)
  std::vector<Candidate> candidates_;  // at most (vocabulary)
  std::vector<double> weights_;        // of the kept candidates
  uint64_t state_;
};

}  // namespace spillway::sample
