#include "report/page_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/statistics.h"
#include "report/words.h"

namespace spillway::report {

std::vector<SettingSummary> summarize(const ResultFile& result) {
  std::vector<SettingSummary> all;
  for (uint32_t s = 0; s < result.settings.size(); ++s) {
    SettingSummary summary{.name = result.settings[s].name, .index = s};
    for (const Run& run : result.runs)
      if (run.setting == s) ++(run.warm ? summary.warm_runs : summary.cold_runs);
    if (summary.warm_runs + summary.cold_runs == 0) continue;
    summary.only_cold = summary.warm_runs == 0;
    for (const Run& run : result.runs) {
      if (run.setting != s || run.warm == summary.only_cold) continue;
      for (const Request& request : run.requests) {
        summary.itl_ms.insert(summary.itl_ms.end(), request.itl_ms.begin(), request.itl_ms.end());
        if (request.ttft_s > 0) summary.ttft_s.push_back(request.ttft_s);
      }
    }
    std::ranges::sort(summary.itl_ms);
    std::ranges::sort(summary.ttft_s);
    all.push_back(std::move(summary));
  }
  return all;
}

bool was_busy(const Run& run) {
  return run.load.other_cpu > kBusyCores && run.seconds >= kShortestLoadSeconds;
}
bool was_throttled(const Run& run) { return run.load.throttled_s > kThrottledShare * run.seconds; }

std::vector<bool> outlier_runs(const ResultFile& result) {
  std::vector<bool> is_outlier(result.runs.size());
  for (uint32_t s = 0; s < result.settings.size(); ++s) {
    std::vector<size_t> runs;
    std::vector<double> speeds;
    for (size_t i = 0; i < result.runs.size(); ++i) {
      const double speed = decode_tok_s(result.runs[i]);
      if (result.runs[i].setting != s || !result.runs[i].warm || !(speed > 0)) continue;
      runs.push_back(i), speeds.push_back(speed);
    }
    for (const size_t i : outliers(speeds)) is_outlier[runs[i]] = true;
  }
  return is_outlier;
}

std::string share_name(const Row& row) {
  return row.share.empty() ? "share not known" : "share " + row.share;
}

std::string row_name(const Row& row) {
  std::string name = row.setting;
  if (name.empty()) name = fmt::format("cache {}, {}", bytes_text(row.cache_bytes), share_name(row));
  return row.machine.empty() ? name : fmt::format("{}: {}", row.machine, name);
}

std::vector<const Row*> leading_rows(const ResultFile& result) {
  constexpr size_t kMany = 16;
  std::vector<const Row*> all, measured;
  for (const Row& row : result.rows) {
    all.push_back(&row);
    if (row.label == Label::kMeasured) measured.push_back(&row);
  }
  return all.size() > kMany && !measured.empty() ? measured : all;
}

const char* measure_name(Measure measure) {
  switch (measure) {
    case Measure::kTtft:
      return "TTFT, ms";
    case Measure::kP95:
      return "ITL p95, ms";
    case Measure::kDecode:
      break;
  }
  return "Decode, tok/s";
}

std::optional<double> value_of(const Row& row, Measure measure) {
  std::optional<double> value = row.decode_tok_s;
  if (measure == Measure::kTtft) value = row.ttft_s ? std::optional(1000 * *row.ttft_s) : std::nullopt;
  if (measure == Measure::kP95) value = row.p95_itl_ms;
  return value && *value > 0 ? value : std::nullopt;
}

std::vector<Measure> measures_of(const std::string& goal) {
  if (goal == "ttft") return {Measure::kTtft, Measure::kDecode};
  if (goal == "p95") return {Measure::kP95, Measure::kDecode};
  if (goal == "mixed") return {Measure::kDecode, Measure::kTtft, Measure::kP95};
  return {Measure::kDecode};
}

namespace {

// How many times as fast; 1 where one of them does not know.
double speed_ratio(const Row& row, const Row& first, Measure measure) {
  const auto a = value_of(first, measure), b = value_of(row, measure);
  if (!a || !b) return 1;
  return measure == Measure::kDecode ? *b / *a : *a / *b;
}

// `judged`: the verdict is about this measure.
std::optional<SlowerRow::How> how_slower(const Row& row, const Row& first, double ratio, bool judged) {
  using How = SlowerRow::How;
  // A difference below 3 % is none for people (report/statistics.h, kMargin).
  if (row.label != first.label || !(ratio < 1 - kMargin)) return {};
  if (row.verdict.empty()) return How::kNumbers;
  if (!judged) return How::kOtherGoal;
  return row.verdict == "not resolved" ? std::optional(How::kNotResolved) : std::nullopt;
}

}  // namespace

std::vector<SlowerRow> slower_rows(const ResultFile& result) {
  std::vector<SlowerRow> slower;
  const std::vector<Measure> measures = measures_of(result.goal);
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const Row& row = result.rows[i];
    size_t first = 0;
    while (result.rows[first].machine != row.machine) ++first;
    for (const Measure measure : measures) {
      SlowerRow found{i, first, measure, speed_ratio(row, result.rows[first], measure)};
      std::optional<SlowerRow::How> how =
          how_slower(row, result.rows[first], found.ratio, measure == measures[0] && result.goal != "mixed");
      if (row.verdict == "slower" && measure == measures[0]) how = SlowerRow::How::kCompared;
      if (!how) continue;
      found.how = *how;
      slower.push_back(found);
    }
  }
  return slower;
}

}  // namespace spillway::report
