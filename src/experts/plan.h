// What the planner decided for one layer of one micro-batch.
#pragma once

#include <optional>

#include "experts/cost_model.h"
#include "experts/types.h"

namespace spillway {
namespace experts {

struct PlanEntry {
  ExpertId expert = 0;
  uint32_t tokens = 0;
  Decision decision = Decision::kCpu;
  // Of kHit, kUpload and kJoin: the slot of the group's cache. Of kStream: the slot of the group's ring,
  // numbered cyclically; a plan may stream more experts than the ring has slots, and the engine waits for the
  // device to be done with a ring slot before it is filled again. Of kCpu: kNoSlot.
  SlotId slot = kNoSlot;
  Ticket ticket = kNoTicket;  // of kUpload and kJoin: the copy to wait for
  bool operator==(const PlanEntry&) const = default;
};

struct Plan {
  uint64_t id = 0;
  LayerId layer = 0;
  GroupId group = 0;
  uint32_t n_tokens = 0;
  // Every use of the routing once: hits, joins, then the copies (kUpload, kStream) in the order in which they
  // should be issued, then the CPU's, most tokens first.
  std::span<const PlanEntry> entries;
  // Experts that lost their slots, to this plan's uploads or because the cache was given up: no longer
  // resident from this plan on.
  std::span<const ExpertKey> evicted;
  Times predicted;
};

// A copy in the background.
struct PromotionCopy {
  ExpertKey key;
  GroupId group = 0;
  SlotId slot = kNoSlot;
  Ticket ticket = kNoTicket;
  std::optional<ExpertKey> evicted;
  bool operator==(const PromotionCopy&) const = default;
};

// What the entries of a plan cost by this model. `ahead_us`: background copies on the link before the plan's.
inline Work work_of(std::span<const PlanEntry> entries, uint64_t expert_bytes, const CostModel& cost,
                    double ahead_us) {
  Work work;
  work.ahead_us = ahead_us;
  for (const PlanEntry& entry : entries) {
    const Decision decision = entry.decision;
    if (decision != Decision::kHit) work.waits = true;
    if (decision == Decision::kCpu) {
      work.cpu_us += cost.cpu_us(expert_bytes, entry.tokens);
      continue;
    }
    const double device_us = cost.device_us(expert_bytes, entry.tokens);
    work.device_us += device_us;
    if (decision != Decision::kHit) work.last_upload_us = device_us;
    if (decision == Decision::kUpload || decision == Decision::kStream)
      work.link_us += cost.link_us(expert_bytes);
  }
  return work;
}

}  // namespace experts
}  // namespace spillway
