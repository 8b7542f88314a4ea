// What a page draws, worked out of a result once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/result.h"
#include "report/summary.h"

namespace spillway::report {

// Of one setting, over its runs.
struct SettingSummary {
  std::string name;
  uint32_t index = 0;  // of the result's settings; its colour
  uint32_t cold_runs = 0, warm_runs = 0;
  // Of the warm runs, or of the cold ones where there are no others; ascending.
  std::vector<double> itl_ms, ttft_s;
  bool only_cold = false;
};
// Of the settings that ran, in order.
std::vector<SettingSummary> summarize(const ResultFile& result);

// What is to be known of a run before it is believed: cold, cut short, a busy or throttled machine.
inline constexpr double kBusyCores = 0.25;        // used by other processes
inline constexpr double kThrottledShare = 0.005;  // of the run's time
bool was_busy(const Run& run);
bool was_throttled(const Run& run);

// Of each run, whether its speed is an outlier among the warm runs of its setting (report/statistics.h).
std::vector<bool> outlier_runs(const ResultFile& result);

// What a row is called on a page: its setting's name, with its machine where it has one.
std::string row_name(const Row& row);
std::string share_name(const Row& row);  // "share 0.5", "share auto"

// The rows that a page shows at first: all, or of many the measured ones where there are some. Predicted
// grids have hundreds of rows, which curves and a closed table show.
std::vector<const Row*> leading_rows(const ResultFile& result);

// What settings are held against each other by.
enum class Measure : uint8_t { kDecode, kPrefill, kTtft, kP95 };
// "Decode, tok/s", "Prefill, tok/s", "TTFT, ms", "ITL p95, ms"
const char* measure_name(Measure measure);
// In the unit of that name; nothing where it is not known.
std::optional<double> value_of(const Row& row, Measure measure);
// What a page shows of a goal, that which its verdicts are about first.
std::vector<Measure> measures_of(const std::string& goal);
// What the verdicts of the rows are about: the goal's measure; of a bench without decoding, prefill. Nothing
// of the mixed goal.
std::optional<Measure> judged_measure(const ResultFile& result);

// Rows that were, or came out, slower than the first row of the same machine: by the goal's measure, in
// decode and prefill speed and in the time to the first token. The rows' verdicts are about the first of
// these; the others are compared run by run where there are runs of the same work. What has neither is
// compared with what has the same label only.
struct SlowerRow {
  enum class How : uint8_t {
    kCompared,     // the verdict says so
    kNotResolved,  // its number is worse by more than 3 %, the verdict is open
    kOtherGoal,    // its number is worse, the verdict is about something else
    kNumbers,      // its number is worse, nothing was compared
  };
  size_t row = 0;
  size_t than = 0;
  Measure measure = Measure::kDecode;
  double ratio = 1;  // of speeds
  How how = How::kNumbers;
  std::optional<Comparison> compared;  // of the runs, where that is what it is known by
};
std::vector<SlowerRow> slower_rows(const ResultFile& result);

}  // namespace spillway::report
