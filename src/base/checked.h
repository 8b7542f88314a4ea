// Arithmetic on sizes that come from outside: the result, or nothing where it would wrap.
#pragma once

#include <cstdint>
#include <optional>

namespace spillway {

inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The next multiple of `step` at or above `value`. Requires: step > 0.
inline std::optional<uint64_t> checked_round_up(uint64_t value, uint64_t step) {
  const uint64_t rest = value % step;
  return rest == 0 ? std::optional(value) : checked_add(value, step - rest);
}

constexpr uint64_t ceil_div(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

}  // namespace spillway
