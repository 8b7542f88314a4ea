#include "report/page_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/page_data.h"
#include "report/words.h"

namespace spillway::report {
namespace {

constexpr Column::Kind kNumber = Column::Kind::kNumber;

// Leaves out columns in which no row has anything.
void drop_empty_columns(Table& table) {
  for (size_t c = table.columns.size(); c-- > 0;) {
    const auto is_empty = [&](const auto& row) { return row[c].empty(); };
    if (!std::ranges::all_of(table.rows, is_empty)) continue;
    table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(c));
    for (auto& row : table.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(c));
  }
}

std::string known(std::optional<double> value) { return value ? number_text(*value) : ""; }
std::string milliseconds(std::optional<double> seconds) {
  return seconds ? number_text(1000 * *seconds) : "";
}
std::string positive(double value) { return value > 0 ? number_text(value) : ""; }

// Of the measured value: "-3.1 %".
std::string prediction_error(const Row& row) {
  if (!row.predicted_tok_s || !(row.decode_tok_s > 0) || row.label != Label::kMeasured) return "";
  const double error = *row.predicted_tok_s / row.decode_tok_s - 1;
  return std::isfinite(error) ? fmt::format("{:+.1f} %", 100 * error) : "";
}

std::string remarks(const Run& run, bool is_outlier) {
  std::vector<std::string> all;
  if (is_outlier) all.emplace_back("an outlier of its setting");
  if (was_busy(run))
    all.push_back(fmt::format("busy: others used {} cores", short_number(run.load.other_cpu)));
  if (was_throttled(run))
    all.push_back(fmt::format("throttled for {} s by a CPU quota", short_number(run.load.throttled_s)));
  if (!run.cut_short.empty()) all.push_back("cut short: " + run.cut_short);
  return fmt::format("{}", fmt::join(all, "; "));
}

std::string finishes(const Run& run) {
  std::map<std::string, uint32_t> count;
  for (const Request& request : run.requests) ++count[request.finish.empty() ? "not known" : request.finish];
  std::string text;
  for (const auto& [finish, n] : count) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, finish);
  return text;
}

}  // namespace

std::string verdict_title(const ResultFile& result) {
  const auto judged = judged_measure(result);
  if (!judged) return "Against the first, mixed goal";
  const std::string_view name = measure_name(*judged);
  return fmt::format("{} against the first", name.substr(0, name.find(',')));
}

Table table_of_rows(std::string title, const ResultFile& result, std::span<const Row* const> rows) {
  Table table{std::move(title),
              {{"Setting"},
               {"Label"},
               {"Cache", kNumber},
               {"Share", kNumber},
               {"Decode, tok/s", kNumber},
               {"Prefill, tok/s", kNumber},
               {"TTFT, ms", kNumber},
               {"ITL p95, ms", kNumber},
               {"Hits", kNumber},
               {"Predicted", kNumber},
               {"Error", kNumber},
               {verdict_title(result)}}};
  for (const Row* row : rows)
    table.rows.push_back(
        {row_name(*row), std::string(label_name(row->label)),
         row->cache_bytes > 0 || !row->share.empty() ? bytes_text(row->cache_bytes) : "", row->share,
         row->decode_tok_s > 0 ? interval_text(row->decode_tok_s, row->decode_low, row->decode_high) : "",
         positive(row->prefill_tok_s), milliseconds(row->ttft_s), known(row->p95_itl_ms),
         row->hit_rate ? percent_text(*row->hit_rate) : "", known(row->predicted_tok_s),
         prediction_error(*row), row->verdict});
  drop_empty_columns(table);
  return table;
}

