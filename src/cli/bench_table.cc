#include "cli/bench_table.h"

#include <algorithm>
#include <numeric>

#include "cli/common.h"
#include "cli/text_table.h"
#include "report/page_data.h"
#include "report/summary.h"
#include "report/words.h"

namespace spillway::cli {
namespace {

using report::Summary;

// The cold or the warm runs of a setting.
struct Line {
  uint32_t setting = 0;
  bool warm = false;
  Summary sum;
  const report::Row* row = nullptr;
};

std::vector<Line> lines_of(const report::ResultFile& result) {
  std::vector<Line> lines;
  size_t row = 0;  // of the settings that ran, in their order
  for (uint32_t s = 0; s < result.settings.size(); ++s) {
    const size_t before = lines.size();
    for (const bool warm : {true, false})
      if (const auto runs = report::runs_of(result, s, warm); !runs.empty())
        lines.push_back({s, warm, report::summarize(runs), &result.rows[row]});
    if (lines.size() > before) ++row;
  }
  return lines;
}

// "" for what was not seen, so that its column can go.
std::string number(double value, int digits) {
  return value > 0 ? fmt::format("{:.{}f}", value, digits) : "";
}
std::string bytes(uint64_t n) { return n > 0 ? format_bytes(n) : ""; }

std::string runs_text(const Line& line) {
  return fmt::format("{} {}", line.sum.runs, line.warm ? "warm" : "cold");
}

std::string interval_text(const Line& line) {
  const report::Row& row = *line.row;
  return line.warm && row.decode_low ? fmt::format("{:.1f} to {:.1f}", *row.decode_low, *row.decode_high)
                                     : "";
}

TextTable speeds(const report::ResultFile& result, const std::vector<Line>& lines) {
  TextTable table({"setting", "runs", "prefill tok/s", "decode tok/s", "95 % of decode", "TTFT s", "hits",
                   "cache",
                   report::judged_measure(result) == report::Measure::kPrefill ? "prefill against the first"
                                                                               : "decode against the first"});
  for (const Line& line : lines)
    table.add({result.settings[line.setting].name, runs_text(line), number(line.sum.prefill_tok_s, 1),
               number(line.sum.decode_tok_s, 1), interval_text(line),
               result.workload.requests > 0 ? number(line.sum.ttft_s, 3) : "",
               line.sum.hit_rate ? fmt::format("{:.1f} %", 100 * *line.sum.hit_rate) : "",
               bytes(static_cast<uint64_t>(line.row->cache_bytes)), line.warm ? line.row->verdict : ""});
  return table;
}

TextTable latencies(const report::ResultFile& result, const std::vector<Line>& lines) {
  TextTable table({"setting", "runs", "ITL p50 ms", "p95", "p99", "stalls", "copied", "CPU s", "host peak",
                   "device peak"});
  for (const Line& line : lines)
    table.add({result.settings[line.setting].name, runs_text(line), number(line.sum.p50_itl_ms, 2),
               number(line.sum.p95_itl_ms, 2), number(line.sum.p99_itl_ms, 2),
               line.sum.itl_count > 0 ? fmt::format("{} of {}", line.sum.stalls, line.sum.itl_count) : "",
               bytes(line.sum.bytes_up), number(line.sum.cpu_s, 2), bytes(line.sum.host_peak_bytes),
               bytes(line.sum.device_peak_bytes)});
  return table;
}

TextTable all_figures(const report::ResultFile& result, const std::vector<Line>& lines) {
  TextTable table({"setting",       "state",        "runs",       "label",           "seconds",
                   "prefill_tok_s", "decode_tok_s", "decode_low", "decode_high",     "ttft_s",
                   "itl_p50_ms",    "itl_p95_ms",   "itl_p99_ms", "stalls",          "itl_count",
                   "hit_rate",      "bytes_up",     "cpu_s",      "host_peak_bytes", "device_peak_bytes",
                   "cache_bytes",   "verdict"});
  const auto optional = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : "";
  };
  for (const Line& line : lines) {
    const Summary& s = line.sum;
    table.add({result.settings[line.setting].name,
               line.warm ? "warm" : "cold",
               fmt::format("{}", s.runs),
               std::string(label_name(line.row->label)),
               fmt::format("{}", s.seconds),
               fmt::format("{}", s.prefill_tok_s),
               fmt::format("{}", s.decode_tok_s),
               line.warm ? optional(line.row->decode_low) : "",
               line.warm ? optional(line.row->decode_high) : "",
               fmt::format("{}", s.ttft_s),
               fmt::format("{}", s.p50_itl_ms),
               fmt::format("{}", s.p95_itl_ms),
               fmt::format("{}", s.p99_itl_ms),
               fmt::format("{}", s.stalls),
               fmt::format("{}", s.itl_count),
               optional(s.hit_rate),
               fmt::format("{}", s.bytes_up),
               fmt::format("{}", s.cpu_s),
               fmt::format("{}", s.host_peak_bytes),
               fmt::format("{}", s.device_peak_bytes),
               fmt::format("{}", static_cast<uint64_t>(line.row->cache_bytes)),
               line.warm ? line.row->verdict : ""});
  }
  return table;
}

std::string head(const report::ResultFile& result, const char* mark) {
  const report::Machine& m = result.machine;
  std::string text = fmt::format("{}{} ({}) on {}, {}, {}; device: {}\n", mark,
                                 result.model.name.empty() ? "model" : result.model.name, result.model.file,
                                 m.cpu.empty() ? "an unnamed CPU" : m.cpu,
                                 report::count_text(m.cores, "core"), m.system, m.device);
  text += mark;
  if (result.workload.requests > 0)
    text += fmt::format("workload '{}': {} of {}", result.workload.name,
                        report::count_text(result.workload.requests, "request"),
                        report::count_text(result.workload.users, "user"));
  else
    text += fmt::format("plain tokens of real text, {}", result.workload.name);
  return text + fmt::format("; all figures are measured, by spillway {}\n", result.build.version);
}

std::string finishes(const std::vector<Line>& lines) {
  std::map<std::string, uint32_t> sums;
  for (const Line& line : lines)
    for (const auto& [finish, n] : line.sum.finishes) sums[finish] += n;
  std::string text;
  for (const auto& [finish, n] : sums) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, finish);
  return text;
}

}  // namespace

std::string bench_tables(const report::ResultFile& result, TableForm form) {
  const std::vector<Line> lines = lines_of(result);
  if (form == TableForm::kCsv) return all_figures(result, lines).csv();
  const bool markdown = form == TableForm::kMarkdown;
  const auto shown = [&](TextTable table) {
    table.drop_empty_columns();
    return markdown ? table.markdown() : table.text();
  };
  std::string text =
      head(result, "") + "\n" + shown(speeds(result, lines)) + "\n" + shown(latencies(result, lines));
  if (result.workload.requests > 0) text += fmt::format("\nanswers ended by: {}", finishes(lines));
  if (std::ranges::any_of(lines, [](const Line& line) { return !interval_text(line).empty(); }))
    text +=
        "\n95 % of decode: where the decode speed, which is the total of all runs, lies (bootstrap over "
        "runs)";
  text +=
      fmt::format("\na stall is a token that takes more than {} times the median\n", report::kStallMultiple);
  if (!result.conclusion.empty()) text += "\n" + result.conclusion + "\n";
  for (const std::string& note : result.notes)
    text += fmt::format("{}note: {}\n", markdown ? "\n" : "", note);
  return text;
}

}  // namespace spillway::cli
