// Charts of rows: what settings come to.
#include "report/page_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "report/page_data.h"
#include "report/words.h"

namespace spillway::report {
namespace {

// More than this cannot be read; the tables have them all.
constexpr size_t kMostEntries = 24;
constexpr size_t kMostGroups = 8;

constexpr double kGiB = 1 << 30, kMiB = 1 << 20;

bool is_drawn(double value) { return std::isfinite(value) && value > 0 && value <= kMostDrawn; }

Marker marker_of(Label label) { return label == Label::kMeasured ? Marker::kFilled : Marker::kHollow; }

// "measured: 12.3 tok/s (12.0 to 12.6)"
std::string speed_words(const Row& row) {
  return fmt::format("{}, {}: {} tok/s", row_name(row), label_name(row.label),
                     interval_text(row.decode_tok_s, row.decode_low, row.decode_high));
}

std::string left_out(size_t shown, size_t all, const char* what) {
  return shown < all ? fmt::format(" The first {} of {} {} are drawn; the table has all.", shown, all, what)
                     : "";
}

// Colour of a label where charts tell labels apart by it.
uint32_t label_colour(Label label) {
  switch (label) {
    case Label::kMeasured:
      return 0;
    case Label::kPredicted:
      return 1;
    case Label::kEstimated:
      return 3;
    case Label::kDefault:
      break;
  }
  return 5;
}

void add_key(std::vector<Dots::Key>& keys, Label label) {
  const Dots::Key key{std::string(label_name(label)), marker_of(label), label_colour(label)};
  if (std::ranges::none_of(keys, [&](const Dots::Key& k) { return k.name == key.name; })) keys.push_back(key);
}

// "measured: 12.3 ms"
std::string time_words(const Row& row, double ms) {
  return fmt::format("{}, {}: {} ms", row_name(row), label_name(row.label), number_text(ms));
}

void add_entry(Dots& dots, const Row& row, const std::string& name, Measure measure) {
  Dots::Entry entry{name, {}};
  // What was measured comes last, and lies on top.
  const bool is_decode = measure == Measure::kDecode;
  if (is_decode && row.predicted_tok_s && is_drawn(*row.predicted_tok_s)) {
    entry.marks.push_back({.value = *row.predicted_tok_s,
                           .marker = marker_of(Label::kPredicted),
                           .colour = label_colour(Label::kPredicted),
                           .words = fmt::format("{}, predicted before it was measured: {} tok/s",
                                                row_name(row), number_text(*row.predicted_tok_s))});
    add_key(dots.keys, Label::kPredicted);
  }
  if (const auto value = value_of(row, measure); value && is_drawn(*value)) {
    entry.marks.push_back({*value, is_decode ? row.decode_low : std::nullopt,
                           is_decode ? row.decode_high : std::nullopt, marker_of(row.label),
                           label_colour(row.label), is_decode ? speed_words(row) : time_words(row, *value)});
    add_key(dots.keys, row.label);
  }
  if (!entry.marks.empty()) dots.entries.push_back(std::move(entry));
}

constexpr const char* kWhiskers =
    "Whiskers are the 95 % interval of what was measured, or the range of an estimate.";

// Rows that belong to one curve, by what they have in common.
struct Group {
  std::string name;
  std::vector<const Row*> rows;
};
std::vector<Group> group_rows(const ResultFile& result, auto&& name_of) {
  std::vector<Group> groups;
  for (const Row& row : result.rows) {
    if (!is_drawn(row.decode_tok_s)) continue;
    const std::string name = name_of(row);
    auto found = std::ranges::find(groups, name, &Group::name);
    if (found == groups.end()) {
      groups.push_back({name, {}});
      found = groups.end() - 1;
    }
    found->rows.push_back(&row);
  }
  return groups;
}

// One series for each label that the group has: measured points stand apart, predicted and estimated ones are
// joined to curves. Beside a measured point stands what had been predicted for it.
void add_series(Plot& plot, Table& numbers, const Group& group, uint32_t colour, auto&& x_of, auto&& x_text) {
  for (const Label label : {Label::kMeasured, Label::kPredicted, Label::kEstimated, Label::kDefault}) {
    Series series{.name = fmt::format("{}, {}", group.name, label_name(label)),
                  .colour = colour,
                  .marker = marker_of(label),
                  .joined = label != Label::kMeasured,
                  .band = label == Label::kEstimated,
                  .dash = label == Label::kPredicted   ? Dash::kSolid
                          : label == Label::kEstimated ? Dash::kLong
                                                       : Dash::kDots};
    for (const Row* row : group.rows) {
      if (row->label == label) {
        series.points.push_back(
            {x_of(*row), row->decode_tok_s, row->decode_low, row->decode_high, speed_words(*row)});
        numbers.rows.push_back({group.name, x_text(*row), std::string(label_name(label)),
                                interval_text(row->decode_tok_s, row->decode_low, row->decode_high)});
      } else if (label == Label::kPredicted && row->predicted_tok_s && is_drawn(*row->predicted_tok_s)) {
        series.points.push_back({.x = x_of(*row),
                                 .y = *row->predicted_tok_s,
                                 .words = fmt::format("{}, predicted: {} tok/s", row_name(*row),
                                                      number_text(*row->predicted_tok_s))});
      }
    }
    std::ranges::stable_sort(series.points, {}, &Point::x);
    if (!series.points.empty()) plot.series.push_back(std::move(series));
  }
}

std::string with_machine(const Row& row, const std::string& name) {
  return row.machine.empty() ? name : fmt::format("{}, {}", row.machine, name);
}

std::optional<double> share_number(const std::string& share) {
  double value = 0;
  const auto [end, error] = std::from_chars(share.data(), share.data() + share.size(), value);
  if (error != std::errc() || end != share.data() + share.size() || !(value >= 0 && value <= 1)) return {};
  return value;
}

constexpr const char* kApart =
    "Filled markers were measured; solid lines are predicted from records of this machine, dashed ones with "
    "a "
    "band are estimated.";

MaybeFigure settings_by(const ResultFile& result, Measure measure, bool is_goal) {
  constexpr const char* kTitles[] = {"Decode speed of each setting", "Prefill speed of each setting",
                                     "Time to the first token of each setting",
                                     "Time between tokens of each setting, 95th percentile"};
  const bool is_time = measure == Measure::kTtft || measure == Measure::kP95;
  Dots dots{.title = kTitles[static_cast<size_t>(measure)],
            .description = is_time ? "Shorter is better." : kWhiskers,
            .unit = is_time ? "milliseconds" : "tokens per second"};
  if (is_goal) dots.description.insert(0, "This is what the settings were chosen by. ");
  const std::vector<const Row*> rows = leading_rows(result);
  for (const Row* row : rows)
    if (dots.entries.size() < kMostEntries) add_entry(dots, *row, row_name(*row), measure);
  if (dots.entries.empty()) return {};
  dots.description += left_out(dots.entries.size(), rows.size(), "rows");
  return Figure{std::move(dots), {}};
}

}  // namespace

std::vector<MaybeFigure> settings_by_goal(const ResultFile& result) {
  std::vector<MaybeFigure> figures;
  const std::vector<Measure> measures = measures_of(result.goal);
  figures.reserve(measures.size());
  for (const Measure measure : measures)
    figures.push_back(settings_by(result, measure,
                                  measure == measures[0] && !result.goal.empty() && result.goal != "mixed"));
  return figures;
}

MaybeFigure speed_of_results(std::span<const NamedResult> results) {
  Dots dots{.title = "Decode speed, all results", .description = kWhiskers, .unit = "tokens per second"};
  size_t n_rows = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const ResultFile& result = results[i].result;
    const std::string apart =
        i > 0 && !differences(results[0].result, result).empty() ? " (not comparable)" : "";
    const std::vector<const Row*> rows = leading_rows(result);
    n_rows += rows.size();
    for (const Row* row : rows)
      if (dots.entries.size() < kMostEntries)
        add_entry(dots, *row, fmt::format("{}{}: {}", i + 1, apart, row_name(*row)), Measure::kDecode);
  }
  if (dots.entries.empty()) return {};
  dots.description += left_out(dots.entries.size(), n_rows, "rows");
  return Figure{std::move(dots), {}};
}

