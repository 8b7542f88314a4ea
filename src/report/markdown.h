// A page as Markdown for pasting into a discussion: tables stand for charts.
#pragma once

#include <string>

#include "report/page.h"

namespace spillway::report {

std::string to_markdown(const Page& page);
// The text with the characters that Markdown, or HTML within it, would obey made harmless.
std::string markdown_escaped(std::string_view text);

}  // namespace spillway::report
