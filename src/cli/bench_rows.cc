#include "cli/bench_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/compare_runs.h"
#include "report/summary.h"
#include "report/words.h"
#include "tune/fingerprint.h"

namespace spillway::cli {
namespace {

using report::Run;

void mark_cold(report::ResultFile& result) {
  if (result.settings.size() != 1) return;
  const std::vector<const Run*> warm = report::runs_of(result, 0, true);
  std::vector<double> rates = report::rates_of(warm, report::decode_tok_s);
  if (rates.empty()) rates = report::rates_of(warm, report::prefill_tok_s);
  size_t cold = report::count_cold(rates, report::Better::kHigher);
  if (cold == 0) return;
  result.notes.push_back(fmt::format(
      "The first {} run{} after the cold one {} slower than the later half by more than 3 % and twice that "
      "half's range: counted as cold.",
      cold, cold == 1 ? "" : "s", cold == 1 ? "was" : "were"));
  for (Run& run : result.runs)
    if (run.warm && cold > 0) run.warm = false, --cold;
}

std::string share_of(const report::Setting& setting) {
  const auto found = setting.flags.find("--moe-cache-cpu-share");
  return found == setting.flags.end() ? "" : found->second;
}

report::Row row_of(const report::ResultFile& result, uint32_t setting, double cache_bytes) {
  const std::vector<const Run*> runs = report::runs_of(result, setting, true);
  const report::Summary sum = report::summarize(runs);
  report::Row row{.setting = result.settings[setting].name,
                  .label = Label::kMeasured,
                  .cache_bytes = cache_bytes,
                  .share = share_of(result.settings[setting]),
                  .decode_tok_s = sum.decode_tok_s,
                  .prefill_tok_s = sum.prefill_tok_s,
                  .hit_rate = sum.hit_rate};
  if (const auto decoded = report::amounts_of(runs, report::decode_amount); decoded.size() > 1) {
    const report::Interval interval = report::bootstrap_rate(decoded);
    row.decode_low = interval.low;
    row.decode_high = interval.high;
  }
  if (sum.ttft_s > 0) row.ttft_s = sum.ttft_s;
  if (sum.itl_count > 0) row.p95_itl_ms = sum.p95_itl_ms;
  return row;
}

std::string sentence(const report::Setting& a, const report::Setting& b, const char* what,
                     const report::Comparison& c) {
  if (c.pairs < report::kFewestPairs)
    return fmt::format(
        "{} of '{}' against '{}': {} of runs can't tell a difference from chance, at least {} can.", what,
        b.name, a.name, report::count_text(c.pairs, "pair"), report::kFewestPairs);
  return fmt::format("{} of '{}' against '{}': {:.3f} times (95 %: {:.3f} to {:.3f}; {} pairs): {}.", what,
                     b.name, a.name, c.ratio, c.interval.low, c.interval.high, c.pairs,
                     report::verdict_name(c.verdict));
}

std::string workload_text(const report::Workload& workload) {
  if (workload.requests == 0) return fmt::format("'{}'", workload.name);
  return fmt::format("'{}' ({} of {}, content {})", workload.name,
                     report::count_text(workload.requests, "request"),
                     report::count_text(workload.users, "user"), workload.content);
}

bool ran(const report::ResultFile& result, uint32_t setting) {
  return !report::runs_of(result, setting, true).empty() || !report::runs_of(result, setting, false).empty();
}

std::string quoted(const std::vector<std::string>& names) {
  return fmt::format("'{}'", fmt::join(names, "', '"));
}

// Where the measurement was stopped: how many of the asked runs each setting has.
void note_unfinished(report::ResultFile& result, uint32_t repetitions) {
  std::map<uint32_t, std::vector<std::string>, std::greater<>> by_count;
  std::vector<std::string> missing;
  for (uint32_t s = 0; s < result.settings.size(); ++s) {
    uint32_t whole = 0;
    for (const Run* run : report::runs_of(result, s, true)) whole += run->cut_short.empty() ? 1 : 0;
    if (ran(result, s))
      by_count[whole].push_back(result.settings[s].name);
    else
      missing.push_back(result.settings[s].name);
  }
  if (missing.empty() && by_count.begin()->first >= repetitions && by_count.size() == 1) return;
  std::string text = fmt::format("Interrupted: of the {} of each setting that were asked for,",
                                 report::count_text(repetitions, "warm run"));
  for (const auto& [whole, names] : by_count)
    text += fmt::format("{} {} of {}", text.ends_with(',') ? "" : ";", whole, quoted(names));
  text += " came to their end.";
  if (!missing.empty()) text += fmt::format(" Not run, and in no table: {}.", quoted(missing));
  result.notes.push_back(std::move(text));
}

void note_other_work(report::ResultFile& result) {
  std::vector<std::string> others;
  for (uint32_t s = 1; s < result.settings.size(); ++s)
    if (ran(result, s) && !report::same_work(result.settings[0], result.settings[s]))
      others.push_back(result.settings[s].name);
  if (!others.empty())
    result.notes.push_back(
        fmt::format("Only what did the same work as the first setting is compared with it. Without a "
                    "verdict, as -p or -n is another: {}.",
                    quoted(others)));
}

}  // namespace

void conclude(report::ResultFile& result, const std::vector<double>& cache_bytes, uint32_t repetitions) {
  note_unfinished(result, repetitions);
  note_other_work(result);
  mark_cold(result);
  std::string words;
  bool any_ratio = false;
  for (uint32_t s = 0; s < result.settings.size(); ++s) {
    if (!ran(result, s)) continue;
    report::Row& row = result.rows.emplace_back(row_of(result, s, cache_bytes[s]));
    const report::Setting &a = result.settings[0], &b = result.settings[s];
    if (s == 0 || !report::same_work(a, b)) continue;
    const report::Comparison decode =
        report::compare_runs(result, 0, s, {report::decode_tok_s, report::Better::kHigher});
    const report::Comparison prefill =
        report::compare_runs(result, 0, s, {report::prefill_tok_s, report::Better::kHigher});
    const bool decodes = row.decode_tok_s > 0;
    any_ratio = any_ratio || decode.pairs >= report::kFewestPairs || prefill.pairs >= report::kFewestPairs;
    row.verdict = report::verdict_name((decodes ? decode : prefill).verdict);
    if (decodes) words += (words.empty() ? "" : "\n") + sentence(a, b, "Decode", decode);
    if (row.prefill_tok_s > 0) words += (words.empty() ? "" : "\n") + sentence(a, b, "Prefill", prefill);
  }
  if (any_ratio) words += "\n" + std::string(report::kRatioWords);
  result.conclusion = words;
  for (const std::string& note : report::notes_about(result)) result.notes.push_back(note);
}

std::vector<std::string> differences(const report::ResultFile& was, const report::ResultFile& is) {
  std::vector<std::string> found = tune::changes(was.build, is.build);
  for (const auto& more : {tune::changes(was.model, is.model), tune::changes(was.machine, is.machine)})
    found.insert(found.end(), more.begin(), more.end());
  if (was.workload != is.workload)
    found.push_back(fmt::format("the workload was {}, now it is {}", workload_text(was.workload),
                                workload_text(is.workload)));
  for (uint32_t s = 0; s < std::min(was.settings.size(), is.settings.size()); ++s)
    for (const auto& [what, amount] :
         {std::pair<const char*, report::Amount (*)(const Run&)>("decode", report::decode_amount),
          {"prefill", report::prefill_amount}}) {
      const auto before = report::amounts_of(report::runs_of(was, s, true), amount);
      const auto now = report::amounts_of(report::runs_of(is, s, true), amount);
      if (before.empty() || now.empty()) continue;
      const std::string words =
          fmt::format("'{}': {} was {:.1f} tok/s, now it is {:.1f}: ", is.settings[s].name, what,
                      report::total_rate(before), report::total_rate(now));
      if (before.size() < report::kFewestPairs || now.size() < report::kFewestPairs) {
        found.push_back(words +
                        fmt::format("{} and {} runs can't tell it from chance", before.size(), now.size()));
        continue;
      }
      const report::Ratio ratio = report::bootstrap_rate_ratio(before, now);
      found.push_back(words + fmt::format("{:.3f} times (95 %: {:.3f} to {:.3f}; totals of {} and {} runs)",
                                          ratio.ratio, ratio.interval.low, ratio.interval.high, before.size(),
                                          now.size()));
    }
  return found;
}

}  // namespace spillway::cli
