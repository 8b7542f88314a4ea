#include "report/page_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/compare_runs.h"
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
    case Measure::kPrefill:
      return "Prefill, tok/s";
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
  if (measure == Measure::kPrefill) value = row.prefill_tok_s;
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

std::optional<Measure> judged_measure(const ResultFile& result) {
  if (result.goal == "mixed") return {};
  const Measure first = measures_of(result.goal)[0];
  const bool is_known =
      std::ranges::any_of(result.rows, [&](const Row& row) { return value_of(row, first).has_value(); });
  return is_known || first != Measure::kDecode ? first : Measure::kPrefill;
}

namespace {

// How many times as fast; 1 where one of them does not know.
double speed_ratio(const Row& row, const Row& first, Measure measure) {
  const auto a = value_of(first, measure), b = value_of(row, measure);
  if (!a || !b) return 1;
  return measure == Measure::kDecode || measure == Measure::kPrefill ? *b / *a : *a / *b;
}

// The index of the one setting that a measured row is about.
std::optional<uint32_t> setting_of(const ResultFile& result, const Row& row) {
  const auto is_it = [&](const Setting& setting) { return setting.name == row.setting; };
  if (row.label != Label::kMeasured || std::ranges::count_if(result.settings, is_it) != 1) return {};
  return static_cast<uint32_t>(std::ranges::find_if(result.settings, is_it) - result.settings.begin());
}

RunValue run_value(Measure measure) {
  switch (measure) {
    case Measure::kPrefill:
      return {prefill_tok_s, Better::kHigher};
    case Measure::kTtft:
      return {ttft_s, Better::kLower};
    case Measure::kDecode:
    case Measure::kP95:
      break;
  }
  return {decode_tok_s, Better::kHigher};
}

class SlowerFinder {
 public:
  explicit SlowerFinder(const ResultFile& result) : result_(result), judged_(judged_measure(result)) {}

  // Nothing: it is not slower.
  std::optional<SlowerRow> find(size_t index, size_t than, Measure measure) const {
    using How = SlowerRow::How;
    const Row &row = result_.rows[index], &first = result_.rows[than];
    SlowerRow found{index, than, measure, speed_ratio(row, first, measure), How::kCompared, {}};
    const auto as = [&](How how) {
      found.how = how;
      return std::optional(found);
    };
    const bool is_mixed_goals = !judged_ && measure == measures_of(result_.goal)[0];
    if (row.verdict == "slower" && (measure == judged_ || is_mixed_goals)) return as(How::kCompared);
    // A difference below 3 % is none for people (report/statistics.h, kMargin).
    const bool is_less = row.label == first.label && found.ratio < 1 - kMargin;
    if (measure == judged_ && !row.verdict.empty())
      return is_less && row.verdict == "not resolved" ? as(How::kNotResolved) : std::nullopt;
    const auto a = setting_of(result_, first), b = setting_of(result_, row);
    if (a && b && a != b && measure != Measure::kP95) {
      if (!same_work(result_.settings[*a], result_.settings[*b])) return {};
      const Comparison compared = compare_runs(result_, *a, *b, run_value(measure));
      if (compared.pairs >= kFewestPairs) found.compared = compared;
      if (compared.verdict == Verdict::kSlower) return as(How::kCompared);
      if (compared.pairs > 0)
        return is_less && compared.verdict == Verdict::kNotResolved ? as(How::kNotResolved) : std::nullopt;
    }
    if (!is_less) return {};
    return as(row.verdict.empty() ? How::kNumbers : How::kOtherGoal);
  }

 private:
  const ResultFile& result_;
  const std::optional<Measure> judged_;
};

}  // namespace

std::vector<SlowerRow> slower_rows(const ResultFile& result) {
  std::vector<SlowerRow> slower;
  std::vector<Measure> measures = measures_of(result.goal);
  for (const Measure always : {Measure::kDecode, Measure::kPrefill, Measure::kTtft})
    if (std::ranges::find(measures, always) == measures.end()) measures.push_back(always);
  const SlowerFinder finder(result);
  for (size_t i = 0; i < result.rows.size(); ++i) {
    size_t first = 0;
    while (result.rows[first].machine != result.rows[i].machine) ++first;
    for (const Measure measure : measures)
      if (const auto found = finder.find(i, first, measure)) slower.push_back(*found);
  }
  return slower;
}

}  // namespace spillway::report
