// Our default settings against the reference at its best: routes replayed under the simulated clock on
// several machines, with the expert sizes of models that people run, at several cache sizes. The reference is
// the policy b12191 with each share of {0, .25, .5, .75, .95, 1} in turn, of which the best for each row is
// taken afterwards, with hindsight; ours is auto throughout. All of it is estimated.
//
// A small model's routes stand for a big model's. Experts have the big model's bytes; hits and misses are the
// small model's own, so its number of experts and how many a token uses are not scaled, and cache sizes are
// shares of its experts. Its L layers with k experts per token do f = (L k) / (L' k') of the work of the big
// model's L' layers with k', so dense bytes and the fixed time of a step are taken at f, and the time of a
// token is the simulated one divided by f.
#pragma once

#include <string>

#include "experts/machines.h"
#include "experts/simulator.h"

namespace spillway {
namespace experts {

struct ComparisonRow {
  std::string machine, model;
  double cache_share = 0.0;
  double reference_share = 0.0;  // the best F
  // Microseconds per token of the big model, over all routes, from a cold start.
  double reference_us = 0.0;
  double ours_us = 0.0;
  double without_us = 0.0;  // ours without a cache
  double reference_hits = 0.0;
  double ours_hits = 0.0;
  double belady_hits = 0.0;  // what no policy can exceed where every miss may be copied
  double ratio() const { return reference_us / ours_us; }  // of speeds: above 1 ours is faster
};

struct ComparisonSetup {
  std::span<const HardwareProfile> machines = known_machines();
  std::span<const ModelSizes> models = known_models().first(2);
  std::vector<double> cache_shares = {0.12, 0.20, 0.30, 0.50};
};

// Each of the routes is a run of its own, from a cold start. Requires: at least one, each with steps.
Result<std::vector<ComparisonRow>> compare(std::span<const Routes> runs, const ComparisonSetup& setup = {});

// As Markdown, with the label and the least and the mean ratio.
std::string comparison_table(std::span<const ComparisonRow> rows);

}  // namespace experts
}  // namespace spillway
