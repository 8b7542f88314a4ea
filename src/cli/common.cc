#include "cli/common.h"

#include <cstdio>

namespace spillway::cli {

int report(const Error& error) {
  note(error.message);
  return error.kind == Error::Kind::kCancelled ? kExitInterrupted : kExitError;
}

void note(const std::string& message) { say("spillway: " + printable(message)); }

// Not fmt::print, which throws where standard error is closed or full.
void say(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7f))
      result += c;
    else
      result += fmt::format("\\x{:02x}", byte);
  }
  return result;
}

std::string format_bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes)
                   : fmt::format("{:.{}f} {}", value, value < 10 ? 2 : 1, kUnits[unit]);
}

int finish_output() {
  return flush_stdout() ? kExitOk : report({Error::Kind::kIo, "standard output cannot be written to"});
}

bool flush_stdout() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

}  // namespace spillway::cli
