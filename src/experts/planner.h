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

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experts/plan.h"
#include "experts/pool.h"
#include "experts/share.h"
#include "experts/split.h"

namespace spillway {
namespace experts {

class Controller;
struct ControllerReport;

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

// Where the search for the admission factor begins: on public route traces factors of 1 to 3 cost 1 to 3
// points of hits and saved 20 to 72 % of the uploads.
inline constexpr double kFirstAdmit = 2.0;

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

struct LayerCounters {
  Counters cold;  // until the group's slots were all filled for the first time
  Counters warm;

  Counters all() const {
    Counters sum = cold;
    sum.add(warm);
    return sum;
  }
};

// Makes the policy of a group's pool: for those that make_policy() can't make.
using PolicyMaker = std::function<std::unique_ptr<Policy>(GroupId, const PoolShape&)>;

// Told of every call that changes the planner, after it was made.
class PlannerListener {
 public:
  virtual ~PlannerListener() = default;
  virtual void planned(const Plan& plan) = 0;
  virtual void completed(uint64_t plan_id, const Observation& seen) = 0;
  virtual void arrived(Ticket ticket) = 0;
  virtual void failed(Ticket ticket) = 0;
  virtual void cancelled(Ticket ticket) = 0;
  virtual void asked(LayerId next, double idle_link_us, const std::optional<PromotionCopy>& granted) = 0;
};

class Planner {
 public:
  // Of `groups` only layers that take part are asked for: a layer whose experts are all resident from the
  // start is in no group. `slots` and `ring_slots`: (groups) how many each has on the device; 0 is allowed.
  // Refuses settings that contradict themselves.
  static Result<std::unique_ptr<Planner>> create(
      const PlannerSettings& settings, std::span<const GroupShape> groups, std::span<const uint32_t> slots,
      std::span<const uint32_t> ring_slots, const HardwareProfile& profile, const PolicyMaker& maker = {});

  ~Planner();

  // Decides one layer of one micro-batch. The plan stays valid until complete(). Requires: the layer is in a
  // group; uses as types.h says, not empty; at most `max_open_plans` open.
  const Plan& plan(const Routing& routing);
  // The plan's results have been combined: its slots may be taken. Its copies may still be under way. `seen`
  // is all 0 where something other than the plan was carried out (a copy failed).
  void complete(uint64_t plan_id, const Observation& seen);

  // The copy lies whole in its slot (for the device: at the latest where its next plan begins).
  void arrived(Ticket ticket);
  // It does not and will not: the expert is not resident. Plans that wait for it must compute it elsewhere.
  void failed(Ticket ticket);
  // A promotion that had not been started. Requires: not in_use(), no plan that is open waits for it.
  void cancelled(Ticket ticket);
  bool in_use(Ticket ticket) const;

  // A copy that is worth making while the link has nothing else to do, if there is one. To be asked after a
  // plan's copies were issued, until it gives nothing. `next`: the layer that is planned next.
  // `idle_link_us`: how long the link is expected to have nothing to do from the end of this plan's copies to
  // the start of the next layer's; given once per plan, 0 in further calls for the same plan. Idle time that
  // is too short for a copy is saved up for later calls.
  std::optional<PromotionCopy> next_promotion(LayerId next, double idle_link_us);

  // Takes over what another planner has learnt of the machine.
  void adopt(const CostModel& cost) { cost_ = cost; }
  // Null: nobody. Must outlive its use.
  void listen(PlannerListener* listener) { listener_ = listener; }

  // What was asked for and is not in force, and why; what the settings mean. Whole sentences.
  std::span<const std::string> notes() const { return notes_; }

  // The layer has a share of the cache.
  bool takes_part(LayerId layer) const;
  // The slot from which the expert can be read now, or kNoSlot.
  SlotId resident(ExpertKey key) const;
  // The pool's layers are numbered within the group.
  const Pool& pool(GroupId group) const { return groups_[group].pool; }
  // Its slots have all been filled once: from then on its counts are warm.
  bool is_full(GroupId group) const { return groups_[group].full; }
  const CostModel& cost_model() const { return cost_; }
  // What the controller tried, found and chose; null where nothing is left to it.
  const ControllerReport* report() const;
  const LayerCounters& counters(LayerId layer) const { return layers_[layer].counters; }
  LayerCounters total() const;

