// Series with known answers. Everything is seeded: a figure that a comment of statistics.h states is measured
// here.
#include "report/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace spillway::report {
namespace {

constexpr int kTrials = 1000;
// 5 % of 1000 draws, and three standard deviations of that count.
constexpr int kMostFalse = 50 + 21;

// Noise as runs have it, about 1 % of the value unless said otherwise. Own transformations: those of <random>
// differ between libraries.
class Noise {
 public:
  explicit Noise(uint64_t seed) : engine_(seed) {}
  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * M_PI * uniform()); }
  // A tenth of the runs is disturbed, and only ever slower.
  double disturbed() { return uniform() < 0.1 ? -std::abs(10 * normal()) : normal(); }
  // Two clock frequencies, 20 % apart.
  double two_modes() { return normal() + (uniform() < 0.5 ? 20 : 0); }

 private:
  std::mt19937_64 engine_;
};

struct Pairs {
  std::vector<double> a, b;
};

enum class Kind { kNormal, kDisturbed, kTwoModes, kDrifting };
constexpr Kind kKinds[] = {Kind::kNormal, Kind::kDisturbed, Kind::kTwoModes, Kind::kDrifting};

// `n` pairs in the order a b, b a, a b, ...; b is `ratio` times as fast.
Pairs interleaved(Kind kind, size_t n, double ratio, Noise& noise) {
  Pairs pairs;
  const auto run = [&](size_t position) {
    double percent = kind == Kind::kDisturbed  ? noise.disturbed()
                     : kind == Kind::kTwoModes ? noise.two_modes()
                                               : noise.normal();
    if (kind == Kind::kDrifting) percent -= 20.0 * static_cast<double>(position) / static_cast<double>(2 * n);
    return 40 * std::exp(0.01 * percent);
  };
  for (size_t i = 0; i < n; ++i) {
    const double first = run(2 * i), second = run(2 * i + 1);
    pairs.a.push_back(i % 2 == 0 ? first : second);
    pairs.b.push_back(ratio * (i % 2 == 0 ? second : first));
  }
  return pairs;
}

struct Verdicts {
  int faster = 0, slower = 0, none = 0, open = 0;
};

Verdicts judge(Kind kind, size_t n, double ratio, uint64_t seed) {
  Noise noise(seed);
  Verdicts verdicts;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Pairs pairs = interleaved(kind, n, ratio, noise);
    switch (compare(pairs.a, pairs.b, Better::kHigher).verdict) {
      case Verdict::kFaster:
        ++verdicts.faster;
        break;
      case Verdict::kSlower:
        ++verdicts.slower;
        break;
      case Verdict::kNoDifference:
        ++verdicts.none;
        break;
      case Verdict::kNotResolved:
        ++verdicts.open;
        break;
    }
  }
  return verdicts;
}

TEST(Statistics, QuantilesAreLinearBetweenTheValues) {
  const std::vector<double> values{40, 10, 30, 20};
  EXPECT_DOUBLE_EQ(median(values), 25);
  EXPECT_DOUBLE_EQ(quantile(values, 0), 10);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 40);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 37);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{7}), 7);
  EXPECT_DOUBLE_EQ(median({}), 0);
}

TEST(Statistics, EqualSettingsAreNotCalledDifferent) {
  int wrong = 0, all = 0;
  for (const Kind kind : kKinds)
    for (size_t n = 3; n <= 10; ++n) {
      const Verdicts v = judge(kind, n, 1, 100 * n + static_cast<size_t>(kind));
      fmt::print("kind {} pairs {:>2}: {:>3} faster {:>3} slower {:>4} no difference {:>4} open\n",
                 static_cast<int>(kind), n, v.faster, v.slower, v.none, v.open);
      EXPECT_LE(v.faster + v.slower, kMostFalse) << n << " pairs, kind " << static_cast<int>(kind);
      wrong += v.faster + v.slower;
      all += kTrials;
    }
  fmt::print("{:.1f} % false verdicts in all\n", 100.0 * wrong / all);
  EXPECT_LE(wrong, kFalseVerdictLevel * all);
}

