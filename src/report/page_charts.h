// The charts of a page. Each is nothing where the result has not what it shows, or a single value that a
// table says better.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "report/page.h"
#include "report/page_data.h"

namespace spillway::report {

using MaybeFigure = std::optional<Figure>;

// A chart of each setting for each measure of the goal.
std::vector<MaybeFigure> settings_by_goal(const ResultFile& result);
// Several results in one chart, in their order, each with its number before its names.
MaybeFigure speed_of_results(std::span<const NamedResult> results);
MaybeFigure speed_over_cache(const ResultFile& result);
MaybeFigure speed_over_share(const ResultFile& result);
MaybeFigure time_of_resources(const ResultFile& result);
// Nothing where no curve has two points.
MaybeFigure curves_of(const CurveSet& set);
MaybeFigure latencies(std::span<const SettingSummary> settings);
MaybeFigure hits_over_tokens(const ResultFile& result);
MaybeFigure runs_in_order(const ResultFile& result);

}  // namespace spillway::report
