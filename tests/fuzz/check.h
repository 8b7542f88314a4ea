// What must hold in a fuzz target: else the input is a finding, said in a line that the canaries' tests look
// for.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

inline void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: caught: %s\n", what);
  std::abort();
}

// For targets whose planted fault is a bound that is off by one.
#ifdef SPILLWAY_FUZZ_CANARY
inline constexpr uint32_t kOff = 1;
#else
inline constexpr uint32_t kOff = 0;
#endif
