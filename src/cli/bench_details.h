// What only a single setting, still loaded, can show: how it was loaded, where everything lies, what the
// experts did since, and its decode speed beside what the memory allows.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "cli/bench_work.h"
#include "engine/engine.h"
#include "report/result.h"

namespace spillway::cli {

std::string load_details(const engine::Engine& engine);
// Lines that follow the tables. Measures the memory's speed where the CPU runs alone on plain tokens.
Result<std::string> run_details(const engine::Engine& engine, const report::ResultFile& result,
                                const BenchWork& work);

// `--json`: one object with speeds, placement and the experts' counters (docs/benchmarks.md). Plain tokens
// only.
Result<nlohmann::ordered_json> details_json(const engine::Engine& engine, const report::ResultFile& result,
                                            const BenchWork& work);

}  // namespace spillway::cli
