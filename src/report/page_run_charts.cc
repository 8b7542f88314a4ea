// Charts of runs: what happened while they ran.
#include <fmt/format.h>

#include <algorithm>

#include "report/page_charts.h"
#include "report/statistics.h"
#include "report/summary.h"
#include "report/words.h"

namespace spillway::report {
namespace {

constexpr size_t kMostSettings = 6;       // that can be told apart as lines
constexpr size_t kMarkersOfCurve = 12;    // enough to tell it by its markers
constexpr size_t kMostCurvePoints = 150;  // finer than a pixel in ten

std::string tokens_text(double n) {
  return n >= 0 && n < kMostDrawn ? count_text(static_cast<uint64_t>(n)) : number_text(n);
}

std::string more_settings(size_t n) {
  return n > kMostSettings
             ? fmt::format(" The first {} of {} settings are drawn; the table has all.", kMostSettings, n)
             : "";
}

// The share of values up to each of some values: few where they lie close, each one at the far end, where the
// outliers are.
std::vector<Point> distribution(const std::vector<double>& ascending) {
  std::vector<Point> points;
  const size_t n = ascending.size();
  constexpr size_t kTail = 40;
  const size_t every = std::max<size_t>(1, n / (kMostCurvePoints - kTail));
  for (size_t i = 0; i < n; ++i)
    if (i == 0 || i % every == 0 || i + kTail >= n)
      points.push_back({.x = ascending[i],
                        .y = 100.0 * static_cast<double>(i + 1) / static_cast<double>(n),
                        .unmarked = true});
  return points;
}

size_t stalls(const std::vector<double>& ms) {
  const double most = kStallMultiple * quantile(ms, 0.5);
  return static_cast<size_t>(std::ranges::count_if(ms, [most](double each) { return each > most; }));
}

// Hits and misses of the runs together, stretch by stretch.
std::vector<Point> hit_rates(const ResultFile& result, uint32_t setting, bool warm) {
  struct Sum {
    double tokens = 0, hits = 0, uses = 0;
  };
  std::vector<Sum> sums;
  for (const Run& run : result.runs) {
    if (run.setting != setting || run.warm != warm) continue;
    if (sums.size() < run.hit_points.size()) sums.resize(run.hit_points.size());
    for (size_t i = 0; i < run.hit_points.size(); ++i) {
      const HitPoint& point = run.hit_points[i];
      sums[i].tokens = std::max(sums[i].tokens, static_cast<double>(point.tokens));
      sums[i].hits += static_cast<double>(point.hits);
      sums[i].uses += static_cast<double>(point.hits) + static_cast<double>(point.misses);
    }
  }
  // Neighbours are taken together where there are more than can be seen.
  const size_t every = std::max<size_t>(1, (sums.size() + kMostCurvePoints - 1) / kMostCurvePoints);
  std::vector<Point> points;
  for (size_t i = 0; i < sums.size(); i += every) {
    Sum sum;
    for (size_t j = i; j < std::min(i + every, sums.size()); ++j)
      sum = {sums[j].tokens, sum.hits + sums[j].hits, sum.uses + sums[j].uses};
    if (sum.uses > 0)
      points.push_back({.x = sum.tokens,
                        .y = 100 * sum.hits / sum.uses,
                        .words = fmt::format("{} hits after {} tokens", percent_text(sum.hits / sum.uses),
                                             tokens_text(sum.tokens))});
  }
  return points;
}

}  // namespace

MaybeFigure latencies(std::span<const SettingSummary> settings) {
  Plot plot{.title = "Time between tokens",
            .description =
                "How many of the tokens came at most so long after the one before. The markers are the "
                "median, 95 %, 99 % and the longest; nothing is left out.",
            .x = {.title = "milliseconds", .from_zero = false},
            .y = {.title = "% of tokens", .high = 100}};
  Table numbers{
      fmt::format("Time between tokens, and to the first token (TTFT), milliseconds (measured); a stall "
                  "is a token that took more than {} times the median",
                  kStallMultiple),
      {{"Setting"},
       {"Tokens", Column::Kind::kNumber},
       {"p50", Column::Kind::kNumber},
       {"p95", Column::Kind::kNumber},
       {"p99", Column::Kind::kNumber},
       {"longest", Column::Kind::kNumber},
       {"stalls", Column::Kind::kNumber},
       {"TTFT p50", Column::Kind::kNumber},
       {"TTFT longest", Column::Kind::kNumber}}};
  double least = 0, most = 0;
  for (const SettingSummary& setting : settings) {
    const std::vector<double>& ms = setting.itl_ms;
    if (ms.empty()) continue;
    const std::string name = setting.name + (setting.only_cold ? " (cold runs only)" : "");
    const std::vector<double>& ttft = setting.ttft_s;
    numbers.rows.push_back({name, count_text(ms.size()), number_text(quantile(ms, 0.5)),
                            number_text(quantile(ms, 0.95)), number_text(quantile(ms, 0.99)),
                            number_text(ms.back()), count_text(stalls(ms)),
                            ttft.empty() ? "" : number_text(1000 * quantile(ttft, 0.5)),
                            ttft.empty() ? "" : number_text(1000 * ttft.back())});
    if (numbers.rows.size() > kMostSettings) continue;
    const auto index = static_cast<uint32_t>(numbers.rows.size() - 1);
    least = least > 0 ? std::min(least, ms.front()) : ms.front();
    most = std::max(most, ms.back());
    std::vector<Point> points = distribution(ms);
    for (const double q : {0.5, 0.95, 0.99, 1.0}) {
      const double at = quantile(ms, q);
      points.push_back(
          {.x = at,
           .y = 100 * q,
           .words = fmt::format("{}: {} {} ms", name, q < 1 ? fmt::format("p{:.0f}", 100 * q) : "longest",
                                number_text(at))});
    }
    std::ranges::stable_sort(
        points, [](const Point& a, const Point& b) { return std::pair(a.x, a.y) < std::pair(b.x, b.y); });
    plot.series.push_back({.name = name,
                           .colour = setting.index,
                           .marker = Marker::kFilled,
                           .joined = true,
                           .stepped = true,
                           .dash = static_cast<Dash>(index % kDashes),
                           .points = std::move(points)});
  }
  if (plot.series.empty()) return {};
  // Stalls are many times the median: on an even scale all the rest would be one upright line.
  plot.x.logarithmic = least > 0 && most > 8 * least;
  plot.description += more_settings(numbers.rows.size());
  return Figure{std::move(plot), std::move(numbers)};
}

MaybeFigure hits_over_tokens(const ResultFile& result) {
  Plot plot{.title = "Hit rate over the tokens of a run",
            .description =
                "Of the experts that were needed, how many lay on the device already. Cold runs (dashed) "
                "begin with an empty cache, warm ones with what earlier runs left in it.",
            .x = {.title = "tokens since the run began"},
            .y = {.title = "% hits", .high = 100}};
  Table numbers{"Hit rate over the tokens of a run (measured)",
                {{"Setting"},
                 {"Runs"},
                 {"first stretch", Column::Kind::kNumber},
                 {"middle", Column::Kind::kNumber},
                 {"last stretch", Column::Kind::kNumber},
                 {"tokens", Column::Kind::kNumber}}};
  size_t n_settings = 0;
  for (uint32_t s = 0; s < result.settings.size(); ++s) {
    bool any = false;
    for (const bool warm : {false, true}) {
      std::vector<Point> points = hit_rates(result, s, warm);
      if (points.empty()) continue;
      any = true;
      const auto percent = [](const Point& point) { return percent_text(point.y / 100); };
      numbers.rows.push_back({result.settings[s].name, warm ? "warm" : "cold", percent(points.front()),
                              percent(points[points.size() / 2]), percent(points.back()),
                              tokens_text(points.back().x)});
      if (n_settings >= kMostSettings) continue;
      const size_t every = points.size() / kMarkersOfCurve + 1;
      for (size_t i = 0; i < points.size(); ++i) points[i].unmarked = i % every != 0;
      plot.series.push_back({.name = fmt::format("{}, {}", result.settings[s].name, warm ? "warm" : "cold"),
                             .colour = s,
                             .marker = warm ? Marker::kFilled : Marker::kHollow,
                             .joined = true,
                             .dash = warm ? Dash::kSolid : Dash::kShort,
                             .points = std::move(points)});
    }
    n_settings += any;
  }
  if (plot.series.empty()) return {};
  plot.description += more_settings(n_settings);
  return Figure{std::move(plot), std::move(numbers)};
}

MaybeFigure runs_in_order(const ResultFile& result) {
  Plot plot{.title = "Every run, in the order in which they ran",
            .description =
                "Decode speed of one user. Cold runs are hollow and not compared. A ring marks what to "
                "look at: an outlier, a run that was cut short, a busy or throttled machine.",
            .x = {.title = "run", .from_zero = false},
            .y = {.title = "tokens per second"}};
  const std::vector<bool> is_outlier = outlier_runs(result);
  Series rings{.name = "to be looked at", .colour = 5, .marker = Marker::kRing};
  size_t n = 0;
  for (uint32_t s = 0; s < result.settings.size(); ++s)
    for (const bool warm : {true, false}) {
      Series series{.name = fmt::format("{}, {}", result.settings[s].name, warm ? "warm" : "cold"),
                    .colour = s,
                    .marker = warm ? Marker::kFilled : Marker::kHollow};
      for (size_t i = 0; i < result.runs.size(); ++i) {
        const Run& run = result.runs[i];
        const double speed = decode_tok_s(run);
        if (run.setting != s || run.warm != warm || !(speed > 0)) continue;
        const double number = static_cast<double>(i + 1);
        series.points.push_back(
            {.x = number,
             .y = speed,
             .words = fmt::format("run {}, {}: {} tok/s", i + 1, series.name, number_text(speed))});
        if (is_outlier[i] || was_busy(run) || was_throttled(run) || !run.cut_short.empty())
          rings.points.push_back({.x = number, .y = speed});
      }
      n += series.points.size();
      if (!series.points.empty()) plot.series.push_back(std::move(series));
    }
  if (n < 2) return {};
  if (!rings.points.empty()) plot.series.push_back(std::move(rings));
  return Figure{std::move(plot), {}};
}

}  // namespace spillway::report