 private:
  struct Wanted {
    ExpertId expert = kNone;
    uint32_t tokens = 0;
    double score = 0.0;
  };
  // How many experts a layer remembers that it missed last and could have promoted: a token's at most, and
  // more than the link has time for.
  static constexpr uint32_t kWanted = 4;
  struct Layer {
    GroupId group = kNone;
    uint32_t index = 0;  // within the group
    std::array<ExpertId, kWanted> wanted;
    LayerCounters counters;
  };
  enum class Purpose : uint8_t { kUpload, kPromotion };
  struct Copy {
    Ticket ticket = kNoTicket;
    Purpose purpose = Purpose::kUpload;
    bool cold = false;  // as it was counted
  };
  struct Group {
    Group(const GroupShape& shape, uint32_t n_slots, uint32_t ring_slots, std::unique_ptr<Policy> policy,
          UseFloors floors, double cpu_share);
    Pool pool;
    uint32_t n_ring;
    uint32_t next_ring = 0;
    uint32_t fill;  // slots that can be filled
    bool full;      // they have all been filled once
    CpuShare share;
    std::vector<Copy> copies;  // (slots) the copy into each
    uint32_t promotions = 0;   // under way
  };
  struct Open {
    bool open = false;
    bool cold = false;
    Plan plan;
    Work work;
    SplitKind kind = SplitKind::kHitsOnly;
    double best_us = 0.0;  // of a probe: what the best split would have taken
    std::vector<PlanEntry> entries;
    std::vector<ExpertKey> evicted;
  };
  struct Ended {
    Group& group;
    SlotId slot;
    LayerId layer;
    Copy copy;
  };

  Planner(const PlannerSettings& settings, std::span<const GroupShape> groups,
          std::span<const uint32_t> slots, std::span<const uint32_t> ring_slots,
          const HardwareProfile& profile, const PolicyMaker& maker);
  void write_notes();

  // The steps of plan().
  Open& begin(const Routing& routing);
  void classify(Open& open, const Routing& routing);
  void divide(Open& open, const Routing& routing);
  void joins_to_cpu(Open& open);
  void place(Open& open, const Routing& routing);
  void give_up_cache(Open& open);
  void finish(Open& open, const Routing& routing);
  void remember_wanted(Open& open);

  bool only_reads(const Group& group, const Routing& routing) const;
  bool admits(const Pool& pool, uint32_t layer, double score, SlotId victim) const;
  SlotId take_slot(Group& group, uint32_t layer, const Wanted& newcomer, std::vector<ExpertKey>& evicted);
  Ticket start_copy(GroupId group, SlotId slot, Purpose purpose);
  Ended end_copy(Ticket ticket);
  double ahead_us() const;
  std::optional<PromotionCopy> promote(LayerId next, double idle_link_us);
  void follow_controller();
  Counters& counters_of(LayerId layer, bool cold);

  PlannerSettings settings_;
  double admit_ = 0.0;
  bool promote_ = false;
  bool keep_ = true;  // what is copied may take slots
  CostModel cost_;
  std::unique_ptr<Controller> controller_;  // or null
  PlannerListener* listener_ = nullptr;
  std::vector<Group> groups_;
  std::vector<Layer> layers_;  // by LayerId; those in no group have group kNone
  std::vector<Open> open_;
  std::vector<uint32_t> free_open_;
  uint64_t serial_ = 0;           // of plans and copies
  double saved_link_us_ = 0.0;    // idle time for promotions
  double after_copies_us_ = 0.0;  // of the last plan: how long the link idles before the plan ends

  // Scratch of the plan that is being made.
  Splitter splitter_;
  std::vector<Wanted> hits_, joins_, misses_, cpu_;
  std::vector<uint32_t> hit_tokens_, join_tokens_, miss_tokens_, cpu_tokens_, device_tokens_;
  uint32_t n_copied_ = 0;  // the first of the misses
  std::vector<ExpertKey> promotion_evicted_;
  std::vector<std::string> notes_;
};

}  // namespace experts
}  // namespace spillway
