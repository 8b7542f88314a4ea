// Loops over compile-time indices: every index is a constant, so arrays of vectors stay in registers.
//
// Like all headers of the product kernels, everything lies in an unnamed namespace: no function compiled for
// a wide instruction set may be the linker's pick for code that runs on every processor.
#pragma once

#include <utility>

#define SW_INLINE inline __attribute__((always_inline))
#define SW_FLAT __attribute__((always_inline))  // the same for a lambda

namespace spillway::cpu {
namespace {

template <int kI>
struct Index {
  static constexpr int value = kI;
  constexpr operator int() const { return kI; }
};

template <class F, int... kI>
SW_INLINE void unroll_over(F&& f, std::integer_sequence<int, kI...>) {
  (f(Index<kI>{}), ...);
}

// f(Index<0>{}), f(Index<1>{}), ... f(Index<kN-1>{}).
template <int kN, class F>
SW_INLINE void unroll(F&& f) {
  unroll_over(static_cast<F&&>(f), std::make_integer_sequence<int, kN>{});
}

}  // namespace
}  // namespace spillway::cpu
