#include "numerics/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace spillway::numerics {
namespace {

constexpr uint32_t kKeyLength = 24, kValueLength = 20, kKeys = 400;

struct Data {
  std::vector<float> q, keys, values;
  Data() : q(kKeyLength), keys(kKeys * kKeyLength), values(kKeys * kValueLength) {
    std::mt19937 random(6);
    std::normal_distribution<float> normal;
    for (auto* list : {&q, &keys, &values})
      for (float& x : *list) x = normal(random);
  }
  float key(uint32_t t, uint32_t d) const { return keys[t * kKeyLength + d]; }
  float value(uint32_t t, uint32_t d) const { return values[t * kValueLength + d]; }

  std::vector<float> run(AttentionShape shape) const {
    shape.key_length = kKeyLength, shape.value_length = kValueLength;
    std::vector<float> out(kValueLength, 99.0f), scratch(attention_scratch(kKeyLength, kValueLength));
    attention(
        shape, q.data(), [&](uint32_t t, uint32_t d) { return key(t, d); },
        [&](uint32_t t, uint32_t d) { return value(t, d); }, out.data(), scratch.data());
    return out;
  }
};

struct Range {
  uint32_t first, end;
};
constexpr Range kRanges[] = {{0, 1},   {0, 127}, {0, 128},   {0, 129},   {0, 300},   {0, 400},
                             {1, 128}, {5, 6},   {127, 129}, {128, 256}, {130, 300}, {255, 400}};

TEST(Attention, AgainstDouble) {
  const Data data;
  for (const Range range : kRanges) {
    for (const bool with_sink : {false, true}) {
      const float sink = 1.5f;
      AttentionShape shape{.first_key = range.first, .end_key = range.end, .scale = 0.2f};
      if (with_sink) shape.sink = &sink;
      const std::vector<float> out = data.run(shape);
      double l = with_sink ? std::exp(double{sink}) : 0;
      std::vector<double> wanted(kValueLength);
      for (uint32_t t = range.first; t < range.end; ++t) {
        double score = 0;
        for (uint32_t d = 0; d < kKeyLength; ++d) score += double{data.q[d]} * 0.2f * data.key(t, d);
        l += std::exp(score);
        for (uint32_t d = 0; d < kValueLength; ++d) wanted[d] += std::exp(score) * data.value(t, d);
      }
      for (uint32_t d = 0; d < kValueLength; ++d)
        ASSERT_NEAR(out[d], wanted[d] / l, 2e-6) << range.first << ".." << range.end;
    }
  }
}

// The page's rule written a second time, chunk by chunk over all positions from 0, with a mask in place of a
// range.
std::vector<float> second_reading(const Data& data, Range range, float scale, const float* sink) {
  std::vector<float> o;
  float m = 0, l = 0;
  for (uint32_t chunk = 0; chunk * 128 < range.end; ++chunk) {
    float score[128], p[128];
    bool masked[128];
    float mc = -INFINITY;
    bool has_key = false;
    for (uint32_t i = 0; i < 128; ++i) {
      const uint32_t t = chunk * 128 + i;
      masked[i] = t < range.first || t >= range.end;
      if (masked[i]) continue;
      has_key = true;
      score[i] = 0;
      for (uint32_t d = 0; d < kKeyLength; ++d) score[i] += flush(data.q[d] * scale) * data.key(t, d);
      mc = std::max(mc, score[i]);
    }
    if (!has_key) continue;
    float lane[16] = {};
    for (uint32_t i = 0; i < 128; ++i) {
      if (masked[i]) continue;
      p[i] = exp(score[i] - mc);
      lane[i % 16] += p[i];
    }
    float a8[8], a4[4];
    for (int k = 0; k < 8; ++k) a8[k] = lane[k] + lane[k + 8];
    for (int k = 0; k < 4; ++k) a4[k] = a8[k] + a8[k + 4];
    const float lc = (a4[0] + a4[2]) + (a4[1] + a4[3]);
    std::vector<float> oc(kValueLength);
    for (uint32_t d = 0; d < kValueLength; ++d) {
      for (uint32_t i = 0; i < 128; ++i)
        if (!masked[i]) oc[d] += p[i] * data.value(chunk * 128 + i, d);
      oc[d] = flush(oc[d]);
    }
    if (o.empty()) {
      o = oc, m = mc, l = lc;
      continue;
    }
    const float top = std::max(m, mc);
    const float a = exp(m - top), b = exp(mc - top);
    l = l * a + lc * b;
    for (uint32_t d = 0; d < kValueLength; ++d) o[d] = flush(o[d] * a + oc[d] * b);
    m = top;
  }
  if (o.empty()) return std::vector<float>(kValueLength);
  if (sink != nullptr) {
    const float top = std::max(m, *sink);
    const float a = exp(m - top);
    l = l * a + exp(*sink - top);
    for (float& x : o) x = flush(x * a);
  }
  for (float& x : o) x = x * reciprocal(l);
  return o;
}

TEST(Attention, EqualsASecondReadingOfTheRule) {
  const Data data;
  const float sink = 0.7f;
  for (const Range range : kRanges) {
    for (const float* s : {static_cast<const float*>(nullptr), &sink}) {
      const std::vector<float> out =
          data.run({.first_key = range.first, .end_key = range.end, .scale = 0.3f, .sink = s});
      const std::vector<float> wanted = second_reading(data, range, 0.3f, s);
      for (uint32_t d = 0; d < kValueLength; ++d)
        ASSERT_EQ(bits_of(out[d]), bits_of(wanted[d])) << range.first << ".." << range.end << " value " << d;
    }
  }
}

TEST(Attention, NoKeys) {
  const Data data;
  for (const float x : data.run({.first_key = 7, .end_key = 7})) EXPECT_EQ(bits_of(x), 0u);
}

// One NaN in the query makes the result NaN; an infinite value does where its key takes part only.
TEST(Attention, NanAndInfinity) {
  Data data;
  data.values[200 * kValueLength + 3] = INFINITY;
  data.keys[10 * kKeyLength] = 0;
  std::vector<float> out = data.run({.first_key = 0, .end_key = 200, .scale = 0.2f});
  for (const float x : out) EXPECT_TRUE(std::isfinite(x));
  out = data.run({.first_key = 0, .end_key = 201, .scale = 0.2f});
  EXPECT_FALSE(std::isfinite(out[3]));
  EXPECT_TRUE(std::isfinite(out[4]));
  data.q[0] = NAN;
  for (const float x : data.run({.first_key = 0, .end_key = 200, .scale = 0.2f})) EXPECT_TRUE(is_nan(x));
}

}  // namespace
}  // namespace spillway::numerics
