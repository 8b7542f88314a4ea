// The style sheet of a page: its classes are those of html.cc and svg_*.cc.
#pragma once

#include <string_view>

namespace spillway::report {

std::string_view style_sheet();

}  // namespace spillway::report
