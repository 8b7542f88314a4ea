// Two settings against each other; the rule and its reasons are in report/statistics.h.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/assert.h"
#include "report/statistics.h"

namespace spillway::report {
namespace {

constexpr size_t kFewestForRanks = 6, kMostForRanks = 200;

struct Estimate {
  double value = 0;
  Interval interval;
};

// How many of the least and of the largest Walsh means lie outside the interval: the largest k with
// P(T <= k) <= 2.5 %, T being the signed-rank statistic of n values, one short of which is k. Requires:
// P(T = 0) = 2^-n <= 2.5 %.
size_t walsh_means_outside(size_t n) {
  std::vector<double> chance(n * (n + 1) / 2 + 1, 0);
  chance[0] = 1;
  for (size_t rank = 1; rank <= n; ++rank)
    for (size_t t = chance.size(); t-- > 0;)
      chance[t] = 0.5 * chance[t] + (t >= rank ? 0.5 * chance[t - rank] : 0);
  double sum = 0;
  size_t k = 0;
  while (sum + chance[k] <= kFalseVerdictLevel / 2) sum += chance[k++];
  return k - 1;
}

Estimate by_signed_ranks(std::span<const double> d) {
  std::vector<double> walsh;
  for (size_t i = 0; i < d.size(); ++i)
    for (size_t j = i; j < d.size(); ++j) walsh.push_back(0.5 * (d[i] + d[j]));
  std::ranges::sort(walsh);
  const size_t outside = walsh_means_outside(d.size());
  return {median(walsh), {walsh[outside], walsh[walsh.size() - 1 - outside]}};
}

// The 97.5 % point of Student's distribution for the numbers of pairs that come here.
double student(size_t pairs) {
  constexpr double kSmall[] = {4.3027, 3.1824, 2.7764};  // 2, 3 and 4 degrees of freedom
  constexpr double kLarge = 1.972;                       // 200; more have less, down to 1.960
  return pairs - kFewestPairs < std::size(kSmall) ? kSmall[pairs - kFewestPairs] : kLarge;
}

Estimate by_student(std::span<const double> d) {
  const auto n = static_cast<double>(d.size());
  const double mean = std::accumulate(d.begin(), d.end(), 0.0) / n;
  double squares = 0;
  for (const double value : d) squares += (value - mean) * (value - mean);
  const double half = student(d.size()) * std::sqrt(squares / (n - 1) / n);
  return {mean, {mean - half, mean + half}};
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"faster", "slower", "no difference seen", "not resolved"};
  return kNames[static_cast<size_t>(verdict)];
}

Comparison compare(std::span<const double> a, std::span<const double> b, Better better, double margin) {
  SW_ASSERT(a.size() == b.size());
  std::vector<double> d;  // logarithms of b's speed to a's
  for (size_t i = 0; i < a.size(); ++i) {
    SW_ASSERT(a[i] > 0 && b[i] > 0);
    d.push_back(better == Better::kHigher ? std::log(b[i] / a[i]) : std::log(a[i] / b[i]));
  }
  if (d.size() < kFewestPairs) {
    const double ratio = std::exp(median(d));
    return {.ratio = ratio, .interval = {0, INFINITY}, .pairs = d.size()};
  }
  const bool ranks = d.size() >= kFewestForRanks && d.size() <= kMostForRanks;
  const Estimate estimate = ranks ? by_signed_ranks(d) : by_student(d);
  Comparison result{.ratio = std::exp(estimate.value),
                    .interval = {std::exp(estimate.interval.low), std::exp(estimate.interval.high)},
                    .pairs = d.size()};
  if (result.interval.low > 1)
    result.verdict = Verdict::kFaster;
  else if (result.interval.high < 1)
    result.verdict = Verdict::kSlower;
  else if (result.interval.low >= 1 / (1 + margin) && result.interval.high <= 1 + margin)
    result.verdict = Verdict::kNoDifference;
  return result;
}

Harm harm(const Comparison& comparison, double loss) {
  const double bound = 1 / (1 + loss);
  if (comparison.interval.low >= bound) return Harm::kNo;
  return comparison.interval.high < bound ? Harm::kYes : Harm::kNotResolved;
}

}  // namespace spillway::report
