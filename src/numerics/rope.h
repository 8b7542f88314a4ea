// Rotary position embedding: the host routine that makes the tables of cos and sin, and the rotation.
// Sources: RoFormer (arXiv 2104.09864) for the rotation, YaRN (arXiv 2309.00071) section 3 for the blend of
// frequencies; the values agree with what llama.cpp and Hugging Face compute from the same metadata.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace spillway::numerics {

enum class RopeScaling : uint8_t {
  kNone,
  kLinear,  // positions divided by `factor`
  kYarn,    // low frequencies divided by `factor`, high ones kept, a ramp between; magnitude raised
};

struct RopeParams {
  uint32_t rope_length = 0;  // values of a head that turn; even
  double base = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;
  // YaRN only.
  double original_context = 0;  // context the model was trained with
  double beta_fast = 32.0;      // turns over the original context above which a frequency is kept
  double beta_slow = 1.0;       // and below which it is divided
  double extrapolation = 1.0;   // weight of the blend (llama.cpp's ext_factor)
  bool whole_ramp = true;       // ramp ends on whole pairs (Hugging Face's `truncate`; gpt-oss has false)
  // Multiplies cos and sin. For kYarn (with extrapolation) the tables get 1 + 0.1 ln(factor) on top of it.
  double attention_factor = 1.0;
};

// Faults of values that come from a file: an odd or zero length, a base, factor or context that is not
// positive and finite, a wrong number of frequency factors (0 or rope_length/2), or one that is not positive
// and finite.
Result<void> check_rope(const RopeParams& params, std::span<const float> frequency_factors);

// Angle per position of each pair, rope_length/2 values: base^(-2i/rope_length), divided by its frequency
// factor (the `rope_freqs` tensor of Llama 3; empty for none), then scaled. Requires: check_rope passed.
std::vector<double> rope_frequencies(const RopeParams& params, std::span<const float> frequency_factors);

// What cos and sin are multiplied with.
double rope_magnitude(const RopeParams& params);

// cos and sin of positions first .. first + count - 1: (count, rope_length/2) each. The angle is position *
// frequency in double; cos and sin in double, times the magnitude, rounded to float32 once, flushed.
void rope_tables(const std::vector<double>& frequencies, double magnitude, uint32_t first, uint32_t count,
                 float* cos, float* sin);

// Turns n_heads vectors of head_length in place; cos and sin hold rope_length/2 values of one position. A
// pair (a, b), flushed, becomes (a*c - b*s, a*s + b*c). Pairs: (i, i + rope_length/2) for neox, (2i, 2i+1)
// for normal.
void rope_neox(float* x, uint32_t n_heads, uint32_t head_length, uint32_t rope_length, const float* cos,
               const float* sin);
void rope_normal(float* x, uint32_t n_heads, uint32_t head_length, uint32_t rope_length, const float* cos,
                 const float* sin);

}  // namespace spillway::numerics
