// What a handful of timed runs allows to be said. Pure functions; what is random is seeded.
//
// Nothing is dropped: outliers are named and stay in. Small samples are the rule here (5 to 10 runs), so
// every rule says what it does to them; the figures in brackets were measured by
// tests/report/statistics_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace spillway::report {

inline constexpr uint64_t kStatisticsSeed = 1;

// Linear between the order statistics, 0 <= q <= 1. 0 of no values.
double quantile(std::span<const double> values, double q);
double median(std::span<const double> values);

struct Interval {
  double low = 0, high = 0;
  bool contains(double value) const { return low <= value && value <= high; }
};

// The 95 % percentile bootstrap interval of the median: to be shown beside it. Of 5 normal values it is
// nearly the whole range (covers 94 %), of 10 it covers 93 to 96 %. [value, value] of one value.
Interval bootstrap_median(std::span<const double> values, uint64_t seed = kStatisticsSeed);

// What a run did, and how long it took for it: tokens and seconds.
struct Amount {
  double amount = 0, seconds = 0;
};
// Of all together: the sum of the amounts over the sum of the times. 0 without time.
double total_rate(std::span<const Amount> runs);

// The 95 % interval of total_rate(), to be shown beside it: a percentile bootstrap over whole runs, its ends
// moved away from the total (in logarithms) by Student's quantile for that number of runs over what
// resampling of so few sees of the normal's. Plain percentiles cover the total of 3 runs in 72 % of the
// series, of 5 in 85 %, of 10 in 89 %; this covers 92 to 95 % of 2 to 20 runs with normal noise. The total
// lies within it, and the ends at most 100 times away. [total, total] of one run. Requires: every run alone
// has a rate above 0.
Interval bootstrap_rate(std::span<const Amount> runs, uint64_t seed = kStatisticsSeed);

// total_rate(b) / total_rate(a) with its 95 % interval, likewise, a and b drawn independently (covers 93 %
// and more): for runs that were not interleaved. To be shown, not to be decided by: what happened to the
// machine in between is not in it. Requires: at least one run of each.
struct Ratio {
  double ratio = 1;
  Interval interval;
};
Ratio bootstrap_rate_ratio(std::span<const Amount> a, std::span<const Amount> b,
                           uint64_t seed = kStatisticsSeed);

// Indices of the values further from the median than 3.5 times 1.4826 MAD, the estimate of a normal's sigma
// (Iglewicz and Hoaglin 1993). Small samples underestimate the sigma: one is named in every fifth series of 5
// normal values, every seventh of 10 and every twelfth of 30, so a name alone means little.
std::vector<size_t> outliers(std::span<const double> values);

enum class Better : uint8_t { kHigher, kLower };  // of rates, of times

// How many of the first values are cold. The rule: a value is cold if it is worse than the median of the
// series' second half by more than 3 % and more than twice that half's range, and so are all before it; never
// one of the second half. Needs 6 values. (The caller adds what it knows: the first run after a load is cold
// whatever its time. Of normal series of 6 values without a cold start 4 % or fewer have their first value
// called cold, of 10 values 1 %.)
size_t count_cold(std::span<const double> values, Better better);

// Whether the values go one way over the order in which they were measured: Kendall's tau between value and
// order, with its exact two-sided p, and the change from first to last along the Theil-Sen line, as a part of
// the median. `seen`: p < 0.01 and a change above 2 %. (1 % of series without a trend are called one. A fall
// of 10 % in noise of 1 % is seen in half of the series of 6 values, 95 % of 8; fewer than 6 can't tell.)
struct Drift {
  double change = 0;
  double p = 1;
  bool seen = false;
};
Drift find_drift(std::span<const double> values);

// A hint that the values come from two modes (another clock frequency, another kind of core): the split that
// leaves the least variance has at least 3 values and a fifth of them on each side, more than 2 % between the
// means, and a gap between the sides that is at least 0.7 of the distance of the means. Needs 10 values.
// (Called so: under 1 % of normal series of 10 to 40 values.)
struct Modes {
  bool two = false;
  double low = 0, high = 0;  // means
  double share_high = 0;     // of the values
};
Modes find_modes(std::span<const double> values);

// ---- Two settings against each other

enum class Verdict : uint8_t {
  kFaster,        // b than a
  kSlower,        // b than a
  kNoDifference,  // any difference is smaller than the margin
  kNotResolved,   // these runs can't tell
};
// "faster", "slower", "no difference seen", "not resolved"
std::string_view verdict_name(Verdict verdict);

// Settings that are equal are called faster or slower in at most this share of comparisons.
inline constexpr double kFalseVerdictLevel = 0.05;
// Fewer pairs are never resolved.
inline constexpr size_t kFewestPairs = 3;
// A difference below it is none for people.
inline constexpr double kMargin = 0.03;

struct Comparison {
  double ratio = 1;   // of speeds, b to a: above 1, b is the faster, also where the values are times
  Interval interval;  // of it, 95 %
  size_t pairs = 0;
  Verdict verdict = Verdict::kNotResolved;
};

// To be said once where ratios are shown beside tables of speeds.
inline constexpr std::string_view kRatioWords =
    "Each ratio is the median of the ratios of neighbouring runs (of 3 to 5 pairs their geometric mean); a "
    "speed in the table is the total of all runs of a setting. So dividing speeds can give another number.";

// Compares runs that were interleaved: a[i] and b[i] ran next to each other, and which came first was swapped
// in turn. What counts are the logarithms of the pairs' ratios: whatever slows both runs of a pair cancels.
// If the settings are equal, each is as likely above 0 as below, which is all that is assumed from 6 pairs
// on:
//
//   6 to 200 pairs  the interval of the exact signed-rank test over the pairwise (Walsh) means, and their
//                   median as the estimate (Hodges and Lehmann 1963). Holds its level for any symmetric
//                   noise, and an outlier moves it little.
//   3 to 5 pairs    signed ranks can't reach 5 % (2 / 2^5 = 6.25 %), so Student's t, which takes the noise
//   for
//                   normal. It errs towards "not resolved" where the noise has heavy tails.
//   more            Student's t, in its limit.
//
// The bootstrap is not used to decide: its "95 %" covers the median of 5 to 10 pairs in 92 % of the series.
//
// Verdict: faster or slower where the interval excludes 1; no difference where it doesn't and lies within the
// margin; else not resolved. Measured with equal settings, 1000 seeded series each, 3 to 10 pairs: false
// verdicts in at most 5 % (and the play of 1000 draws) with normal, heavy-tailed, drifting and two-mode
// noise. Requires: as many a as b, all positive.
Comparison compare(std::span<const double> a, std::span<const double> b, Better better,
                   double margin = kMargin);

// Whether b is slower than a by more than `loss` (0.05 is 5 %).
enum class Harm : uint8_t { kNo, kYes, kNotResolved };
Harm harm(const Comparison& comparison, double loss);

}  // namespace spillway::report
