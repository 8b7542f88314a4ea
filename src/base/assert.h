// Assertions for bugs, kept in release builds: a wrong answer costs more than a compare.
#pragma once

namespace spillway {
// Prints the place and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace spillway

#define SW_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::spillway::assertion_failed(#condition, __FILE__, __LINE__))
