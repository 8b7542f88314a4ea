#include "report/svg_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/words.h"

namespace spillway::report {
namespace {

// The least of 1, 2, 5, 10, 20, ... times a power of ten with which `span` has at most `most` steps.
double round_step(double span, uint32_t most) {
  const double least = span / most;
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

// All ticks of an axis with the decimals that its step needs.
std::string tick_text(double value, double step) {
  if (std::fabs(value) < step * 1e-6) return "0";
  if (std::fabs(value) >= 1e9 || step < 1e-4) return fmt::format("{:.3g}", value);
  if (std::fabs(value) >= 1000 && step >= 1) return number_text(value);
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 4);
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

AxisScale::AxisScale(const Axis& axis, const std::vector<double>& values, uint32_t most_ticks)
    : logarithmic_(axis.logarithmic) {
  double low = INFINITY, high = -INFINITY;
  const auto see = [&](double value) {
    if (draws(value)) low = std::min(low, value), high = std::max(high, value);
  };
  for (const double value : values) see(value);
  empty_ = low > high;
  if (empty_) return;
  if (axis.high) see(*axis.high);
  for (const auto& [value, text] : axis.named) see(value);
  if (logarithmic_) {
    logarithmic(low, high, most_ticks);
  } else {
    if (axis.from_zero) see(0);
    linear(low, high, most_ticks);
  }
  // Named ticks stand beyond the numbers; those that are further out, or too near to be told apart, give way.
  for (const auto& [value, text] : axis.named)
    std::erase_if(ticks_, [&](const Tick& tick) { return at(tick.value) > at(value) - 0.4 / most_ticks; });
  for (const auto& [value, text] : axis.named) ticks_.push_back({value, text});
}

bool AxisScale::draws(double value) const {
  return std::isfinite(value) && std::fabs(value) <= kMostDrawn && (!logarithmic_ || value >= 1 / kMostDrawn);
}

double AxisScale::at(double value) const {
  if (logarithmic_) return std::log(value / low_) / std::log(high_ / low_);
  return (value - low_) / (high_ - low_);
}

void AxisScale::linear(double low, double high, uint32_t most) {
  // One value: some room around it.
  if (high - low <= 1e-9 * std::max(std::fabs(low), std::fabs(high))) {
    const double room = low == 0 ? 1 : std::fabs(low) / 2;
    low -= low >= 0 && low < room ? low : room;
    high += room;
  }
  const double step = round_step(high - low, most);
  low_ = std::floor(low / step + 1e-9) * step;
  high_ = std::ceil(high / step - 1e-9) * step;
  const auto n = static_cast<uint32_t>(std::lround((high_ - low_) / step));
  for (uint32_t i = 0; i <= n; ++i) {
    const double value = low_ + i * step;
    ticks_.push_back({value, tick_text(value, step)});
  }
}

void AxisScale::logarithmic(double low, double high, uint32_t most) {
  const auto power = [](double exponent) { return std::pow(10.0, exponent); };
  // Ends at 1, 2 or 5 times a power of ten; every one of them is a tick, or only powers where these are many.
  const double first = std::floor(std::log10(low) + 1e-9), last = std::ceil(std::log10(high) - 1e-9);
  std::vector<double> fine;
  for (double e = first; e <= std::max(last, first + 1); ++e)
    for (const double factor : {1.0, 2.0, 5.0}) fine.push_back(factor * power(e));
  const auto after_low = std::ranges::find_if(fine, [&](double v) { return v > low * (1 + 1e-9); });
  const auto from = after_low == fine.begin() ? after_low : after_low - 1;
  auto to = std::ranges::find_if(fine, [&](double v) { return v >= high * (1 - 1e-9); });
  if (to == from) ++to;
  low_ = *from, high_ = *to;
  const auto n_fine = static_cast<uint32_t>(to - from) + 1;
  const auto every = static_cast<uint32_t>(std::ceil(std::max(1.0, (last - first) / most)));
  for (auto it = from; it <= to; ++it) {
    const double exponent = std::round(std::log10(*it));
    const bool is_power = std::fabs(*it / power(exponent) - 1) < 1e-6;
    if (n_fine > most + 2 && (!is_power || static_cast<int64_t>(exponent - first) % every != 0)) continue;
    ticks_.push_back({*it, *it >= 1e-4 && *it < 1e6 ? fmt::format("{:g}", *it) : fmt::format("{:.0e}", *it)});
  }
}

}  // namespace spillway::report
