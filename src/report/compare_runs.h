// Two settings of a result against each other, by their runs.
#pragma once

#include <cstdint>

#include "report/result.h"
#include "report/statistics.h"

namespace spillway::report {

// What runs are held against each other by.
struct RunValue {
  double (*of)(const Run&) = nullptr;  // 0 where a run has nothing of the kind
  Better better = Better::kHigher;
};

// Only what did the same work can be compared: the flags of both that say what is run are equal.
bool same_work(const Setting& a, const Setting& b);

// Settings `a` and `b` (indices), by their warm runs that came to their end: each run of b with that of a
// that ran next to it, every run in one pair at most. Where settings took turns, these are the runs of a
// turn.
Comparison compare_runs(const ResultFile& result, uint32_t a, uint32_t b, RunValue value);

}  // namespace spillway::report
