#include "tune/probe_fit.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace spillway::tune {
namespace {

// Of a sorted series, linear between its points.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

constexpr double kFewestTokens = 1.0 / 16;
constexpr double kStep = 1.01;  // of the search: 1 % is below the noise of any timing

}  // namespace

Sample sample_of(std::vector<double> times) {
  SW_ASSERT(!times.empty());
  std::ranges::sort(times);
  return {quantile(times, 0.5), quantile(times, 0.25), quantile(times, 0.75),
          static_cast<uint32_t>(times.size())};
}

Line fit_line(std::span<const double> x, std::span<const double> y) {
  SW_ASSERT(x.size() == y.size() && x.size() >= 2);
  // Weighted normal equations, weight 1 / y^2.
  double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double weight = 1 / (y[i] * y[i]);
    w += weight;
    wx += weight * x[i];
    wxx += weight * x[i] * x[i];
    wy += weight * y[i];
    wxy += weight * x[i] * y[i];
  }
  const double determinant = w * wxx - wx * wx;
  Line line{(wxx * wy - wx * wxy) / determinant, (w * wxy - wx * wy) / determinant};
  // On the border that a negative one crosses, the best value of the other.
  if (line.fixed < 0) line = {0, wxy / wxx};
  if (line.per_unit < 0) line = {wy / w, 0};
  return line;
}

double fit_tokens(std::span<const double> tokens, std::span<const double> y) {
  SW_ASSERT(tokens.size() == y.size() && !tokens.empty());
  const double most = *std::ranges::max_element(tokens);
  double best = most, least = INFINITY;
  for (double k = kFewestTokens; k <= most * (kStep + 1) / 2; k *= kStep) {
    double error = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      const double off = std::log(std::max(1.0, tokens[i] / k) / y[i]);
      error += off * off;
    }
    if (error < least) least = error, best = k;
  }
  return std::min(best, most);
}

Slowdown slowdown_of(double cpu_alone, double link_alone, double cpu, double link) {
  const auto first = [](double alone, double took) { return std::max(1.0, took / alone); };
  // Of the one that goes on alone after `together`: what it did until then took it `together`.
  const auto second = [](double alone, double took, double together) {
    const double done = alone - (took - together);
    // Noise can leave nothing that was done; a tenth of what it would have done alone is the floor, since a
    // slowdown above 10 has not been seen anywhere.
    return std::max(1.0, together / std::max(done, together / 10));
  };
  if (cpu <= link) return {first(cpu_alone, cpu), second(link_alone, link, cpu)};
  return {second(cpu_alone, cpu, link), first(link_alone, link)};
}

}  // namespace spillway::tune
