#include "report/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/page_charts.h"
#include "report/page_data.h"
#include "report/page_tables.h"
#include "report/statistics.h"
#include "report/summary.h"
#include "report/words.h"

namespace spillway::report {
namespace {

// A section that is left out where nothing was put into it.
class Sections {
 public:
  Sections(Page& page, uint32_t level) : page_(page), level_(level) {}

  void add(std::string title, std::vector<Block> blocks) {
    if (!blocks.empty()) page_.sections.push_back({std::move(title), level_, std::move(blocks)});
  }

 private:
  Page& page_;
  const uint32_t level_;
};

void add(std::vector<Block>& blocks, MaybeFigure figure) {
  if (figure) blocks.emplace_back(*std::move(figure));
}
void add(std::vector<Block>& blocks, Table table) {
  if (!table.rows.empty()) blocks.emplace_back(std::move(table));
}

// What stands on lines of their own, without what sets it in.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
    if (!line.empty()) lines.emplace_back(line);
  }
  return lines;
}

// Drift and two modes, setting by setting.
std::vector<std::string> speed_remarks(const ResultFile& result) {
  std::vector<std::string> remarks;
  for (uint32_t s = 0; s < result.settings.size(); ++s) {
    std::vector<double> speeds;
    for (const Run& run : result.runs)
      if (run.setting == s && run.warm && decode_tok_s(run) > 0) speeds.push_back(decode_tok_s(run));
    const std::string& name = result.settings[s].name;
    if (const Drift drift = find_drift(speeds); drift.seen)
      remarks.push_back(fmt::format("'{}' drifted by {:+.1f} % from its first warm run to its last.", name,
                                    100 * drift.change));
    if (const Modes modes = find_modes(speeds); modes.two)
      remarks.push_back(
          fmt::format("'{}' ran at two speeds, about {} and {} tok/s: another clock frequency or another "
                      "kind of core?",
                      name, number_text(modes.low), number_text(modes.high)));
  }
  return remarks;
}

std::vector<Block> slower_blocks(const ResultFile& result) {
  std::vector<Block> blocks;
  if (result.rows.size() < 2) return blocks;
  Table table = table_of_slower(result);
  if (table.rows.empty())
    blocks.emplace_back(
        Paragraph{fmt::format("Nothing came out slower than '{}', the first row{}.", row_name(result.rows[0]),
                              result.rows[0].machine.empty() ? "" : " of its machine")});
  else
    blocks.emplace_back(std::move(table));
  if (const auto unclear = std::ranges::count(result.rows, "not resolved", &Row::verdict); unclear > 0)
    blocks.emplace_back(Paragraph{fmt::format("{}: for {} of {} rows the runs could not tell.",
                                              verdict_title(result), unclear, result.rows.size() - 1)});
  return blocks;
}

