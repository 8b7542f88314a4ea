// A page as one HTML file that needs nothing else: no network, no script.
#pragma once

#include <string>

#include "report/page.h"

namespace spillway::report {

// Begins every page that to_html() writes.
inline constexpr std::string_view kHtmlBegin = "<!DOCTYPE html>\n<!-- Written by spillway report -->\n";

std::string to_html(const Page& page);

}  // namespace spillway::report
