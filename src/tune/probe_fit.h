// What the probe makes of repeated times: medians with their spread, and the fits of fixed costs, rates and
// token counts. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace spillway::tune {

// Of repeated measurements of one thing.
struct Sample {
  double median = 0;
  double low = 0, high = 0;  // the middle half of the repetitions
  uint32_t repeats = 0;

  Sample plus(double add) const { return {median + add, low + add, high + add, repeats}; }
  Sample scaled(double factor) const { return {median * factor, low * factor, high * factor, repeats}; }
  // 1 / x, so that a time becomes a rate.
  Sample inverse(double numerator) const {
    return {numerator / median, numerator / high, numerator / low, repeats};
  }
  double relative_spread() const { return median > 0 ? (high - low) / median : 0; }
};

// Requires: one time or more.
Sample sample_of(std::vector<double> times);

struct Line {
  double fixed = 0;     // not negative
  double per_unit = 0;  // not negative
};

// y = fixed + per_unit * x with the least sum of squared relative errors: a time of 20 us that is 1 us off
// counts as much as one of 200 us that is 10 us off, as timing noise is in proportion. Requires: as many y
// as x, all y positive, two different x.
Line fit_line(std::span<const double> x, std::span<const double> y);

// Of y(t) = max(1, t / k), y being the time of t tokens in units of reading the weights once: k with the
// least sum of squared logarithmic errors, within 1/16 and the largest t. Requires: tokens and y positive.
double fit_tokens(std::span<const double> tokens, std::span<const double> y);

// How much slower each of two goes while the other runs. Alone they take cpu_alone and link_alone; started
// together cpu and link. Who is done first ran beside the other all its time; the other ran alone from then
// on. Both results are 1 or more. Requires: all positive.
struct Slowdown {
  double cpu = 1, link = 1;
};
Slowdown slowdown_of(double cpu_alone, double link_alone, double cpu, double link);

}  // namespace spillway::tune
