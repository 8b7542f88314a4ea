// The drawers behind svg.h, one file for each kind of chart.
#pragma once

#include "report/svg.h"

namespace spillway::report {

std::string draw_plot(const Plot& plot, Width width, std::string_view id);
std::string draw_dots(const Dots& dots, Width width, std::string_view id);
std::string draw_stack(const Stack& stack, Width width, std::string_view id);

// 848 fills the page's column; 336 is a phone of 360 less its margins.
inline double pixels(Width width) { return width == Width::kWide ? 848 : 336; }

}  // namespace spillway::report