MaybeFigure speed_over_cache(const ResultFile& result) {
  double least = INFINITY, most = -INFINITY;
  for (const Row& row : result.rows)
    if (is_drawn(row.decode_tok_s) && std::isfinite(row.cache_bytes))
      least = std::min(least, row.cache_bytes), most = std::max(most, row.cache_bytes);
  if (!(least < most)) return {};
  const double unit = most >= kGiB ? kGiB : kMiB;
  Plot plot{.title = "Decode speed over cache size",
            .description = kApart,
            .x = {.title = most >= kGiB ? "expert cache, GiB" : "expert cache, MiB"},
            .y = {.title = "tokens per second"}};
  Table numbers{"Decode speed over cache size",
                {{"Curve"}, {"Cache", Column::Kind::kNumber}, {"Label"}, {"tok/s", Column::Kind::kNumber}}};
  const std::vector<Group> groups =
      group_rows(result, [](const Row& row) { return with_machine(row, share_name(row)); });
  for (uint32_t g = 0; g < std::min(groups.size(), kMostGroups); ++g)
    add_series(
        plot, numbers, groups[g], g, [&](const Row& row) { return row.cache_bytes / unit; },
        [](const Row& row) { return bytes_text(row.cache_bytes); });
  plot.description += left_out(std::min(groups.size(), kMostGroups), groups.size(), "curves");
  return Figure{std::move(plot), std::move(numbers)};
}

