#include "report/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace spillway::report {
namespace {

constexpr double kSigmasOfOutlier = 3.5;
constexpr double kMadToSigma = 1.4826;      // 1 / the normal distribution's third quartile
constexpr double kNormal97 = 1.959964;      // the normal distribution's 97.5 % point
const double kMostWidened = std::log(100);  // two runs that are 1000 times apart would give ends of 1e15
constexpr int kResamples = 2000;            // the ends of 95 % then rest on 50 values each

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  std::ranges::sort(copy);
  return copy;
}

double sorted_quantile(std::span<const double> values, double q) {
  if (values.empty()) return 0;
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double mad_sigma(std::span<const double> values, double middle) {
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - middle));
  return kMadToSigma * median(distances);
}

// splitmix64: the same series everywhere.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  size_t below(size_t n) {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return static_cast<size_t>((z ^ (z >> 31)) % n);  // n is small: the bias is below 1e-15
  }

 private:
  uint64_t state_;
};

double resampled_median(std::span<const double> values, std::vector<double>& room, Draws& draws) {
  room.clear();
  for (size_t i = 0; i < values.size(); ++i) room.push_back(values[draws.below(values.size())]);
  std::ranges::sort(room);
  return sorted_quantile(room, 0.5);
}

Interval middle_95(std::vector<double> values) {
  std::ranges::sort(values);
  return {sorted_quantile(values, 0.025), sorted_quantile(values, 0.975)};
}

double resampled_rate(std::span<const Amount> runs, std::vector<Amount>& room, Draws& draws) {
  room.clear();
  for (size_t i = 0; i < runs.size(); ++i) room.push_back(runs[draws.below(runs.size())]);
  return total_rate(room);
}

// The 97.5 % point of Student's distribution. From 5 degrees of freedom on by its expansion in their inverse
// (Abramowitz and Stegun 26.7.5), good to 0.1 %.
double student_97(size_t degrees) {
  constexpr double kFirst[] = {12.7062, 4.3027, 3.1824, 2.7764};
  if (degrees <= std::size(kFirst)) return kFirst[degrees - 1];
  constexpr double z = kNormal97;
  const auto n = static_cast<double>(degrees);
  return z + z * (z * z + 1) / (4 * n) + z * (5 * std::pow(z, 4) + 16 * z * z + 3) / (96 * n * n);
}

// Resampling n values sees sqrt((n - 1) / n) of their deviation, and the normal's tails instead of Student's.
Interval widened(Interval interval, double value, size_t n) {
  const auto runs = static_cast<double>(n);
  const double factor = student_97(n - 1) / (kNormal97 * std::sqrt((runs - 1) / runs));
  const auto away = [&](double end) {
    return value * std::exp(std::clamp(factor * std::log(end / value), -kMostWidened, kMostWidened));
  };
  return {std::min(away(interval.low), value), std::max(away(interval.high), value)};
}

// Two-sided p of Kendall's statistic: `discordant` of n (n - 1) / 2 pairs, by the exact distribution of the
// number of inversions in a random order.
double kendall_p(size_t n, double discordant) {
  const size_t most = n * (n - 1) / 2;
  std::vector<double> chance{1};
  for (size_t k = 2; k <= n; ++k) {
    std::vector<double> next(chance.size() + k - 1, 0);
    for (size_t i = 0; i < chance.size(); ++i)
      for (size_t j = 0; j < k; ++j) next[i + j] += chance[i] / static_cast<double>(k);
    chance = std::move(next);
  }
  const double tail = std::min(discordant, static_cast<double>(most) - discordant);
  double sum = 0;
  for (size_t i = 0; i <= most && static_cast<double>(i) <= tail; ++i) sum += chance[i];
  return std::min(1.0, 2 * sum);
}

}  // namespace

double quantile(std::span<const double> values, double q) { return sorted_quantile(sorted(values), q); }
double median(std::span<const double> values) { return quantile(values, 0.5); }

Interval bootstrap_median(std::span<const double> values, uint64_t seed) {
  if (values.empty()) return {};
  Draws draws(seed);
  std::vector<double> medians, room;
  for (int i = 0; i < kResamples; ++i) medians.push_back(resampled_median(values, room, draws));
  return middle_95(std::move(medians));
}

double total_rate(std::span<const Amount> runs) {
  Amount sum;
  for (const Amount& run : runs) sum.amount += run.amount, sum.seconds += run.seconds;
  return sum.seconds > 0 ? sum.amount / sum.seconds : 0;
}

