#include "experts/comparison.h"

#include <algorithm>

#include "base/assert.h"

namespace spillway {
namespace experts {
namespace {

constexpr double kReferenceShares[] = {0.0, 0.25, 0.5, 0.75, 0.95, 1.0};

// Which part of the big model's work per token these routes stand for.
double part_of(const Routes& routes, const ModelSizes& model) {
  double used = 0.0;
  for (const GroupShape& group : routes.groups)
    used += static_cast<double>(group.layers.size()) * group.n_used;
  return used / (static_cast<double>(model.n_layers) * model.n_used);
}

struct Total {
  double us = 0.0;  // of the big model's tokens
  uint64_t tokens = 0;
  Counters counters;
  double us_per_token() const { return us / static_cast<double>(tokens); }
};

enum class Bound : uint8_t { kNone, kBelady };

Result<Total> replay(std::span<const Routes> runs, const ModelSizes& model, SimulationSetup setup,
                     Bound bound = Bound::kNone) {
  Total total;
  for (const Routes& routes : runs) {
    const double part = part_of(routes, model);
    setup.expert_bytes = model.expert_bytes;
    setup.dense_bytes = static_cast<uint64_t>(part * static_cast<double>(model.dense_bytes));
    setup.step_us = part * setup.machine.step_us.value;
    SW_ASSIGN(const SimulationResult result,
              bound == Bound::kBelady ? simulate_belady(routes, setup) : simulate(routes, setup));
    total.us += result.us / part;
    total.tokens += result.tokens;
    total.counters.add(result.cold);
    total.counters.add(result.warm);
  }
  return total;
}

Result<ComparisonRow> compare_one(std::span<const Routes> runs, const HardwareProfile& machine,
                                  const ModelSizes& model, double cache_share) {
  ComparisonRow row;
  row.machine = machine.name;
  row.model = model.name;
  row.cache_share = cache_share;

  SimulationSetup ours;
  ours.machine = machine;
  ours.cache_share = cache_share;
  SW_ASSIGN(const Total automatic, replay(runs, model, ours));
  row.ours_us = automatic.us_per_token();
  row.ours_hits = automatic.counters.hit_rate();

  SimulationSetup without = ours;
  without.cache_share = 0.0;
  SW_ASSIGN(const Total none, replay(runs, model, without));
  row.without_us = none.us_per_token();

  SimulationSetup reference = ours;
  reference.settings.policy.kind = PolicyKind::kB12191;
  for (const double share : kReferenceShares) {
    reference.settings.cpu_share = Choice::number(share);
    SW_ASSIGN(const Total fixed, replay(runs, model, reference));
    if (row.reference_us > 0.0 && fixed.us_per_token() >= row.reference_us) continue;
    row.reference_us = fixed.us_per_token();
    row.reference_share = share;
    row.reference_hits = fixed.counters.hit_rate();
  }

  SimulationSetup bound = ours;
  bound.settings.cpu_share = Choice::number(0.0);
  SW_ASSIGN(const Total belady, replay(runs, model, bound, Bound::kBelady));
  row.belady_hits = belady.counters.hit_rate();
  return row;
}

}  // namespace

Result<std::vector<ComparisonRow>> compare(std::span<const Routes> runs, const ComparisonSetup& setup) {
  SW_ASSERT(!runs.empty());
  for (const Routes& routes : runs)
    if (routes.n_tokens() == 0) return invalid("a comparison needs routes with tokens; one run has none");
  std::vector<ComparisonRow> rows;
  for (const ModelSizes& model : setup.models)
    for (const HardwareProfile& machine : setup.machines)
      for (const double share : setup.cache_shares) {
        SW_ASSIGN(ComparisonRow row, compare_one(runs, machine, model, share));
        rows.push_back(std::move(row));
      }
  return rows;
}

std::string comparison_table(std::span<const ComparisonRow> rows) {
  std::string text =
      "| model (sizes) | machine | cache | b12191: best F | tok/s | hits | auto: tok/s | hits | Belady | no "
      "cache: "
      "tok/s | auto / best F |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  double least = 1e300, sum = 0.0;
  for (const ComparisonRow& row : rows) {
    text += fmt::format(
        "| {} | {} | {:.0f} % | {} | {:.1f} | {:.0f} % | {:.1f} | {:.0f} % | {:.0f} % | {:.1f} | {:.3f} |\n",
        row.model, row.machine, 100 * row.cache_share, row.reference_share, 1e6 / row.reference_us,
        100 * row.reference_hits, 1e6 / row.ours_us, 100 * row.ours_hits, 100 * row.belady_hits,
        1e6 / row.without_us, row.ratio());
    least = std::min(least, row.ratio());
    sum += row.ratio();
  }
  if (!rows.empty())
    text += fmt::format("\nEstimated. Least ratio {:.3f}, mean {:.3f}, of {} rows.\n", least,
                        sum / static_cast<double>(rows.size()), rows.size());
  return text;
}

}  // namespace experts
}  // namespace spillway
