#include "cli/common.h"

#include <cstdio>

namespace spillway::cli {

int report(const Error& error) {
  fmt::print(stderr, "spillway: {}\n", error.message);
  return kExitError;
}

void note(const std::string& message) { fmt::print(stderr, "spillway: {}\n", message); }

std::string format_bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes)
                   : fmt::format("{:.{}f} {}", value, value < 10 ? 2 : 1, kUnits[unit]);
}

bool flush_stdout() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

}  // namespace spillway::cli
