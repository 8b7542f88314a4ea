// What to know before believing runs (notes_about() of report/summary.h).
#include <algorithm>
#include <cmath>

#include "report/page_data.h"
#include "report/summary.h"
#include "report/words.h"

namespace spillway::report {
namespace {

void note_load(const ResultFile& result, std::vector<std::string>& notes) {
  size_t busy = 0, throttled = 0;
  double most = 0, most_throttled = 0;
  for (const Run& run : result.runs) {
    if (was_busy(run)) ++busy, most = std::max(most, run.load.other_cpu);
    if (was_throttled(run))
      ++throttled, most_throttled = std::max(most_throttled, run.load.throttled_s / run.seconds);
  }
  if (result.machine.cores > 0) most = std::min(most, static_cast<double>(result.machine.cores));
  if (busy > 0)
    notes.push_back(fmt::format(
        "The machine was busy: during {} of {} runs other programs used up to {:.1f} of its {} cores, so "
        "speeds are lower and scatter more than on a quiet machine.",
        busy, result.runs.size(), most, result.machine.cores));
  if (throttled > 0)
    notes.push_back(fmt::format(
        "The CPU quota of this process's group held it back during {} of {} runs, for up to {:.0f} % of the "
        "time: a thread less, or a larger quota, may be faster.",
        throttled, result.runs.size(), 100 * most_throttled));
}

void note_cut(const ResultFile& result, std::vector<std::string>& notes) {
  const auto cut = [](const Run& run) { return !run.cut_short.empty(); };
  const auto first = std::ranges::find_if(result.runs, cut);
  if (first == result.runs.end()) return;
  notes.push_back(fmt::format(
      "The measurement was cut short ({}) in {} of {}: what was measured until then is here.",
      first->cut_short, std::ranges::count_if(result.runs, cut), count_text(result.runs.size(), "run")));
}

void note_series(const std::string& setting, const char* what, std::span<const double> rates,
                 std::vector<std::string>& notes) {
  if (const Drift drift = find_drift(rates); drift.seen)
    notes.push_back(
        fmt::format("{}: {} went {} by {:.1f} % from the first run to the last: a machine that gets warm, "
                    "or busier. Runs of settings that were compared alternate, so that this cancels.",
                    setting, what, drift.change < 0 ? "down" : "up", 100 * std::abs(drift.change)));
  if (const Modes modes = find_modes(rates); modes.two)
    notes.push_back(
        fmt::format("{}: {} has two levels, {:.1f} and {:.1f} tok/s ({:.0f} % of the runs): look for what "
                    "changes in between, such as another clock frequency.",
                    setting, what, modes.low, modes.high, 100 * modes.share_high));
  constexpr size_t kFewest = 5;    // of fewer, none is far from "the others"
  constexpr double kLeast = 0.05;  // less is no news
  const double middle = median(rates);
  if (rates.size() < kFewest) return;
  for (const size_t i : outliers(rates))
    if (std::abs(rates[i] / middle - 1) > kLeast)
      notes.push_back(
          fmt::format("{}: run {} of {} is far from the others in {} ({:.1f} tok/s, the median is {:.1f}); "
                      "it counts all the same.",
                      setting, i + 1, rates.size(), what, rates[i], middle));
}

void note_ends(const ResultFile& result, std::vector<std::string>& notes) {
  uint32_t full = 0;
  for (const Run& run : result.runs)
    for (const Request& request : run.requests) full += request.finish == "context" ? 1 : 0;
  if (full > 0)
    notes.push_back(
        fmt::format("{} answer{} ended because the context was full: a larger -c has room for all.", full,
                    full == 1 ? "" : "s"));
}

}  // namespace

std::vector<std::string> disturbances(const ResultFile& result) {
  std::vector<std::string> notes;
  note_cut(result, notes);
  note_load(result, notes);
  return notes;
}

std::vector<std::string> notes_about(const ResultFile& result) {
  std::vector<std::string> notes = disturbances(result);
  note_ends(result, notes);
  for (uint32_t s = 0; s < result.settings.size(); ++s) {
    const std::vector<const Run*> runs = runs_of(result, s, true);
    note_series(result.settings[s].name, "decode", rates_of(runs, decode_tok_s), notes);
    note_series(result.settings[s].name, "prefill", rates_of(runs, prefill_tok_s), notes);
  }
  return notes;
}

}  // namespace spillway::report
