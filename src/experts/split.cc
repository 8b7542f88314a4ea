#include "experts/split.h"

namespace spillway {
namespace experts {

std::string_view split_kind_name(SplitKind kind) {
  constexpr std::array<std::string_view, kSplitKinds> kNames = {"hits only", "copies", "cpu", "both"};
  return kNames[static_cast<size_t>(kind)];
}

Splitter::Splitter(uint32_t max_experts) {
  for (Sums* sums : {&hits_, &joins_, &misses_}) {
    sums->cpu.assign(max_experts + 1, 0.0);
    sums->device.assign(max_experts + 1, 0.0);
  }
}

void Splitter::sum(Sums& sums, std::span<const uint32_t> tokens, uint64_t bytes, const CostModel& cost) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    sums.cpu[i + 1] = sums.cpu[i] + cost.cpu_us(bytes, tokens[i]);
    sums.device[i + 1] = sums.device[i] + cost.device_us(bytes, tokens[i]);
  }
}

// Prices the split, keeps it among the best of its kind, and as `best` where it is sooner.
void Splitter::improve(const SplitTask& task, const CostModel& cost, const Corrections& corrections,
                       Split split, Split& best) {
  const size_t n_hits = task.hits.size(), n_joins = task.joins.size(), n_misses = task.misses.size();
  const bool joins = split.join && n_joins > 0;
  const bool cpu = split.copies < n_misses || (n_joins > 0 && !split.join);
  Work work;
  work.ahead_us = task.ahead_us;
  work.waits = n_misses + n_joins > 0 || cpu;
  work.device_us =
      hits_.device[n_hits] + misses_.device[split.copies] + (joins ? joins_.device[n_joins] : 0.0);
  if (split.copies > 0) {
    work.last_upload_us = misses_.device[split.copies] - misses_.device[split.copies - 1];
    work.link_us = split.copies * cost.link_us(task.expert_bytes);
  } else if (joins) {
    work.last_upload_us = joins_.device[n_joins] - joins_.device[n_joins - 1];
  }
  if (cpu) work.cpu_us = misses_.cpu_after(split.copies, n_misses) + (joins ? 0.0 : joins_.cpu[n_joins]);
  split.kind = split_kind(work);
  const auto kind = static_cast<size_t>(split.kind);
  split.us = cost.finish(work).total_us * corrections[kind];
  if (!of_kind_[kind] || split.us < of_kind_[kind]->us) of_kind_[kind] = split;
  if (split.us < best.us) best = split;
}

Split Splitter::best(const SplitTask& task, const CostModel& cost, const Corrections& corrections) {
  sum(hits_, task.hits, task.expert_bytes, cost);
  sum(joins_, task.joins, task.expert_bytes, cost);
  sum(misses_, task.misses, task.expert_bytes, cost);
  of_kind_.fill(std::nullopt);
  Split best{.us = 1e300};
  for (const bool join : {true, false}) {
    if (!join && task.joins.empty()) break;
    for (uint32_t copies = 0; copies <= task.most_copies; ++copies)
      improve(task, cost, corrections, {.join = join, .copies = copies}, best);
  }
  return best;
}

}  // namespace experts
}  // namespace spillway
