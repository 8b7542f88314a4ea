// A result of `bench` as tables for a terminal, as markdown, and as CSV.
#pragma once

#include <string>

#include "report/result.h"

namespace spillway::cli {

enum class TableForm : uint8_t { kText, kMarkdown, kCsv };

// For people: head, speeds, latencies and resources (cold and warm apart), conclusion and notes. CSV: one
// line for the cold and one for the warm runs of each setting, numbers in plain units, nothing else.
std::string bench_tables(const report::ResultFile& result, TableForm form);

}  // namespace spillway::cli
