#include "experts/layer_clock.h"

#include <algorithm>

#include "base/assert.h"

namespace spillway {
namespace experts {

// The link works on the background copies for that long.
void LayerClock::advance(Planner& planner, double link_us) {
  size_t done = 0;
  while (done < n_queued_ && queue_[done].left_us <= link_us) {
    link_us -= queue_[done].left_us;
    planner.arrived(queue_[done].ticket);
    ++done;
  }
  std::copy(queue_.begin() + static_cast<std::ptrdiff_t>(done),
            queue_.begin() + static_cast<std::ptrdiff_t>(n_queued_), queue_.begin());
  n_queued_ -= done;
  if (n_queued_ > 0) queue_[0].left_us -= link_us;
}

double LayerClock::run(Planner& planner, const CostModel& machine, const Routing& routing, LayerId next,
                       double gap_us) {
  const Plan& plan = planner.plan(routing);
  const uint64_t bytes = planner.pool(plan.group).shape().expert_bytes;
  double ahead_us = 0.0;
  for (size_t i = 0; i < n_queued_; ++i) ahead_us += queue_[i].left_us;
  Work work = work_of(plan.entries, bytes, machine, ahead_us);
  // As an engine would ask: with what the planner predicts.
  double idle_us = std::max(plan.predicted.total_us - plan.predicted.link_us, 0.0) + gap_us;
  while (const auto copy = planner.next_promotion(next, idle_us)) {
    SW_ASSERT(n_queued_ < queue_.size());
    const double us = machine.link_us(planner.pool(copy->group).shape().expert_bytes);
    queue_[n_queued_++] = {copy->ticket, us};
    work.behind_us += us;
    promoted_us_ += us;
    idle_us = 0.0;
  }
  const CostModel::Outcome outcome = machine.observe(work);
  for (const PlanEntry& entry : plan.entries)
    if (entry.decision == Decision::kUpload) planner.arrived(entry.ticket);
  advance(planner, work.ahead_us + work.behind_us - outcome.left_us);
  planner.complete(plan.id, outcome.seen);
  advance(planner, gap_us);
  return static_cast<double>(outcome.seen.total_ns) / 1000.0;
}

}  // namespace experts
}  // namespace spillway
