// Real-number arithmetic of this room. The simulator and the engine must agree bit for bit, on every machine
// and compiler, so only double additions, subtractions, multiplications, divisions and comparisons are used:
// IEEE 754 rounds each of them correctly and the build contracts none (-ffp-contract=off). Nothing is taken
// from a mathematical library, whose exp and pow differ from one to the next.
#pragma once

#include <cstdint>

namespace spillway {
namespace experts {

// 2^x for x in [0, 1]: the series of e^(x ln 2) to the 17th term (error below 2^-52), by Horner's rule.
inline double exp2_fraction(double x) {
  constexpr double kLn2 = 0.693147180559945309417232121458;
  const double y = x * kLn2;
  double sum = 1.0;
  for (int n = 17; n >= 1; --n) sum = 1.0 + sum * y / n;
  return sum;
}

// 2^-n, exact down to the least normal number and 0 below.
inline double power_of_half(uint64_t n) {
  double value = 1.0;
  if (n > 1022) return 0.0;
  for (; n >= 32; n -= 32) value *= 0x1p-32;
  for (; n > 0; --n) value *= 0.5;
  return value;
}

// The nearest integer, halves up. Requires: 0 <= x < 2^63.
inline uint64_t round_up_half(double x) {
  const auto whole = static_cast<uint64_t>(x);
  return whole + (x - static_cast<double>(whole) >= 0.5 ? 1 : 0);
}

// The largest i with 2^i <= n. Requires: n > 0.
inline uint32_t floor_log2(uint64_t n) { return 63u - static_cast<uint32_t>(__builtin_clzll(n)); }

}  // namespace experts
}  // namespace spillway
