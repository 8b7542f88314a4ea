// Draws charts as SVG elements that stand in an HTML page, whose style sheet (report/html_style.h) gives
// their classes colours for light and dark. Each is drawn twice, for wide and for narrow windows, so that
// letters keep their size.
#pragma once

#include <string>
#include <string_view>

#include "report/chart.h"

namespace spillway::report {

enum class Width : uint8_t { kWide, kNarrow };

// `id`: of its title and description, unique in the page; letters, digits and dashes.
std::string draw(const Chart& chart, Width width, std::string_view id);
// What its colours, markers and dashes mean, as an HTML list; empty where there is nothing to tell apart.
std::string draw_legend(const Chart& chart);

// For HTML and XML: clean_text(), and the characters of markup as entities.
std::string escaped(std::string_view text);

}  // namespace spillway::report
