// Charts of curves: what a machine does over threads, tokens and sizes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/chart.h"
#include "report/page_charts.h"
#include "report/page_tables.h"
#include "report/words.h"

namespace spillway::report {
namespace {

// That can be told apart: a colour, a shape and a dash each.
constexpr uint32_t kMostCurves = kDashes;

}  // namespace

MaybeFigure curves_of(const CurveSet& set) {
  if (std::ranges::all_of(set.curves, [](const Curve& curve) { return curve.points.size() < 2; })) return {};
  double least = INFINITY, most = -INFINITY;
  for (const Curve& curve : set.curves)
    for (const CurvePoint& point : curve.points)
      least = std::min(least, point.x), most = std::max(most, point.x);
  constexpr double kWide = 10;  // the small ones would lie on one another
  Plot plot{.title = set.title,
            .description = fmt::format("{}, by {}; whiskers are the middle half of the repetitions.",
                                       label_name(set.label), set.x),
            .x = {.title = set.x, .logarithmic = least > 0 && most >= kWide * least},
            .y = {.title = set.unit}};
  plot.description[0] = static_cast<char>(plot.description[0] - 'a' + 'A');
  for (const Curve& curve : set.curves) {
    const auto index = static_cast<uint32_t>(plot.series.size());
    if (index == kMostCurves) break;
    Series series{.name = curve.name,
                  .colour = index,
                  .marker = set.label == Label::kMeasured ? Marker::kFilled : Marker::kHollow,
                  .joined = true,
                  .dash = static_cast<Dash>(index),
                  .points = {}};
    for (const CurvePoint& point : curve.points)
      series.points.push_back({point.x, point.value, point.low, point.high,
                               fmt::format("{}, {} {}: {} {}", curve.name, short_number(point.x), set.x,
                                           interval_text(point.value, point.low, point.high), set.unit)});
    plot.series.push_back(std::move(series));
  }
  if (set.curves.size() > kMostCurves)
    plot.description +=
        fmt::format(" The first {} of {} are drawn; the table has all.", kMostCurves, set.curves.size());
  return Figure{std::move(plot), table_of_curves(set)};
}

}  // namespace spillway::report
