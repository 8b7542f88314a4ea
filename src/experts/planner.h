// The planner: for each layer and micro-batch, where every expert is computed and what moves. The engine asks
// it with the real clock, the simulator with a simulated one; there is no other copy of these rules.
//
// Life of a plan:   plan() --> the engine copies, computes, combines --> complete()
// Life of a copy:   ticket from plan() or next_promotion() --> arrived() or failed() [or cancelled()]
//
// From plan() to complete() the slots that a plan reads are pinned: no other plan can take them. Several
// plans may be open. Plans are made in the order in which the device works them off, so that an evicted
// expert's slot may be overwritten once the plans before this one have been worked off on the device.
//
// Pure: no clock, no threads, no IO; the same calls give the same answers on every machine. Nothing allocates
// after create(). Not thread safe. Cost of plan(): O(uses log uses + evictions (layers + log slots)).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experts/cost_model.h"
#include "experts/policy.h"
#include "experts/types.h"

namespace spillway {
namespace experts {

// A setting that is a number, left to the planner, or not given.
struct Choice {
  enum class Kind : uint8_t { kUnset, kAuto, kNumber };
  Kind kind = Kind::kUnset;
  double value = 0.0;

  static Choice automatic() { return {Kind::kAuto, 0.0}; }
  static Choice number(double value) { return {Kind::kNumber, value}; }
  bool is_number() const { return kind == Kind::kNumber; }
  bool operator==(const Choice&) const = default;
};

enum class Promotion : uint8_t { kUnset, kAuto, kOn, kOff };

struct PlannerSettings {
  PolicySettings policy;
  // Of the distinct misses, the share that the CPU computes, 0 to 1, with llama.cpp's meaning; auto (and
  // unset) takes what finishes soonest.
  Choice cpu_share;
  // A newcomer replaces a victim only if its score exceeds the victim's times this, at least 0. Unset: auto,
  // or 0 (always) where cpu_share is a number or the policy is b12191.
  Choice admit;
  // Copies in idle link time. Unset: auto, or off where cpu_share is a number or the policy is b12191.
  Promotion promote = Promotion::kUnset;
  bool explore = true;          // try alternatives while running (experts/controller.h)
  uint32_t max_open_plans = 0;  // 0: as many as there are layers
};

struct PlanEntry {
  ExpertId expert = 0;
  uint32_t tokens = 0;
  Decision decision = Decision::kCpu;
  // Of kHit, kUpload and kJoin: the slot of the group's cache. Of kStream: the slot of the group's ring,
  // numbered cyclically; a plan may stream more experts than the ring has slots, and the engine waits for the
  // device to be done with a ring slot before it is filled again. Of kCpu: kNoSlot.
  SlotId slot = kNoSlot;
  Ticket ticket = kNoTicket;  // of kUpload and kJoin: the copy to wait for
};

struct Plan {
  uint64_t id = 0;
  LayerId layer = 0;
  GroupId group = 0;
  uint32_t n_tokens = 0;
  // Every use of the routing once: hits, joins, then the copies (kUpload, kStream) in the order in which they
  // should be issued, then the CPU's, most tokens first.
  std::span<const PlanEntry> entries;
  // Experts that lost their slots to this plan's uploads: no longer resident from this plan on.
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
};

struct LayerCounters {
  Counters cold;  // until the group's slots were all filled for the first time
  Counters warm;
};

class Planner {
 public:
  // Of `groups` only layers that take part are asked for: a layer whose experts are all resident from the
  // start is in no group. `slots` and `ring_slots`: (groups) how many each has on the device; 0 is allowed.
  // Refuses settings that contradict themselves.
  static Result<std::unique_ptr<Planner>> create(const PlannerSettings& settings,
                                                 std::span<const GroupShape> groups,
                                                 std::span<const uint32_t> slots,
                                                 std::span<const uint32_t> ring_slots,
                                                 const HardwareProfile& profile);
  ~Planner();

  // Decides one layer of one micro-batch. The plan stays valid until complete(). Requires: the layer is in a
  // group; uses as types.h says; at most `max_open_plans` open.
  const Plan& plan(const Routing& routing);
  // The plan's results have been combined: its slots may be taken. Its copies may still be under way.
  void complete(uint64_t plan_id, const Observation& seen);

  // The copy lies whole in its slot (for the device: at the latest where its next plan begins).
  void arrived(Ticket ticket);
  // It does not and will not: the expert is not resident. Plans that wait for it must compute it elsewhere.
  void failed(Ticket ticket);
  // A promotion that had not been started. No plan that was made since may have joined it (see in_use).
  void cancelled(Ticket ticket);
  bool in_use(Ticket ticket) const;

  // A copy that is worth making while the link has nothing else to do, if there is one. To be asked after a
  // plan's copies were issued, until it gives nothing. `next`: the layer that is planned next.
  // `idle_link_us`: how long the link is expected to have nothing to do from the end of this plan's copies to
  // the start of the next layer's; given once per plan, 0 in further calls for the same plan. Idle time that
  // is too short for a copy is saved up for later calls.
  std::optional<PromotionCopy> next_promotion(LayerId next, double idle_link_us);

  // What was asked for and is not in force, and why; what the settings mean. Whole sentences.
  std::span<const std::string> notes() const;

  // The layer has a share of the cache.
  bool takes_part(LayerId layer) const;
  // The slot from which the expert can be read now, or kNoSlot.
  SlotId resident(ExpertKey key) const;
  uint32_t occupied_slots(GroupId group) const;
  bool is_full(GroupId group) const;  // has been filled once: its counts are warm
  const CostModel& cost_model() const;
  const LayerCounters& counters(LayerId layer) const;
  LayerCounters total() const;

 private:
  class Impl;
  explicit Planner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace experts
}  // namespace spillway