Table table_of_slower(const ResultFile& result) {
  const auto how_words = [&](const SlowerRow& slower) -> std::string {
    const std::string figures =
        slower.compared
            ? fmt::format(" ({} times as fast; 95 %: {} to {}; {} pairs of runs)",
                          number_text(slower.compared->ratio), number_text(slower.compared->interval.low),
                          number_text(slower.compared->interval.high), slower.compared->pairs)
            : "";
    switch (slower.how) {
      case SlowerRow::How::kCompared:
        return (result.goal == "mixed" && !slower.compared ? "compared by the mixed goal, beyond the noise"
                                                           : "compared beyond the noise") +
               figures;
      case SlowerRow::How::kNotResolved:
        return "slower in the numbers, but not resolved: it may be noise" + figures;
      case SlowerRow::How::kOtherGoal:
        return fmt::format("the numbers alone; what was compared is {}",
                           result.goal == "ttft"    ? "the time to the first token"
                           : result.goal == "p95"   ? "the 95th percentile between tokens"
                           : result.goal == "mixed" ? "the mixed goal"
                                                    : "decoding");
      case SlowerRow::How::kNumbers:
        break;
    }
    return "the numbers alone; not compared";
  };
  const auto text = [](const Row& row, Measure measure) {
    return measure == Measure::kDecode ? interval_text(row.decode_tok_s, row.decode_low, row.decode_high)
                                       : known(value_of(row, measure));
  };
  // Texts wrap where numbers don't: seven columns have to find room.
  Table table{"Slower than the first",
              {{"Setting"},
               {"Label"},
               {"In what"},
               {"This one"},
               {"The first"},
               {"Slower by", kNumber},
               {"How it is known"}}};
  for (const SlowerRow& slower : slower_rows(result)) {
    const Row &row = result.rows[slower.row], &first = result.rows[slower.than];
    table.rows.push_back({row_name(row), std::string(label_name(row.label)), measure_name(slower.measure),
                          text(row, slower.measure),
                          fmt::format("{}, {}", text(first, slower.measure), label_name(first.label)),
                          slower.ratio < 1 ? percent_text(1 - slower.ratio) : "", how_words(slower)});
  }
  return table;
}