MaybeFigure speed_over_share(const ResultFile& result) {
  // Beside the numbers, where it cannot be taken for one.
  constexpr double kAuto = 1.25;
  std::vector<double> shares;
  bool has_auto = false;
  for (const Row& row : result.rows) {
    if (!is_drawn(row.decode_tok_s)) continue;
    if (const auto share = share_number(row.share)) shares.push_back(*share);
    has_auto |= row.share == "auto";
  }
  std::ranges::sort(shares);
  if (shares.empty() || (shares.front() == shares.back() && !has_auto)) return {};
  Plot plot{.title = "Decode speed over the CPU's share of the misses",
            .description = kApart,
            .x = {.title = "--moe-cache-cpu-share", .high = 1},
            .y = {.title = "tokens per second"}};
  if (has_auto) plot.x.named = {{kAuto, "auto"}};
  Table numbers{"Decode speed over the CPU's share of the misses",
                {{"Curve"}, {"Share", Column::Kind::kNumber}, {"Label"}, {"tok/s", Column::Kind::kNumber}}};
  std::vector<Group> groups = group_rows(
      result, [](const Row& row) { return with_machine(row, "cache " + bytes_text(row.cache_bytes)); });
  for (Group& group : groups)
    std::erase_if(group.rows,
                  [](const Row* row) { return row->share != "auto" && !share_number(row->share); });
  std::erase_if(groups, [](const Group& group) { return group.rows.empty(); });
  for (uint32_t g = 0; g < std::min(groups.size(), kMostGroups); ++g) {
    const auto x_of = [&](const Row& row) { return share_number(row.share).value_or(kAuto); };
    add_series(plot, numbers, groups[g], g, x_of, [](const Row& row) { return row.share; });
  }
  // A line to "auto" would say that there is something in between.
  for (size_t i = 0; i < plot.series.size(); ++i) {
    Series& series = plot.series[i];
    const auto is_auto = std::ranges::find(series.points, kAuto, &Point::x);
    if (!series.joined || is_auto == series.points.end()) continue;
    if (is_auto == series.points.begin()) {
      series.joined = series.band = false;
      continue;
    }
    Series apart = series;
    apart.name.clear();
    apart.joined = apart.band = false;
    apart.points.assign(is_auto, series.points.end());
    series.points.erase(is_auto, series.points.end());
    plot.series.insert(plot.series.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(apart));
  }
  plot.description += left_out(std::min(groups.size(), kMostGroups), groups.size(), "curves");
  return Figure{std::move(plot), std::move(numbers)};
}

MaybeFigure time_of_resources(const ResultFile& result) {
  Stack stack{.title = "Where the time of a token goes",
              .description =
                  "Device, link and CPU work at the same time: where they overlap, the parts together are "
                  "longer than the token took (the upright mark).",
              .unit = "microseconds per token",
              .parts = {"device", "link", "CPU", "waiting"},
              .whole = "the whole token"};
  Table numbers{"Where the time of a token goes, microseconds",
                {{"Setting"},
                 {"Label"},
                 {"Device", Column::Kind::kNumber},
                 {"Link", Column::Kind::kNumber},
                 {"CPU", Column::Kind::kNumber},
                 {"Waiting", Column::Kind::kNumber},
                 {"Whole", Column::Kind::kNumber}}};
  for (const Row& row : result.rows) {
    if (!row.resources) continue;
    const Resources& r = *row.resources;
    const std::string name = fmt::format("{} ({})", row_name(row), label_name(row.label));
    numbers.rows.push_back({row_name(row), std::string(label_name(row.label)), number_text(r.device_us),
                            number_text(r.link_us), number_text(r.cpu_us), number_text(r.wait_us),
                            number_text(r.total_us)});
    if (stack.bars.size() < kMostEntries)
      stack.bars.push_back({name,
                            {r.device_us, r.link_us, r.cpu_us, r.wait_us},
                            r.total_us > 0 ? std::optional(r.total_us) : std::nullopt});
  }
  if (stack.bars.empty()) return {};
  stack.description += left_out(stack.bars.size(), numbers.rows.size(), "settings");
  return Figure{std::move(stack), std::move(numbers)};
}

}  // namespace spillway::report