TEST(Statistics, ThreePercentAreFoundWhereTheNoiseAllows) {
  for (const size_t n : {5, 8, 10}) {
    const Verdicts v = judge(Kind::kNormal, n, 1.03, n);
    fmt::print("3 % apart, {} pairs: {} faster {} slower {} none {} open\n", n, v.faster, v.slower, v.none,
               v.open);
    EXPECT_GE(v.faster, n == 5 ? 850 : 990);
    EXPECT_EQ(v.slower, 0);
    // "No difference" where there is one of just the margin: half of the 5 %.
    EXPECT_LE(v.none, 25 + 15);
  }
  EXPECT_GE(judge(Kind::kDisturbed, 10, 1.03, 1).faster, 600);  // outliers seldom hide it
  EXPECT_GE(judge(Kind::kDrifting, 10, 1.03, 1).faster, 950);   // nor does a drift of 20 %
  EXPECT_GE(judge(Kind::kTwoModes, 10, 1.03, 1).open, 700);     // two modes of 20 % do, and that is said
}

TEST(Statistics, EqualSettingsWithLittleNoiseShowNoDifference) {
  EXPECT_GE(judge(Kind::kNormal, 5, 1, 1).none, 800);
  EXPECT_GE(judge(Kind::kNormal, 10, 1, 1).none, 930);
}

TEST(Statistics, ComparisonsKnowWhichWayIsBetter) {
  const std::vector<double> a{10, 10.1, 9.9, 10, 10.05, 9.95}, b{11, 11.1, 10.9, 11, 11.05, 10.95};
  const Comparison rates = compare(a, b, Better::kHigher), times = compare(a, b, Better::kLower);
  EXPECT_EQ(rates.verdict, Verdict::kFaster);
  EXPECT_EQ(times.verdict, Verdict::kSlower);
  EXPECT_NEAR(rates.ratio, 1.1, 0.01);
  EXPECT_NEAR(times.ratio, 1 / 1.1, 0.01);
  EXPECT_TRUE(rates.interval.contains(1.1));
  EXPECT_EQ(harm(times, 0.05), Harm::kYes);
  EXPECT_EQ(harm(times, 0.2), Harm::kNo);
  EXPECT_EQ(harm(times, 0.1), Harm::kNotResolved);
  EXPECT_EQ(harm(rates, 0.05), Harm::kNo);
}

TEST(Statistics, RunsWithoutNoiseAreCompared) {
  const std::vector<double> a{10, 10, 10}, b{11, 11, 11};
  EXPECT_EQ(compare(a, b, Better::kHigher).verdict, Verdict::kFaster);
  EXPECT_EQ(compare(a, a, Better::kHigher).verdict, Verdict::kNoDifference);
}

TEST(Statistics, TooFewPairsAreNeverResolved) {
  const std::vector<double> a{10, 10}, b{20, 20};
  const Comparison two = compare(a, b, Better::kHigher), none = compare({}, {}, Better::kHigher);
  EXPECT_EQ(two.verdict, Verdict::kNotResolved);
  EXPECT_DOUBLE_EQ(two.ratio, 2);
  EXPECT_EQ(none.verdict, Verdict::kNotResolved);
  EXPECT_EQ(harm(two, 0.05), Harm::kNotResolved);
  EXPECT_EQ(verdict_name(two.verdict), "not resolved");
}

TEST(Statistics, ManyPairsGoOn) {
  Noise noise(3);
  for (const size_t n : {200, 201, 400}) {
    const Pairs pairs = interleaved(Kind::kNormal, n, 1.01, noise);
    const Comparison c = compare(pairs.a, pairs.b, Better::kHigher);
    EXPECT_EQ(c.verdict, Verdict::kFaster);
    EXPECT_TRUE(c.interval.contains(1.01)) << c.interval.low << " " << c.interval.high;
  }
}

TEST(Statistics, BootstrapCoversTheMedian) {
  for (const size_t n : {5, 10, 20}) {
    Noise noise(n);
    int covered = 0;
    for (int trial = 0; trial < kTrials / 2; ++trial) {
      std::vector<double> a(n);
      for (double& value : a) value = 40 + 0.4 * noise.normal();
      covered += bootstrap_median(a).contains(40) ? 1 : 0;
    }
    fmt::print("bootstrap, {} values: {:.1f} % of medians covered\n", n, covered / 5.0);
    EXPECT_GE(covered, 455);
  }
  const std::vector<double> one{5};
  EXPECT_DOUBLE_EQ(bootstrap_median(one).low, 5);
  EXPECT_DOUBLE_EQ(bootstrap_median(one).high, 5);
}

