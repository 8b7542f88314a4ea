// Norms, softmax, rope, gates, adds and the quantizer of each instruction set, bit for bit against the scalar
// table.
#include "same_bits.h"

namespace spillway::cpu {
namespace {

using Elementwise = VectorKernels;

// Sizes with every remainder of 16, and some that models use.
std::vector<uint32_t> sizes() {
  std::vector<uint32_t> n;
  for (uint32_t i = 1; i <= 70; ++i) n.push_back(i);
  for (const uint32_t i : {127u, 128u, 255u, 1023u, 1024u, 2880u}) n.push_back(i);
  return n;
}

constexpr float kGuard = 12345.0f;

// Runs both tables' `call(kernels, y)` on copies of y with guard values behind and compares all of it.
template <class Call>
void compare(const Kernels& scalar, const Kernels& fast, std::vector<float> y, Call call) {
  y.resize(y.size() + 20, kGuard);
  std::vector<float> expected = y;
  call(scalar, expected.data());
  call(fast, y.data());
  ASSERT_TRUE(same_bits(expected, y));
}

TEST_P(Elementwise, rms_norm) {
  Values values(1);
  for (const uint32_t n : sizes())
    for (const Kind kind : kAllKinds) {
      SCOPED_TRACE(fmt::format("n {} kind {}", n, int(kind)));
      const auto x = values.some(n, kind), w = values.some(n, kind);
      for (const float* weight : {w.data(), static_cast<const float*>(nullptr)}) {
        compare(scalar, fast, std::vector<float>(n),
                [&](const Kernels& k, float* y) { k.rms_norm(x.data(), weight, n, 1e-6f, y); });
        compare(scalar, fast, x, [&](const Kernels& k, float* y) { k.rms_norm(y, weight, n, 1e-5f, y); });
      }
    }
}

TEST_P(Elementwise, softmax) {
  Values values(2);
  for (const uint32_t n : sizes())
    for (const Kind kind : kAllKinds) {
      SCOPED_TRACE(fmt::format("n {} kind {}", n, int(kind)));
      compare(scalar, fast, values.some(n, kind), [&](const Kernels& k, float* y) { k.softmax(y, n); });
    }
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& x :
       {std::vector<float>(20, -inf), std::vector<float>(20, nan), std::vector<float>{inf, 1, 2},
        std::vector<float>{-inf, 1, 2}, std::vector<float>{nan, 1, 2},
        std::vector<float>{-50, 0, -41.5f, -41.49f}})
    compare(scalar, fast, x,
            [&](const Kernels& k, float* y) { k.softmax(y, static_cast<uint32_t>(x.size())); });
}

TEST_P(Elementwise, gates_and_adds) {
  Values values(3);
  for (const uint32_t n : sizes())
    for (const Kind kind : kAllKinds) {
      SCOPED_TRACE(fmt::format("n {} kind {}", n, int(kind)));
      const auto x = values.some(n, kind), y = values.some(n, kind);
      compare(scalar, fast, y, [&](const Kernels& k, float* to) { k.silu_mul(to, x.data(), n); });
      compare(scalar, fast, y, [&](const Kernels& k, float* to) { k.add(to, x.data(), n); });
      const float scale = values.one(kind);
      compare(scalar, fast, y, [&](const Kernels& k, float* to) { k.add_scaled(to, x.data(), scale, n); });
    }
}

TEST_P(Elementwise, rope) {
  Values values(4);
  for (const uint32_t head : {2u, 6u, 16u, 30u, 32u, 34u, 64u, 80u, 96u, 128u, 192u})
    for (const uint32_t turned : {2u, 14u, head / 4 * 2, head}) {
      if (turned > head) continue;
      for (const Kind kind : kAllKinds) {
        SCOPED_TRACE(fmt::format("head {} turned {} kind {}", head, turned, int(kind)));
        const auto x = values.some(size_t{head} * 3, kind);
        // Tables without a value behind: a read past the end is a fault under the address sanitizer.
        const auto c = values.some(turned / 2, Kind::kOrdinary), s = values.some(turned / 2, Kind::kOrdinary);
        compare(scalar, fast, x,
                [&](const Kernels& k, float* y) { k.rope_neox(y, 3, head, turned, c.data(), s.data()); });
        compare(scalar, fast, x,
                [&](const Kernels& k, float* y) { k.rope_normal(y, 3, head, turned, c.data(), s.data()); });
      }
    }
}

struct Quantized {
  std::vector<float> f32, d;
  std::vector<int8_t> q;
  std::vector<int16_t> sums;
};

Quantized quantize(const Kernels& k, ActivationKind kind, const std::vector<float>& x, uint32_t tokens) {
  Activations a;
  a.kind = kind;
  a.tokens = tokens;
  a.cols = static_cast<uint32_t>(x.size() / tokens);
  Quantized out = {std::vector<float>(x.size() + 16, kGuard), std::vector<float>(x.size() + 16, kGuard),
                   std::vector<int8_t>(x.size() + 16, 99), std::vector<int16_t>(x.size() + 16, 9999)};
  a.f32 = out.f32.data();
  a.d = out.d.data();
  a.q = out.q.data();
  a.sums = out.sums.data();
  for (uint32_t t = 0; t < tokens; ++t) k.quantize(x.data() + size_t{t} * a.cols, a, t);
  return out;
}

void compare_quantized(const Kernels& scalar, const Kernels& fast, ActivationKind kind,
                       const std::vector<float>& x, uint32_t tokens) {
  const Quantized expected = quantize(scalar, kind, x, tokens), actual = quantize(fast, kind, x, tokens);
  ASSERT_TRUE(same_bits(expected.f32, actual.f32));
  ASSERT_TRUE(same_bits(expected.d, actual.d));
  ASSERT_EQ(expected.q, actual.q);
  ASSERT_EQ(expected.sums, actual.sums);
}

TEST_P(Elementwise, quantize) {
  Values values(5);
  for (int round = 0; round < 200; ++round)
    for (const Kind kind : kAllKinds) {
      SCOPED_TRACE(fmt::format("round {} kind {}", round, int(kind)));
      compare_quantized(scalar, fast, ActivationKind::kF32, values.some(3 * (1 + values.below(70)), kind), 3);
      compare_quantized(scalar, fast, ActivationKind::kQ32, values.some(2 * 32 * (1 + values.below(9)), kind),
                        2);
      compare_quantized(scalar, fast, ActivationKind::kQ256,
                        values.some(2 * 256 * (1 + values.below(3)), kind), 2);
    }
}

// The quantizer's thresholds: the largest value around 127 * 2^-40, 2^-40 and 2^100, and values halfway
// between steps.
TEST_P(Elementwise, quantize_at_the_edges) {
  for (const float largest : {0.0f, 0x1p-41f, 0x1p-40f, 0x1.fcp-34f, 0x1.fbfffep-34f, 0x1.fc0002p-34f, 127.0f,
                              0x1.fffffep99f, 0x1p100f, -0x1p100f, 0x1.fffffep127f}) {
    std::vector<float> x(512);
    for (size_t i = 0; i < x.size(); ++i) x[i] = largest * (static_cast<float>(i % 255) - 127.0f) / 254.0f;
    x[13] = x[500] = largest;
    SCOPED_TRACE(fmt::format("{:a}", largest));
    compare_quantized(scalar, fast, ActivationKind::kQ32, x, 1);
    compare_quantized(scalar, fast, ActivationKind::kQ256, x, 1);
  }
}

SW_FOR_VECTOR_SETS(Elementwise);

}  // namespace
}  // namespace spillway::cpu
