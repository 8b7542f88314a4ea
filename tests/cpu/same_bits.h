// What the tests of the vector kernels share: the instruction sets to test, values that hurt, and the
// comparison.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/kernels.h"
#include "numerics/float_bits.h"

namespace spillway::cpu {

// The sets above scalar that this processor has.
inline std::vector<InstructionSet> vector_sets() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : {InstructionSet::kAvx2, InstructionSet::kAvx512})
    if (set <= best_instruction_set()) sets.push_back(set);
  return sets;
}

class VectorKernels : public testing::TestWithParam<InstructionSet> {
 protected:
  const Kernels& fast = kernels(GetParam());
  const Kernels& scalar = kernels(InstructionSet::kScalar);
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VectorKernels);

inline bool same(float a, float b) {
  return numerics::bits_of(a) == numerics::bits_of(b) || (numerics::is_nan(a) && numerics::is_nan(b));
}

inline testing::AssertionResult same_bits(std::span<const float> expected, std::span<const float> actual) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (!same(expected[i], actual[i]))
      return testing::AssertionFailure()
             << "value " << i << " of " << expected.size() << ": "
             << fmt::format("{:a} ({:08x}), need {:a} ({:08x})", actual[i], numerics::bits_of(actual[i]),
                            expected[i], numerics::bits_of(expected[i]));
  return testing::AssertionSuccess();
}

enum class Kind {
  kOrdinary,  // normally distributed, some exact zeros
  kWide,      // any exponent from 2^-60 to 2^60, both signs, zeros, denormals
  kWild,      // any bit pattern, with infinities and NaNs
};
inline constexpr Kind kAllKinds[] = {Kind::kOrdinary, Kind::kWide, Kind::kWild};

class Values {
 public:
  explicit Values(uint64_t seed) : random_(seed) {}

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  float one(Kind kind) {
    const auto bits = static_cast<uint32_t>(random_());
    if (kind == Kind::kOrdinary) return below(16) == 0 ? 0.0f : normal_(random_);
    if (kind == Kind::kWide) {
      if (below(16) == 0) return numerics::float_of(bits & 0x807fffffu & (below(2) ? ~0u : kSign));
      return numerics::float_of((bits & 0x807fffffu) | ((127u - 60 + below(121)) << 23));
    }
    const float special[] = {std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN(),
                             0.0f,
                             -0.0f,
                             0x1p-40f,
                             0x1.fffffep-41f,
                             0x1p100f};
    if (below(16) == 0) return special[below(8)];
    return below(2) ? numerics::float_of(bits) : normal_(random_);
  }

  std::vector<float> some(size_t n, Kind kind) {
    std::vector<float> v(n);
    for (float& x : v) x = one(kind);
    return v;
  }

 private:
  static constexpr uint32_t kSign = 0x80000000u;
  std::mt19937_64 random_;
  std::normal_distribution<float> normal_;
};

inline std::string set_name(const testing::TestParamInfo<InstructionSet>& info) {
  return kernels(info.param).name;
}

}  // namespace spillway::cpu

#define SW_FOR_VECTOR_SETS(suite)                                                          \
  INSTANTIATE_TEST_SUITE_P(Sets, suite, testing::ValuesIn(::spillway::cpu::vector_sets()), \
                           ::spillway::cpu::set_name)