// Runs of 100 tokens at 40 tokens a second, and of 300 in every third: as conversations differ.
std::vector<Amount> runs_of(size_t n, double percent, Kind kind, Noise& noise) {
  std::vector<Amount> runs(n);
  for (size_t i = 0; i < n; ++i) {
    runs[i].amount = i % 3 == 2 ? 300 : 100;
    const double z = kind == Kind::kDisturbed ? noise.disturbed() : noise.normal();
    runs[i].seconds = runs[i].amount / 40 * std::exp(-0.01 * percent * z);
  }
  return runs;
}

TEST(Statistics, TheIntervalOfATotalCoversIt) {
  for (const size_t n : {2, 3, 5, 10, 20})
    for (const double percent : {1.0, 10.0}) {
      Noise noise(n);
      int covered = 0, ratio_covered = 0;
      for (int trial = 0; trial < kTrials / 2; ++trial) {
        const std::vector<Amount> a = runs_of(n, percent, Kind::kNormal, noise),
                                  b = runs_of(n, percent, Kind::kNormal, noise);
        covered += bootstrap_rate(a).contains(40) ? 1 : 0;
        ratio_covered += bootstrap_rate_ratio(a, b).interval.contains(1) ? 1 : 0;
      }
      fmt::print("totals of {} runs, noise {} %: {:.1f} % covered, {:.1f} % of ratios\n", n, percent,
                 covered / 5.0, ratio_covered / 5.0);
      EXPECT_GE(covered, n == 2 ? 400 : 450) << n;
      EXPECT_GE(ratio_covered, n == 2 ? 400 : 450) << n;
    }
}

TEST(Statistics, ATotalLiesWithinItsInterval) {
  for (size_t n = 1; n <= 12; ++n) {
    Noise noise(n);
    for (int trial = 0; trial < 100; ++trial) {
      const std::vector<Amount> a = runs_of(n, 3, Kind::kDisturbed, noise),
                                b = runs_of(n, 3, Kind::kDisturbed, noise);
      EXPECT_TRUE(bootstrap_rate(a).contains(total_rate(a))) << n;
      const Ratio ratio = bootstrap_rate_ratio(a, b);
      EXPECT_DOUBLE_EQ(ratio.ratio, total_rate(b) / total_rate(a));
      EXPECT_TRUE(ratio.interval.contains(ratio.ratio)) << n;
    }
  }
  const std::vector<Amount> a{{100, 2}, {300, 3}};
  EXPECT_DOUBLE_EQ(total_rate(a), 80);  // 400 in 5 s, and not the mean of 50 and 100
  EXPECT_DOUBLE_EQ(total_rate({}), 0);
  EXPECT_EQ(bootstrap_rate(a, 7).low, bootstrap_rate(a, 7).low);
  const std::vector<Amount> apart{{100, 1}, {100, 1e6}};
  EXPECT_LE(bootstrap_rate(apart).high, 101 * total_rate(apart));
  const std::vector<Amount> same(3, {100, 2});
  EXPECT_DOUBLE_EQ(bootstrap_rate(same).low, 50);
  EXPECT_DOUBLE_EQ(bootstrap_rate(same).high, 50);
}

TEST(Statistics, OutliersAreNamedAndNothingElse) {
  EXPECT_EQ(outliers(std::vector<double>{10, 10.1, 9.9, 10, 14, 10.1, 9.9}), std::vector<size_t>{4});
  EXPECT_TRUE(outliers(std::vector<double>{10, 10.1, 9.9, 10.05}).empty());
  EXPECT_TRUE(outliers(std::vector<double>{10, 10, 10}).empty());
  EXPECT_TRUE(outliers({}).empty());
  for (const size_t n : {5, 10, 30}) {
    Noise noise(n);
    int series = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> values(n);
      for (double& value : values) value = 40 + noise.normal();
      series += outliers(values).empty() ? 0 : 1;
    }
    fmt::print("outliers named in {:.1f} % of normal series of {}\n", series / 10.0, n);
  }
}