void add_result(Page& page, const ResultFile& result, uint32_t level) {
  Sections sections(page, level);
  std::vector<Block> found;
  if (std::vector<std::string> lines = lines_of(result.conclusion); lines.size() == 1)
    found.emplace_back(Paragraph{std::move(lines[0]), Paragraph::Kind::kConclusion});
  else if (!lines.empty())
    found.emplace_back(List{std::move(lines), Paragraph::Kind::kConclusion});
  List notes{result.notes, Paragraph::Kind::kPlain};
  std::erase(notes.items, "");
  for (std::string& warning : disturbances(result)) {
    std::erase(notes.items, warning);
    found.emplace_back(Paragraph{std::move(warning), Paragraph::Kind::kWarning});
  }
  if (!notes.items.empty()) found.emplace_back(std::move(notes));
  sections.add("What was found", std::move(found));

  std::vector<Block> speed;
  for (MaybeFigure& figure : settings_by_goal(result)) add(speed, std::move(figure));
  const std::vector<const Row*> leading = leading_rows(result);
  add(speed, table_of_rows("What each setting comes to", result, leading));
  // The rows of a plan differ in the machine and not only in the cache: no curve joins them.
  if (result.kind != "plan") {
    add(speed, speed_over_cache(result));
    add(speed, speed_over_share(result));
  }
  if (leading.size() < result.rows.size()) {
    std::vector<const Row*> all;
    all.reserve(result.rows.size());
    for (const Row& row : result.rows) all.push_back(&row);
    speed.emplace_back(Closed{table_of_rows(fmt::format("All {} rows", all.size()), result, all)});
  }
  sections.add("Speed", std::move(speed));
  sections.add("What got slower", slower_blocks(result));

  std::vector<Block> time;
  add(time, time_of_resources(result));
  sections.add("Time per resource", std::move(time));

  std::vector<Block> latency;
  add(latency, latencies(summarize(result)));
  sections.add("Latency", std::move(latency));

  std::vector<Block> hits;
  add(hits, hits_over_tokens(result));
  sections.add("Expert cache, cold to warm", std::move(hits));

  std::vector<Block> terms;
  for (Table& table : tables_of_terms(result)) terms.emplace_back(std::move(table));
  for (const CurveSet& set : result.curves) {
    if (MaybeFigure figure = curves_of(set))
      terms.emplace_back(*std::move(figure));
    else
      add(terms, table_of_curves(set));
  }
  sections.add(result.kind == "probe" ? "What the machine does" : "Terms and values", std::move(terms));

  std::vector<Block> runs;
  add(runs, runs_in_order(result));
  if (std::vector<std::string> remarks = speed_remarks(result); !remarks.empty())
    runs.emplace_back(List{std::move(remarks), Paragraph::Kind::kPlain});
  if (Table table = table_of_runs(result); !table.rows.empty()) runs.emplace_back(Closed{std::move(table)});
  sections.add("The runs, and the load of the machine", std::move(runs));

  std::vector<Block> origin;
  add(origin, table_of_origin(result));
  add(origin, table_of_differing_flags(result));
  if (Table table = table_of_all_flags(result); !table.rows.empty())
    origin.emplace_back(Closed{std::move(table)});
  sections.add(result.kind == "probe" ? "Machine" : "Machine, model and settings", std::move(origin));
}

std::string model_name(const ResultFile& result) {
  return !result.model.name.empty() ? result.model.name : result.model.file;
}

}  // namespace

Page make_page(std::span<const NamedResult> results) {
  const ResultFile& first = results[0].result;
  Page page;
  constexpr size_t kMostOfName = 80;
  const auto name = [](const std::string& text) { return shortened(clean_text(text), kMostOfName); };
  page.title = "Spillway report";
  if (!model_name(first).empty()) page.title += ": " + name(model_name(first));
  std::vector<std::string> parts;
  for (const std::string& part : {first.kind, first.machine.cpu, first.machine.device, first.created})
    if (!part.empty() && part != "none") parts.push_back(name(part));
  page.subtitle = fmt::format("{}", fmt::join(parts, " \u00b7 "));
  if (results.size() == 1) {
    add_result(page, first, 2);
    return page;
  }
  std::vector<Block> overview;
  overview.emplace_back(table_of_results(results));
  add(overview, speed_of_results(results));
  page.sections.push_back({"All results", 2, std::move(overview)});
  for (size_t i = 0; i < results.size(); ++i) {
    const ResultFile& result = results[i].result;
    Section head{fmt::format("Result {}: {}", i + 1, results[i].file), 2, {}};
    if (i > 0) {
      if (const auto all = differences(first, result); !all.empty())
        head.blocks.emplace_back(Paragraph{
            fmt::format("These numbers do not stand for result 1. Different here: {}.", fmt::join(all, "; ")),
            Paragraph::Kind::kWarning});
    }
    page.sections.push_back(std::move(head));
    add_result(page, result, 3);
  }
  return page;
}

}  // namespace spillway::report
