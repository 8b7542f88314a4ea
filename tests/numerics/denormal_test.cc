// The promise that a processor which flushes denormals gives the same bits, tried on one: every operation
// runs twice, with the flush modes off and on, on inputs whose exponents cover everything that float32 has.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "all_types.h"
#include "numerics/activation.h"
#include "numerics/attention.h"
#include "numerics/float_bits.h"
#include "numerics/formats.h"
#include "numerics/glu.h"
#include "numerics/norm.h"
#include "numerics/product.h"
#include "numerics/rope.h"
#include "numerics/router.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace spillway::numerics {
namespace {

constexpr unsigned kFlushToZeroAndDenormalsAreZero = 0x8040;

// Floats with exponents low..high (biased; 0 is denormal), random signs and fractions, some exact zeros.
std::vector<float> spread(size_t n, uint32_t low, uint32_t high, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> x(n);
  for (float& v : x) {
    const uint32_t exponent = low + random() % (high - low + 1);
    v = random() % 16 == 0 ? 0.0f : float_of((random() & 0x807fffffu) | exponent << 23);
  }
  return x;
}

// Runs `make` in both modes and compares the bits of what it returns.
void same_in_both_modes(const std::string& name, const std::function<std::vector<float>()>& make) {
  const unsigned mode = _mm_getcsr();
  const std::vector<float> kept = make();
  _mm_setcsr(mode | kFlushToZeroAndDenormalsAreZero);
  const std::vector<float> flushed = make();
  _mm_setcsr(mode);
  ASSERT_EQ(kept.size(), flushed.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    if (is_nan(kept[i]) && is_nan(flushed[i])) continue;
    ASSERT_EQ(bits_of(kept[i]), bits_of(flushed[i])) << name << " value " << i;
    const uint32_t magnitude = bits_of(kept[i]) & kMagnitudeMask;
    ASSERT_TRUE(magnitude == 0 || magnitude >= 0x00800000u) << name << " value " << i << " is denormal";
  }
}

struct Spread {
  uint32_t low, high;
};
constexpr Spread kSpreads[] = {{0, 254}, {0, 90}, {60, 100}, {80, 95}, {100, 140}};

// The test itself can fail: a bare product of small numbers differs.
TEST(Denormals, CanaryDiffers) {
  const unsigned mode = _mm_getcsr();
  volatile float a = 0x1p-70f;
  const float kept = a * a;
  _mm_setcsr(mode | kFlushToZeroAndDenormalsAreZero);
  const float flushed = a * a;
  _mm_setcsr(mode);
  EXPECT_NE(kept, 0.0f);
  EXPECT_EQ(bits_of(flushed), 0u);
}

TEST(Denormals, Products) {
  std::mt19937 random(9);
  for (const TensorType type : kAllTypes) {
    const FormatTraits traits = format_traits(type);
    for (const Spread s : kSpreads) {
      const size_t n = 1024;
      std::vector<std::byte> row(row_bytes(type, n));
      for (std::byte& b : row) b = static_cast<std::byte>(random());
      const std::vector<float> x = spread(n, s.low, std::min(s.high, 200u), random());
      same_in_both_modes(fmt::format("{} {}", info(type).name, s.low), [&] {
        std::vector<float> d(n), f32(n);
        std::vector<int8_t> q(n);
        std::vector<int16_t> sums(n);
        ActivationRow a;
        if (traits.quantized) {
          (traits.block_length == 256 ? quantize_row_256 : quantize_row_32)(x.data(), n, q.data(), d.data(),
                                                                            sums.data());
          a = {nullptr, q.data(), d.data(), sums.data()};
        } else {
          flush_row(x.data(), n, f32.data());
          a.f32 = f32.data();
        }
        std::vector<float> out(n);
        dequantize_row(type, row.data(), n, out.data());
        out.push_back(row_product(type, row.data(), a, n));
        out.insert(out.end(), d.begin(), d.end());
        out.insert(out.end(), q.begin(), q.end());
        return out;
      });
    }
  }
}

TEST(Denormals, VectorOperations) {
  for (const Spread s : kSpreads) {
    const size_t n = 512;
    const std::vector<float> a = spread(n, s.low, s.high, 10), b = spread(n, s.low, s.high, 11);
    same_in_both_modes("rms_norm", [&] {
      std::vector<float> y(n);
      rms_norm(a.data(), b.data(), n, 1e-6f, y.data());
      return y;
    });
    same_in_both_modes("rms_norm without weight or eps", [&] {
      std::vector<float> y(n);
      rms_norm(a.data(), nullptr, n, 0.0f, y.data());
      return y;
    });
    same_in_both_modes("softmax", [&] {
      std::vector<float> y = a;
      softmax(y.data(), n);
      return y;
    });
    same_in_both_modes("silu_mul", [&] {
      std::vector<float> y = a;
      silu_mul(y.data(), b.data(), n);
      return y;
    });
    same_in_both_modes("gelu_mul", [&] {
      std::vector<float> y = a;
      gelu_mul(y.data(), b.data(), n);
      return y;
    });
    same_in_both_modes("clamped_swiglu", [&] {
      std::vector<float> y = a;
      clamped_swiglu_mul(y.data(), b.data(), n, 1.702f, 7.0f);
      return y;
    });
    same_in_both_modes("add_scaled", [&] {
      std::vector<float> y(n);
      for (size_t i = 0; i < n; ++i) add_scaled(&y[i], &a[i], b[i], 1);
      return y;
    });
    same_in_both_modes("rope", [&] {
      std::vector<float> y = a, c(n / 2), d(n / 2);
      flush_row(b.data(), n / 2, c.data());
      flush_row(b.data() + n / 2, n / 2, d.data());
      rope_neox(y.data(), 1, n, n, c.data(), d.data());
      rope_normal(y.data(), 1, n, n, c.data(), d.data());
      return y;
    });
    for (const Gating gating : {Gating::kSoftmax, Gating::kSigmoid}) {
      same_in_both_modes("router", [&] {
        std::vector<float> logits = a;
        std::vector<uint32_t> ids(8);
        std::vector<float> weights(8);
        const RouterParams p = {
            .gating = gating, .n_experts = n, .n_used = 8, .bias = b.data(), .renormalise = true};
        route(p, logits.data(), ids.data(), weights.data());
        weights.insert(weights.end(), ids.begin(), ids.end());
        return weights;
      });
    }
  }
}

TEST(Denormals, Attention) {
  const uint32_t keys = 300, length = 16;
  for (const Spread s : {Spread{0, 126}, Spread{60, 126}, Spread{100, 130}, Spread{80, 132}}) {
    const std::vector<float> q = spread(length, s.low, s.high, 12);
    std::vector<float> k = spread(keys * length, s.low, s.high, 13),
                       v = spread(keys * length, s.low, s.high, 14);
    flush_row(k.data(), k.size(), k.data());
    flush_row(v.data(), v.size(), v.data());
    const float sink = -1.0f;
    same_in_both_modes(fmt::format("attention {}", s.low), [&] {
      std::vector<float> out(length), scratch(attention_scratch(length, length));
      attention(
          {length, length, 0, keys, 0.25f, &sink}, q.data(),
          [&](uint32_t t, uint32_t d) { return k[t * length + d]; },
          [&](uint32_t t, uint32_t d) { return v[t * length + d]; }, out.data(), scratch.data());
      return out;
    });
  }
}

}  // namespace
}  // namespace spillway::numerics
#endif
