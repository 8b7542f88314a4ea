#include "tune/plan_rows.h"

#include <algorithm>
#include <unordered_map>

namespace spillway::tune {
namespace {

using experts::Decision;
using experts::Trace;

// Steps that share a block for the intervals: what disturbs a machine lasts longer than a token or two.
constexpr uint32_t kBlockSteps = 8;

}  // namespace

double PlanRow::read_bytes(double tokens, bool cpu) const {
  double bytes = 0;
  for (const experts::PlanEntry& entry : plan->entries)
    if ((entry.decision == Decision::kCpu) == cpu)
      bytes += static_cast<double>(expert_bytes) * std::max(1.0, entry.tokens / tokens);
  return bytes;
}

Rows rows_of(std::span<const Trace* const> traces) {
  Rows rows;
  uint32_t block = 0;
  for (const Trace* trace : traces) {
    std::vector<uint64_t> bytes_of;  // by layer
    for (const experts::GroupShape& group : trace->head.groups)
      for (const experts::LayerId layer : group.layers) {
        if (bytes_of.size() <= layer) bytes_of.resize(layer + 1);
        bytes_of[layer] = group.expert_bytes;
      }
    std::unordered_map<uint64_t, const experts::Observation*> seen;
    for (const Trace::Completed& completed : trace->completed) seen[completed.id] = &completed.seen;
    uint32_t in_block = 0;
    StepRow step;
    bool whole = true;
    for (const Trace::Event& event : trace->events) {
      if (event.kind == Trace::Kind::kStep) {
        if (in_block++ % kBlockSteps == 0) ++block;
        step = {.n_tokens = static_cast<uint32_t>(event.value), .block = block};
        whole = true;
      } else if (event.kind == Trace::Kind::kPlan) {
        const Trace::Planned& plan = trace->plans[event.value];
        const auto it = seen.find(plan.id);
        if (it == seen.end() || it->second->total_ns == 0) {
          whole = false;
          continue;
        }
        PlanRow row{.plan = &plan, .seen = *it->second, .expert_bytes = bytes_of[plan.layer], .block = block};
        for (const experts::PlanEntry& entry : plan.entries) {
          row.n_hits += entry.decision == Decision::kHit;
          row.n_copies += entry.decision == Decision::kUpload || entry.decision == Decision::kStream;
          row.n_joins += entry.decision == Decision::kJoin;
          row.n_cpu += entry.decision == Decision::kCpu;
        }
        step.parts_us += static_cast<double>(row.seen.total_ns) / 1000.0;
        rows.plans.push_back(row);
      } else if (event.kind == Trace::Kind::kStepEnd && whole && step.n_tokens > 0) {
        step.step_us = static_cast<double>(event.value) / 1000.0;
        rows.steps.push_back(step);
      }
    }
  }
  return rows;
}

}  // namespace spillway::tune
