// A MoE layer on a device whose experts lie in host memory: asks the planner, and carries its plan out on
// device, link and CPU side by side.
//
//   stream:  ... route | experts in the table (hits) | uploaded ones, as they arrive | take CPU's | combine
//   ... host:              wait | plan, start copies | compute the CPU's share | link:                     |
//   copies ...                | promotions, while nothing else is to be copied |
//
// One wait a layer: for the router's ids. Hits start without it. A layer whose experts are all resident waits
// for nothing.
#pragma once

#include <array>
#include <deque>
#include <unordered_map>
#include <vector>

#include "backend/cpu/expert_compute.h"
#include "backend/device.h"
#include "engine/placement.h"
#include "engine/timeline.h"
#include "experts/planner.h"
#include "sys/clock.h"

namespace spillway::engine {

// Counted here, beside the planner's own counters.
struct StepTimes {
  uint64_t waits = 0;    // times the host waited for the device within a step
  uint64_t wait_ns = 0;  // how long
  uint64_t cpu_ns = 0;   // experts on the CPU
  uint64_t plan_ns = 0;
  uint64_t resident_layers = 0;  // layers passed that did not wait
};

// Of a layer whose experts are all resident. They are known after the step, and nobody waited for them.
struct ResidentUses {
  uint64_t passes = 0;  // micro-batches
  uint64_t tokens = 0;
  uint64_t experts = 0;  // distinct ones of each micro-batch, added up
};

class ExpertStep final : public backend::ExpertRunner {
 public:
  // All that is referred to must outlive this. `cpu` and `planner` are null where no layer is planned;
  // `matrices` are the host's by WeightId.
  ExpertStep(backend::Device& device, cpu::ExpertCompute* cpu, experts::Planner* planner,
             const Program& program, const Placement& placement, std::span<const backend::Matrix> matrices,
             const sys::Clock& clock);

  void moe(backend::BufferId x, const backend::MoeSpec& spec, backend::BufferId out) override;
  // After the device has finished the step: everything that was open is over.
  void end_step();
  // Between steps: waits for the last promotions and takes every planned expert out of its table.
  Result<void> empty_cache();

  void set_timeline(Timeline* timeline) { timeline_ = timeline; }
  const StepTimes& times() const { return times_; }
  // By layer of the model; all 0 for those that are not resident.
  std::span<const ResidentUses> resident_uses() const { return resident_uses_; }

 private:
  // A plan whose results have not been combined yet, as far as we know. Used again and again, so that a step
  // allocates nothing.
  struct Open {
    const experts::Plan* plan = nullptr;
    backend::Point routed, hits, done;
    std::vector<backend::Point> computed;  // after each batch of experts that were copied, or joined
    std::vector<backend::Point> copies;
    std::vector<experts::Ticket> tickets;  // of uploads
    uint64_t host_routed_ns = 0;           // when the wait for the ids was over
    uint64_t cpu_ns = 0;
  };
  struct Promotion {
    experts::PromotionCopy copy;
    backend::Point point;
  };

  void moe_planned(backend::BufferId x, const backend::MoeSpec& spec, const LayerPlacement& at,
                   backend::BufferId out);
  std::unique_ptr<Open> take_open();
  bool wait(backend::Point point);
  void take_promotions();
  void complete_reached(bool all);
  void complete(Open& open);
  void add_to_timeline(const Open& open, uint32_t layer, bool any_hit);
  void issue(Open& open, backend::BufferId x, const backend::MoeSpec& spec, const LayerPlacement& at);
  void run_batch(Open& open, backend::BufferId x, const backend::MoeSpec& spec);
  void run_on_cpu(Open& open, const backend::MoeSpec& spec);
  void promote(const Open& open, const LayerPlacement& at);
  void forget_slot(experts::ExpertKey key);
  backend::ExpertMatrices matrices_of(uint32_t layer, uint32_t expert) const;
  uint32_t device_slot(uint32_t pool, experts::SlotId slot) const {
    return placement_.pools[pool].resident_slots + slot;
  }

  backend::Device& device_;
  cpu::ExpertCompute* const cpu_;
  experts::Planner* const planner_;
  const Program& program_;
  const Placement& placement_;
  const std::span<const backend::Matrix> matrices_;
  const sys::Clock& clock_;
  experts::UseCounter counter_;
  std::vector<uint32_t> model_layer_;  // by planner's layer
  std::vector<ResidentUses> resident_uses_;
  struct Passed {
    uint32_t layer, n_experts, n_used;
  };
  std::vector<Passed> resident_passed_;  // in this step
  std::deque<std::unique_ptr<Open>> open_;
  std::vector<std::unique_ptr<Open>> spare_;
  std::vector<Promotion> promotions_;
  // When the last promotions were on the link: as many as the planner may have granted during a few layers.
  std::array<backend::Interval, 8> promoted_{};
  size_t next_promoted_ = 0;
  std::unordered_map<experts::Ticket, backend::Point> under_way_;
  std::vector<std::vector<backend::Point>> ring_free_;  // (pools, ring slots) when each may be overwritten
  std::vector<backend::ExpertSlot> batch_;
  backend::Point batch_arrives_;
  std::vector<uint8_t> on_cpu_;       // (experts)
  std::vector<uint32_t> batch_ring_;  // ring slots that the batch reads
  uint64_t last_plan_ns_ = 0;
  // Host time less device time: the least that was seen when the host learnt of a point, so by as much too
  // large as the quickest notice took.
  int64_t device_to_host_ns_ = INT64_MAX;
  Timeline* timeline_ = nullptr;
  StepTimes times_;
};

}  // namespace spillway::engine