TEST(Statistics, ColdIsWhatIsWorseThanTheLaterHalf) {
  const std::vector<double> warming{20, 30, 38, 40, 40.2, 39.8, 40.1, 40, 39.9, 40.1};
  EXPECT_EQ(count_cold(warming, Better::kHigher), 3);
  std::vector<double> times;
  for (const double speed : warming) times.push_back(1 / speed);
  EXPECT_EQ(count_cold(times, Better::kLower), 3);
  EXPECT_EQ(count_cold(times, Better::kHigher), 0);  // a fast start is not cold
  EXPECT_EQ(count_cold(std::vector<double>{1, 2, 3, 40, 40, 40}, Better::kHigher), 3);
  EXPECT_EQ(count_cold(std::vector<double>{1, 2, 3, 4, 40, 40, 40}, Better::kHigher), 0);  // a half of it all
  EXPECT_EQ(count_cold(std::vector<double>{1, 40, 40, 40, 40}, Better::kHigher), 0);       // too few
  EXPECT_EQ(count_cold({}, Better::kHigher), 0);
  for (const size_t n : {6, 10}) {
    Noise noise(n);
    int made_up = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> values(n);
      for (double& value : values) value = 40 * (1 + 0.03 * noise.normal());
      made_up += count_cold(values, Better::kHigher) > 0 ? 1 : 0;
    }
    fmt::print("cold start of {} values: {} of 1000 made up\n", n, made_up);
    EXPECT_LE(made_up, n == 6 ? 50 : 15);
  }
}

TEST(Statistics, DriftIsFoundAndNotMadeUp) {
  for (const size_t n : {6, 8, 10, 20}) {
    Noise noise(n);
    int made_up = 0, found = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> flat(n), falling(n);
      for (size_t i = 0; i < n; ++i) {
        flat[i] = 40 * (1 + 0.02 * noise.normal());
        falling[i] = 40 * (1 + 0.01 * noise.normal() - 0.1 * static_cast<double>(i) / static_cast<double>(n));
      }
      made_up += find_drift(flat).seen ? 1 : 0;
      found += find_drift(falling).seen ? 1 : 0;
    }
    fmt::print("drift, {} values: {} of 1000 made up, {} of 1000 falls of 10 % found\n", n, made_up, found);
    EXPECT_LE(made_up, 20);
    if (n >= 10) {
      EXPECT_GE(found, 900);
    }
  }
  std::vector<double> line;
  for (int i = 0; i < 11; ++i) line.push_back(100 - i);
  EXPECT_NEAR(find_drift(line).change, -10.0 / 95, 1e-12);
  EXPECT_TRUE(find_drift(line).seen);
  EXPECT_FALSE(find_drift(std::vector<double>{1, 2, 3, 4}).seen);
  EXPECT_FALSE(find_drift(std::vector<double>(10, 5.0)).seen);
  std::vector<double> long_line;
  for (int i = 0; i < 5000; ++i) long_line.push_back(1000 + i);
  EXPECT_TRUE(find_drift(long_line).seen);
}

TEST(Statistics, TwoModesAreSeenAndNotMadeUp) {
  for (const size_t n : {10, 20, 40}) {
    Noise noise(n);
    int made_up = 0, found = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> one(n), two(n);
      for (size_t i = 0; i < n; ++i) {
        one[i] = 40 * (1 + 0.03 * noise.normal());
        two[i] = 40 * (1 + 0.01 * noise.normal() + (i % 3 == 0 ? 0.2 : 0));
      }
      made_up += find_modes(one).two ? 1 : 0;
      found += find_modes(two).two ? 1 : 0;
    }
    fmt::print("modes, {} values: {} of 1000 made up, {} of 1000 found\n", n, made_up, found);
    EXPECT_LE(made_up, 12);
    EXPECT_GE(found, 950);
  }
  const Modes modes = find_modes(std::vector<double>{10, 12, 10, 12, 10, 12, 10, 12, 10, 10});
  EXPECT_TRUE(modes.two);
  EXPECT_DOUBLE_EQ(modes.low, 10);
  EXPECT_DOUBLE_EQ(modes.high, 12);
  EXPECT_DOUBLE_EQ(modes.share_high, 0.4);
  EXPECT_FALSE(find_modes(std::vector<double>{10, 12, 10, 12}).two);  // too few to say
}

}  // namespace
}  // namespace spillway::report