Interval bootstrap_rate(std::span<const Amount> runs, uint64_t seed) {
  const double total = total_rate(runs);
  if (runs.size() < 2) return {total, total};
  Draws draws(seed);
  std::vector<double> totals(kResamples);
  std::vector<Amount> room;
  for (double& resampled : totals) resampled = resampled_rate(runs, room, draws);
  return widened(middle_95(std::move(totals)), total, runs.size());
}

Ratio bootstrap_rate_ratio(std::span<const Amount> a, std::span<const Amount> b, uint64_t seed) {
  const double ratio = total_rate(b) / total_rate(a);
  const size_t fewest = std::min(a.size(), b.size());
  if (fewest < 2) return {ratio, {ratio, ratio}};
  Draws draws(seed);
  std::vector<double> ratios;
  std::vector<Amount> room;
  for (int i = 0; i < kResamples; ++i) {
    const double of_a = resampled_rate(a, room, draws);
    ratios.push_back(resampled_rate(b, room, draws) / of_a);
  }
  return {ratio, widened(middle_95(std::move(ratios)), ratio, fewest)};
}

std::vector<size_t> outliers(std::span<const double> values) {
  std::vector<size_t> found;
  const double middle = median(values);
  const double reach = kSigmasOfOutlier * mad_sigma(values, middle);
  for (size_t i = 0; i < values.size(); ++i)
    if (std::abs(values[i] - middle) > reach) found.push_back(i);
  return found;
}

size_t count_cold(std::span<const double> values, Better better) {
  constexpr size_t kFewest = 6;
  constexpr double kLeast = 0.03, kRanges = 2;
  if (values.size() < kFewest) return 0;
  const std::span<const double> later = values.subspan(values.size() / 2);
  const double middle = median(later);
  const auto [least, most] = std::ranges::minmax(later);
  const double reach = std::max(kRanges * (most - least), kLeast * std::abs(middle));
  size_t cold = 0;
  while (cold < values.size() / 2) {
    const double worse = better == Better::kHigher ? middle - values[cold] : values[cold] - middle;
    if (worse <= reach) break;
    ++cold;
  }
  return cold;
}

Drift find_drift(std::span<const double> values) {
  constexpr size_t kFewest = 6;        // of 5, the rarest orders have p = 2 / 120
  constexpr size_t kMostValues = 200;  // the exact distribution takes n^4 / 6 steps
  constexpr double kLevel = 0.01, kLeastChange = 0.02;
  if (values.size() > kMostValues) {  // means of stretches show a trend as well
    std::vector<double> means;
    for (size_t i = 0; i < kMostValues; ++i) {
      const size_t begin = i * values.size() / kMostValues, end = (i + 1) * values.size() / kMostValues;
      means.push_back(mean(values.subspan(begin, end - begin)));
    }
    return find_drift(means);
  }
  const size_t n = values.size();
  const double middle = median(values);
  if (n < kFewest || middle == 0) return {};
  double discordant = 0;
  std::vector<double> slopes;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j) {
      slopes.push_back((values[j] - values[i]) / static_cast<double>(j - i));
      discordant += values[j] < values[i] ? 1 : values[j] == values[i] ? 0.5 : 0;
    }
  Drift drift{.change = median(slopes) * static_cast<double>(n - 1) / middle, .p = kendall_p(n, discordant)};
  drift.seen = drift.p < kLevel && std::abs(drift.change) > kLeastChange;
  return drift;
}

Modes find_modes(std::span<const double> values) {
  constexpr size_t kFewest = 10, kFewestInSide = 3;
  constexpr double kLeastShare = 0.2, kLeastDistance = 0.02, kLeastGap = 0.7;
  const size_t n = values.size();
  if (n < kFewest) return {};
  const std::vector<double> all = sorted(values);
  const size_t fewest =
      std::max(kFewestInSide, static_cast<size_t>(std::ceil(kLeastShare * static_cast<double>(n))));
  double total = 0, left = 0, best = -1;
  for (const double value : all) total += value;
  size_t split = 0;
  for (size_t i = 1; i < n; ++i) {
    left += all[i - 1];
    const double distance = (total - left) / static_cast<double>(n - i) - left / static_cast<double>(i);
    // The variance between the sides, which the split of least variance within them makes largest.
    const double between = static_cast<double>(i) * static_cast<double>(n - i) * distance * distance;
    if (between > best) best = between, split = i;
  }
  Modes modes{.low = mean(std::span(all).first(split)),
              .high = mean(std::span(all).subspan(split)),
              .share_high = static_cast<double>(n - split) / static_cast<double>(n)};
  const double distance = modes.high - modes.low;
  modes.two = std::min(split, n - split) >= fewest && distance > kLeastDistance * std::abs(modes.low) &&
              all[split] - all[split - 1] >= kLeastGap * distance;
  return modes;
}

}  // namespace spillway::report
