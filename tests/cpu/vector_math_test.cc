// The elementary functions over 16 lanes, bit for bit against numerics/elementary.h: over bit patterns of all
// signs and exponents (a stride of 1021, a prime, so that the low bits vary: 4.2 million values), and around
// every bound.
#if defined(__x86_64__)
#include <cmath>

#include "numerics/elementary.h"
#include "same_bits.h"
#include "vector_math_probe.h"

namespace spillway::cpu {
namespace {

class VectorMathTest : public testing::TestWithParam<InstructionSet> {
 protected:
  const VectorMath& math = GetParam() == InstructionSet::kAvx512 ? kAvx512Math : kAvx2Math;

  void compare(const std::vector<float>& x) {
    using Scalar = float (*)(float);
    using Vector = void (*)(const float*, float*, size_t);
    const std::tuple<const char*, Scalar, Vector> functions[] = {
        {"flush", numerics::flush, math.flush},       {"reciprocal", numerics::reciprocal, math.reciprocal},
        {"rsqrt", numerics::rsqrt, math.rsqrt},       {"exp", numerics::exp, math.exp},
        {"sigmoid", numerics::sigmoid, math.sigmoid}, {"silu", numerics::silu, math.silu},
    };
    for (const auto& [name, scalar, vector] : functions) {
      SCOPED_TRACE(name);
      std::vector<float> actual(x.size());
      vector(x.data(), actual.data(), x.size());
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_TRUE(same(scalar(x[i]), actual[i]))
            << fmt::format("of {:a} ({:08x})", x[i], numerics::bits_of(x[i]));
    }
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VectorMathTest);

TEST_P(VectorMathTest, all_exponents) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 1021) {
    x.push_back(numerics::float_of(static_cast<uint32_t>(bits)));
    if (x.size() < 1 << 14) continue;
    compare(x);
    if (HasFatalFailure()) return;
    x.clear();
  }
}

TEST_P(VectorMathTest, around_the_bounds) {
  const float bounds[] = {0.0f,
                          numerics::kExpLow,
                          numerics::kExpHigh,
                          numerics::kRsqrtLow,
                          numerics::kRsqrtHigh,
                          0x1p-40f,
                          1.0f,
                          0x1p-126f,
                          std::numeric_limits<float>::infinity()};
  std::vector<float> x;
  for (const float bound : bounds)
    for (const float sign : {1.0f, -1.0f})
      for (int step = -256; step < 256; ++step)
        x.push_back(numerics::float_of(numerics::bits_of(sign * bound) + static_cast<uint32_t>(step)));
  // Where exp rounds its exponent: odd multiples of ln(2)/2.
  for (int k = -121; k < 256; k += 2)
    for (int step = -8; step < 8; ++step)
      x.push_back(numerics::float_of(numerics::bits_of(static_cast<float>(k * M_LN2 / 2)) +
                                     static_cast<uint32_t>(step)));
  x.resize(x.size() / 16 * 16);
  compare(x);
}

SW_FOR_VECTOR_SETS(VectorMathTest);

}  // namespace
}  // namespace spillway::cpu

#endif