// Counts are whole, and a share is a percentage: never rounded up to all.
std::string value_text(const Term& term, double value) {
  if (term.unit == "share" && value >= 0 && value < 1)
    return fmt::format("{:.2f} %", std::floor(10'000 * value) / 100);
  if (term.unit == "share") return percent_text(value);
  if ((term.unit.starts_with("token") || term.unit == "rows") && value >= 0 && value < kMostDrawn &&
      value == std::floor(value))
    return count_text(static_cast<uint64_t>(value));
  return number_text(value);
}
std::string value_text(const Term& term, std::optional<double> value) {
  return value ? value_text(term, *value) : number_text(value);
}

std::vector<Table> tables_of_terms(const ResultFile& result) {
  const char* spread = result.kind == "probe" ? "Middle half of the repetitions" : "95 % interval";
  std::vector<Table> tables;
  for (const Term& term : result.terms) {
    const std::string& title = term.group.empty() ? "Terms and values" : term.group;
    auto table = std::ranges::find(tables, title, &Table::title);
    if (table == tables.end())
      table = tables.insert(
          table,
          {title, {{"Name"}, {"Value", kNumber}, {"Unit"}, {spread, kNumber}, {"Label"}, {"Note"}}, {}});
    table->rows.push_back({term.name, value_text(term, term.value), term.unit == "share" ? "" : term.unit,
                           term.low || term.high ? fmt::format("{} to {}", value_text(term, term.low),
                                                               value_text(term, term.high))
                                                 : "",
                           std::string(label_name(term.label)), term.note});
  }
  for (Table& table : tables) drop_empty_columns(table);
  return tables;
}

Table table_of_curves(const CurveSet& set) {
  std::set<double> all_x;
  for (const Curve& curve : set.curves)
    for (const CurvePoint& point : curve.points) all_x.insert(point.x);
  Table table{fmt::format("{}, {} ({})", set.title, set.unit, label_name(set.label)), {{"Which"}}, {}};
  for (const double x : all_x)
    table.columns.push_back({fmt::format("{} {}", short_number(x), set.x), kNumber});
  for (const Curve& curve : set.curves) {
    std::vector<std::string> row = {curve.name};
    for (const double x : all_x) {
      const auto point = std::ranges::find(curve.points, x, &CurvePoint::x);
      row.push_back(point == curve.points.end() ? "" : interval_text(point->value, point->low, point->high));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table table_of_runs(const ResultFile& result) {
  Table table{"Every run, in the order in which they ran (measured)",
              {{"Run"},
               {"Setting"},
               {"State"},
               {"Decode, tok/s", kNumber},
               {"Seconds", kNumber},
               {"CPU seconds", kNumber},
               {"Host peak", kNumber},
               {"Device peak", kNumber},
               {"Cores used by others", kNumber},
               {"Requests ended by"},
               {"To be looked at"}}};
  const std::vector<bool> is_outlier = outlier_runs(result);
  for (size_t i = 0; i < result.runs.size(); ++i) {
    const Run& run = result.runs[i];
    const auto peak = [](uint64_t bytes) { return bytes > 0 ? bytes_text(static_cast<double>(bytes)) : ""; };
    table.rows.push_back({fmt::format("{}", i + 1), result.settings[run.setting].name,
                          run.warm ? "warm" : "cold", positive(decode_tok_s(run)), number_text(run.seconds),
                          positive(run.cpu_s), peak(run.host_peak_bytes), peak(run.device_peak_bytes),
                          run.seconds < kShortestLoadSeconds ? "not known" : short_number(run.load.other_cpu),
                          finishes(run), remarks(run, is_outlier[i])});
  }
  drop_empty_columns(table);
  return table;
}

Table table_of_origin(const ResultFile& result) {
  Table table{"", {{"What"}, {"Which"}}};
  const auto add = [&](const char* what, const std::string& which) {
    if (!which.empty()) table.rows.push_back({what, which});
  };
  const auto size = [](uint64_t bytes) {
    return bytes > 0 ? ", " + bytes_text(static_cast<double>(bytes)) : std::string();
  };
  const Model& model = result.model;
  if (!model.name.empty() || !model.file.empty())
    add("Model",
        fmt::format("{} ({}{})", model.name.empty() ? "unnamed" : model.name, model.file, size(model.bytes)));
  add("Content of the model", model.content);
  const Machine& machine = result.machine;
  if (!machine.cpu.empty())
    add("Processor", machine.cores > 0
                         ? fmt::format("{}, {} usable", machine.cpu, count_text(machine.cores, "core"))
                         : machine.cpu);
  if (machine.memory_bytes > 0)
    add("Memory", bytes_text(static_cast<double>(machine.memory_bytes)) + " usable");
  if (!machine.device.empty())
    add("Device", machine.device + size(machine.device_bytes) +
                      (machine.driver.empty() ? "" : ", driver " + machine.driver));
  add("System", machine.system);
  const Build& build = result.build;
  if (!build.version.empty())
    add("Build", fmt::format("{}, {}, {}", build.version, build.compiler, build.type));
  const Workload& workload = result.workload;
  if (!workload.name.empty())
    add("Workload", workload.requests > 0
                        ? fmt::format("{}: {} a run, {} at once", workload.name,
                                      count_text(workload.requests, "request"), workload.users)
                        : workload.name);
  add("Content of the workload", workload.content);
  add("Made", result.created);
  add("Command", result.command);
  return table;
}

Table table_of_differing_flags(const ResultFile& result) {
  std::map<std::string, std::set<std::string>> values;
  for (const Setting& setting : result.settings)
    for (const auto& [flag, value] : setting.flags) values[flag].insert(value);
  Table table{"In what the settings differ", {{"Setting"}}};
  std::vector<std::string> differing;
  for (const auto& [flag, all] : values) {
    const bool everywhere = std::ranges::all_of(
        result.settings, [&](const Setting& setting) { return setting.flags.contains(flag); });
    if (all.size() > 1 || !everywhere) differing.push_back(flag);
  }
  if (differing.empty()) return table;
  for (const std::string& flag : differing) table.columns.push_back({flag});
  for (const Setting& setting : result.settings) {
    std::vector<std::string> row = {setting.name};
    for (const std::string& flag : differing) {
      const auto found = setting.flags.find(flag);
      row.push_back(found == setting.flags.end() ? "\u2013" : found->second);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table table_of_all_flags(const ResultFile& result) {
  Table table{"All settings in full", {{"Setting"}, {"Flags"}}};
  for (const Setting& setting : result.settings) {
    std::string flags;
    for (const auto& [flag, value] : setting.flags)
      flags += fmt::format("{}{} {}", flags.empty() ? "" : " ", flag, value);
    table.rows.push_back({setting.name, flags});
  }
  return table;
}

Table table_of_results(std::span<const NamedResult> results) {
  Table table{"The results on this page", {{"Result"}, {"File"}, {"Kind"}, {"Made"}, {"Against result 1"}}};
  for (size_t i = 0; i < results.size(); ++i) {
    const ResultFile& result = results[i].result;
    std::string against;
    if (i > 0) {
      const std::vector<std::string> all = differences(results[0].result, result);
      const std::vector<std::string> unknown = not_known(results[0].result, result);
      against = !all.empty()      ? fmt::format("not comparable: see result {}", i + 1)
                : unknown.empty() ? "same build, machine, model and workload"
                                  : fmt::format("the same as far as both tell, which they do not of: {}",
                                                fmt::join(unknown, ", "));
    }
    table.rows.push_back({fmt::format("{}", i + 1), results[i].file, result.kind, result.created, against});
  }
  return table;
}

}  // namespace spillway::report
