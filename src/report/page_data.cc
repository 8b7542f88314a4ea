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

double decode_tok_s(const Run& run) {
  double tokens = 0, seconds = 0;
  for (const Request& request : run.requests) {
    tokens += static_cast<double>(request.itl_ms.size());
    seconds += request.decode_s;
  }
  return seconds > 0 ? tokens / seconds : 0;
}

bool was_busy(const Run& run) { return run.load.other_cpu > kBusyCores; }
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

std::vector<SlowerRow> slower_rows(const ResultFile& result) {
  std::vector<SlowerRow> slower;
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const Row& row = result.rows[i];
    size_t first = 0;
    while (result.rows[first].machine != row.machine) ++first;
    const double ratio = result.rows[first].decode_tok_s > 0 && row.decode_tok_s > 0
                             ? row.decode_tok_s / result.rows[first].decode_tok_s
                             : 1;
    const bool judged = row.verdict == "slower";
    // A difference below 3 % is none for people (report/statistics.h, kMargin).
    if (judged || (row.verdict.empty() && row.label == result.rows[first].label && ratio < 1 - kMargin))
      slower.push_back({i, first, ratio, judged});
  }
  return slower;
}

}  // namespace spillway::report
