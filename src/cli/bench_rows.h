// What measured runs come to: rows, verdicts and words of a result of `bench`.
#pragma once

#include <string>
#include <vector>

#include "report/result.h"

namespace spillway::cli {

// Calls the first warm runs of a single setting cold where report::count_cold() says so, and fills rows,
// notes and conclusion. Settings are compared with the first where they ran the same work; those that never
// ran have no row, in the order of the settings. `cache_bytes`: by setting. `repetitions`: warm runs of each
// that were asked for.
void conclude(report::ResultFile& result, const std::vector<double>& cache_bytes, uint32_t repetitions);

// What differs from a result that was repeated: program, model, machine, workload, and the speeds of each
// setting. Whole sentences; not interleaved, so they are no verdicts.
std::vector<std::string> differences(const report::ResultFile& was, const report::ResultFile& is);

}  // namespace spillway::cli
