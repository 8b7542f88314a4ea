// A bar on standard error for what takes longer than a moment; silent where standard error is not a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace spillway::cli {

class ProgressBar {
 public:
  // `unit` of what is counted: bytes are shown as MiB and so on, numbers as they are, and parts of a whole
  // not at all beside the percentage.
  enum class Unit { kBytes, kNumber, kPart };
  explicit ProgressBar(std::string title, Unit unit = Unit::kNumber);
  ~ProgressBar() { clear(); }

  // Draws at most ten times a second, and not within the first moment.
  void update(uint64_t done, uint64_t total);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  const std::string title_;
  const Unit unit_;
  const bool enabled_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  bool drawn_ = false;
};

}  // namespace spillway::cli
