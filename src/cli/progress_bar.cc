#include "cli/progress_bar.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/common.h"
#include "cli/terminal.h"

namespace spillway::cli {
namespace {

constexpr auto kFirstDraw = std::chrono::milliseconds(300);
constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr int kWidth = 30;

}  // namespace

ProgressBar::ProgressBar(std::string title, Unit unit)
    : title_(std::move(title)), unit_(unit), enabled_(stderr_is_terminal()) {}

void ProgressBar::update(uint64_t done, uint64_t total) {
  const auto now = Clock::now();
  if (!enabled_ || total == 0 || now - start_ < kFirstDraw || (drawn_ && now - last_ < kRedraw)) return;
  last_ = now;
  drawn_ = true;
  const double part = static_cast<double>(done) / static_cast<double>(total);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double left = part > 0 ? seconds / part - seconds : 0;
  const auto text = [&](uint64_t n) {
    return unit_ == Unit::kBytes ? format_bytes(n) : fmt::format("{}", n);
  };
  const int full = static_cast<int>(part * kWidth);
  const std::string counted = unit_ == Unit::kPart ? "" : fmt::format("  {} of {}", text(done), text(total));
  fmt::print(stderr, "\r\x1b[K{} [{:=>{}}{:>{}}] {:3.0f} %{}, {:.0f} s left", title_, "", full, "",
             kWidth - full, 100 * part, counted, left);
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
  drawn_ = false;
}

}  // namespace spillway::cli
