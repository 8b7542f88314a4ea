// Every quantized type is one of two fits per sub-block, each by the same recipe: try some scales around the
// one that just covers the range, round the codes, solve for the best scale (and minimum) with these codes,
// keep the best.
//   symmetric: x = s * v, v from a list of integers (a range, or the table of IQ4)
//   affine:    x = s * q + low, q = 0..max, low <= 0 for the K-quants
// The K-quants then round the fitted scales and minima to integers times a half, and round the codes again
// with what came out.
#include "numerics/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/assert.h"
#include "numerics/float_bits.h"
#include "numerics/pack.h"

namespace spillway::numerics {
namespace {

using enum TensorType;

constexpr int kTrials = 9;           // scales tried on each side of the covering one
constexpr float kTrialStep = 0.03f;  // relative distance of two trials

uint16_t half_of(float x) { return f32_to_f16(std::clamp(x, -65504.0f, 65504.0f)); }

float inverse(float x) { return x != 0 && std::isfinite(1 / x) ? 1 / x : 0.0f; }

// The integers that a code can stand for, ascending.
struct Values {
  std::span<const int8_t> table;  // or, if empty, the range low..high
  int low = 0, high = 0;

  // Index of the value nearest to x.
  int nearest(float x) const {
    if (table.empty())
      return static_cast<int>(
                 std::nearbyint(std::clamp(x, static_cast<float>(low), static_cast<float>(high)))) -
             low;
    const auto above = std::lower_bound(table.begin(), table.end(), x);
    if (above == table.begin()) return 0;
    if (above == table.end()) return static_cast<int>(table.size()) - 1;
    const bool down = x - static_cast<float>(above[-1]) < static_cast<float>(above[0]) - x;
    return static_cast<int>(above - table.begin()) - (down ? 1 : 0);
  }
  float at(int index) const { return static_cast<float>(table.empty() ? low + index : table[index]); }
  float extreme() const {
    return table.empty() ? static_cast<float>(low) : static_cast<float>(table.front());
  }
};

// The scale of the symmetric fit.
float fit_symmetric(std::span<const float> x, const Values& values) {
  const float peak =
      *std::max_element(x.begin(), x.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
  if (peak == 0) return 0;
  float best = 0, best_gain = 0;
  for (const float sign : {1.0f, -1.0f}) {  // the range has one more value on one side
    for (int trial = -kTrials; trial <= kTrials; ++trial) {
      const float inv =
          inverse(sign * peak / values.extreme() * (1 + kTrialStep * static_cast<float>(trial)));
      float xv = 0, vv = 0;
      for (const float value : x) {
        const float v = values.at(values.nearest(value * inv));
        xv += value * v;
        vv += v * v;
      }
      // The error left with the best scale xv/vv is sum x^2 - xv^2/vv.
      if (vv > 0 && xv * xv > best_gain * vv) {
        best_gain = xv * xv / vv;
        best = xv / vv;
      }
    }
  }
  return best;
}

struct Affine {
  float scale = 0;  // >= 0
  float low = 0;
};

// `low_free`: the minimum may be above 0 (Q4_1, Q5_1).
Affine fit_affine(std::span<const float> x, int max_code, bool low_free) {
  const auto [min_at, max_at] = std::minmax_element(x.begin(), x.end());
  const float low = low_free ? *min_at : std::min(*min_at, 0.0f);
  const float range = *max_at - low;
  if (range <= 0) return {0, low};
  const auto n = static_cast<float>(x.size());
  Affine best = {range / static_cast<float>(max_code), low};  // kept where all codes are equal in every trial
  float best_error = std::numeric_limits<float>::infinity();
  for (int trial = -kTrials; trial <= kTrials / 2; ++trial) {
    const float inv =
        inverse(range / static_cast<float>(max_code) * (1 + kTrialStep * static_cast<float>(trial)));
    float sq = 0, sqq = 0, sx = 0, sxq = 0;
    const auto code = [&](float value) {
      return std::nearbyint(std::clamp((value - low) * inv, 0.0f, static_cast<float>(max_code)));
    };
    for (const float value : x) {
      const float q = code(value);
      sq += q, sqq += q * q, sx += value, sxq += value * q;
    }
    const float determinant = n * sqq - sq * sq;
    if (determinant <= 0) continue;
    Affine fit = {(n * sxq - sx * sq) / determinant, (sqq * sx - sq * sxq) / determinant};
    if (!low_free && fit.low > 0) fit = {sxq / sqq, 0};
    float error = 0;
    for (const float value : x) {
      const float rest = value - (fit.scale * code(value) + fit.low);
      error += rest * rest;
    }
    if (error < best_error) best_error = error, best = fit;
  }
  return best;
}

void quantize_symmetric_32(const float* x, const Values& values, StoredBlock& block) {
  // For Q8_0 the covering scale is as good as any: the trials' gain is below its rounding.
  const std::span<const float> span(x, 32);
  float scale;
  if (values.high == 127) {
    float peak = 0;
    for (const float v : span) peak = std::max(peak, std::abs(v));
    scale = peak / 127;
  } else {
    scale = fit_symmetric(span, values);
  }
  block.d = half_of(scale);
  const float inv = inverse(f16_to_f32(block.d));
  for (size_t i = 0; i < 32; ++i) block.code[i] = static_cast<uint8_t>(values.nearest(x[i] * inv));
}

void quantize_affine_32(const float* x, int max_code, StoredBlock& block) {
  const Affine fit = fit_affine({x, 32}, max_code, true);
  block.d = half_of(fit.scale);
  block.dm = half_of(fit.low);
  const float inv = inverse(f16_to_f32(block.d)), low = f16_to_f32(block.dm);
  for (size_t i = 0; i < 32; ++i)
    block.code[i] = static_cast<uint8_t>(
        std::nearbyint(std::clamp((x[i] - low) * inv, 0.0f, static_cast<float>(max_code))));
}

// The exponent that covers the largest value (6 in the format, 12 doubled), or one less where saturating
// costs less.
void quantize_mxfp4(const float* x, StoredBlock& block) {
  static constexpr int8_t kSorted[] = {-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12};
  static constexpr uint8_t kCodes[] = {15, 14, 13, 12, 11, 10, 9, 0, 1, 2, 3, 4, 5, 6, 7};
  const Values values = {.table = kSorted};
  float peak = 0;
  for (size_t i = 0; i < 32; ++i) peak = std::max(peak, std::abs(x[i]));
  if (peak == 0) return;
  const int covering = std::ilogb(peak) - 2 + 128;  // 2^(e-128) * 8 <= peak * 2
  double best_error = std::numeric_limits<double>::infinity();
  for (int e = covering - 1; e <= covering + 1; ++e) {
    if (e < 2 || e > 254) continue;
    const float scale = e8m0_half_to_f32(static_cast<uint8_t>(e));
    StoredBlock trial;
    trial.d = static_cast<uint16_t>(e);
    double error = 0;
    for (size_t i = 0; i < 32; ++i) {
      const int index = values.nearest(x[i] / scale);
      trial.code[i] = kCodes[index];
      const double rest = x[i] - double{scale} * kSorted[index];
      error += rest * rest;
    }
    if (error < best_error) best_error = error, block = trial;
  }
}

// Sub-blocks of a symmetric fit whose integer scales lie in scale_low..-scale_low - 1.
void quantize_symmetric_256(const float* x, size_t sub, const Values& values, int scale_low,
                            StoredBlock& block) {
  const size_t n = 256 / sub;
  float scales[kMaxSubBlocks];
  float peak = 0;
  for (size_t j = 0; j < n; ++j) {
    scales[j] = fit_symmetric({x + j * sub, sub}, values);
    if (std::abs(scales[j]) > std::abs(peak)) peak = scales[j];
  }
  block.d = half_of(peak / static_cast<float>(scale_low));
  const float d = f16_to_f32(block.d), inv = inverse(d);
  for (size_t j = 0; j < n; ++j) {
    const float rounded = std::nearbyint(scales[j] * inv);
    block.sc[j] = static_cast<int16_t>(
        std::clamp(rounded, static_cast<float>(scale_low), static_cast<float>(-scale_low - 1)));
    const float inv_scale = inverse(d * static_cast<float>(block.sc[j]));
    for (size_t i = j * sub; i < (j + 1) * sub; ++i)
      block.code[i] = static_cast<uint8_t>(values.nearest(x[i] * inv_scale));
  }
}

void quantize_affine_256(const float* x, size_t sub, int max_code, int max_scale, StoredBlock& block) {
  const size_t n = 256 / sub;
  Affine fits[kMaxSubBlocks];
  float peak_scale = 0, peak_min = 0;
  for (size_t j = 0; j < n; ++j) {
    fits[j] = fit_affine({x + j * sub, sub}, max_code, false);
    peak_scale = std::max(peak_scale, fits[j].scale);
    peak_min = std::max(peak_min, -fits[j].low);
  }
  const auto top = static_cast<float>(max_scale);
  block.d = half_of(peak_scale / top);
  block.dm = half_of(peak_min / top);
  const float d = f16_to_f32(block.d), dmin = f16_to_f32(block.dm);
  for (size_t j = 0; j < n; ++j) {
    block.sc[j] = static_cast<int16_t>(std::nearbyint(std::clamp(fits[j].scale * inverse(d), 0.0f, top)));
    block.m[j] = static_cast<uint8_t>(std::nearbyint(std::clamp(-fits[j].low * inverse(dmin), 0.0f, top)));
    const float low = dmin * static_cast<float>(block.m[j]);
    const float inv = inverse(d * static_cast<float>(block.sc[j]));
    for (size_t i = j * sub; i < (j + 1) * sub; ++i)
      block.code[i] = static_cast<uint8_t>(
          std::nearbyint(std::clamp((x[i] + low) * inv, 0.0f, static_cast<float>(max_code))));
  }
}

StoredBlock quantize_block(TensorType type, const float* x) {
  StoredBlock block;
  switch (type) {
    case kQ4_0:
      quantize_symmetric_32(x, {.low = -8, .high = 7}, block);
      break;
    case kQ5_0:
      quantize_symmetric_32(x, {.low = -16, .high = 15}, block);
      break;
    case kQ8_0:
      quantize_symmetric_32(x, {.low = -128, .high = 127}, block);
      break;
    case kIQ4_NL:
      quantize_symmetric_32(x, {.table = kIq4Values}, block);
      break;
    case kQ4_1:
      quantize_affine_32(x, 15, block);
      break;
    case kQ5_1:
      quantize_affine_32(x, 31, block);
      break;
    case kMXFP4:
      quantize_mxfp4(x, block);
      break;
    case kQ2_K:
      quantize_affine_256(x, 16, 3, 15, block);
      break;
    case kQ4_K:
      quantize_affine_256(x, 32, 15, 63, block);
      break;
    case kQ5_K:
      quantize_affine_256(x, 32, 31, 63, block);
      break;
    case kQ3_K:
      quantize_symmetric_256(x, 16, {.low = -4, .high = 3}, -32, block);
      break;
    case kQ6_K:
      quantize_symmetric_256(x, 16, {.low = -32, .high = 31}, -128, block);
      break;
    case kIQ4_XS:
      quantize_symmetric_256(x, 32, {.table = kIq4Values}, -32, block);
      break;
    default:
      SW_ASSERT(!"a quantized type");
  }
  return block;
}

uint16_t bf16_of(float x) {
  const uint32_t bits = bits_of(x);
  if (is_nan(x)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

void quantize_weights(TensorType type, const float* x, size_t n, std::byte* out) {
  const TensorTypeInfo& entry = info(type);
  SW_ASSERT(n % entry.block_length == 0);
  for (size_t b = 0; b < n / entry.block_length; ++b, out += entry.block_bytes) {
    uint16_t half = 0;
    switch (type) {
      case kF32:
        std::memcpy(out, x + b, sizeof(float));
        continue;
      case kF16:
        half = f32_to_f16(x[b]);
        break;
      case kBF16:
        half = bf16_of(x[b]);
        break;
      default:
        pack_block(type, quantize_block(type, x + b * entry.block_length), out);
        continue;
    }
    std::memcpy(out, &half, sizeof half);
  }
}

}  // namespace spillway::numerics
