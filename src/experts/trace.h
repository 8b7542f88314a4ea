// The record of a run: what was routed and decided, layer by layer, with the times. docs/trace-format.md is
// the format. All calls of the planner are in it, in order, so that the same planner given the same calls
// makes the same decisions; and the routes are in it, for any other planner (experts/simulator.h).
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "experts/planner.h"
#include "experts/routes.h"

namespace spillway {
namespace experts {

inline constexpr uint32_t kTraceVersion = 1;

// Under which conditions the run took place.
struct TraceHead {
  std::string source;  // what ran: model, machine, command; free text
  PlannerSettings settings;
  std::vector<GroupShape> groups;
  std::vector<uint32_t> slots;       // (groups)
  std::vector<uint32_t> ring_slots;  // (groups)
  HardwareProfile profile;           // what the planner started from
  uint64_t dense_bytes = 0;          // read per token beside the experts
};

struct Trace {
  enum class Kind : uint8_t { kStep, kPlan, kComplete, kArrived, kFailed, kCancelled, kAsk, kStepEnd };
  struct Event {
    Kind kind;
    // kStep: tokens of the micro-batch; kStepEnd: nanoseconds of the step; kPlan, kComplete, kAsk: index
    // below; kArrived, kFailed, kCancelled: the ticket.
    uint64_t value;
    bool operator==(const Event&) const = default;
  };
  struct Planned {
    uint64_t id;
    LayerId layer;
    uint32_t n_tokens;
    std::vector<PlanEntry> entries;
    std::vector<ExpertKey> evicted;
    bool operator==(const Planned&) const = default;
  };
  struct Completed {
    uint64_t id;
    Observation seen;
    bool operator==(const Completed&) const = default;
  };
  struct Asked {
    LayerId next;
    double idle_link_us;
    std::optional<PromotionCopy> granted;
    bool operator==(const Asked&) const = default;
  };

  TraceHead head;
  std::vector<Event> events;
  std::vector<Planned> plans;
  std::vector<Completed> completed;
  std::vector<Asked> asked;
  bool whole = false;  // it ends as it should: the run was not cut off
};

// Writes a trace while a planner is used. Bytes go to `sink` in pieces of about 64 KiB; its first error is
// kept and nothing is written after it. Not thread safe.
class TraceWriter final : public PlannerListener {
 public:
  using Sink = std::function<Result<void>(std::span<const std::byte>)>;
  TraceWriter(const TraceHead& head, Sink sink);

  // Around the layers of each micro-batch. Requires: before the first plan.
  void begin_step(uint32_t n_tokens);
  void end_step(uint64_t step_ns);
  // Writes what is left. The sink's first error, if there was one.
  Result<void> finish();

  void planned(const Plan& plan) override;
  void completed(uint64_t plan_id, const Observation& seen) override;
  void arrived(Ticket ticket) override;
  void failed(Ticket ticket) override;
  void cancelled(Ticket ticket) override;
  void asked(LayerId next, double idle_link_us, const std::optional<PromotionCopy>& granted) override;

 private:
  void begin(Trace::Kind kind);
  void flush();

  Sink sink_;
  std::vector<std::byte> buffer_;
  std::optional<Error> error_;
};

// Any bytes give a trace or an error. A trace that breaks off is read up to its last whole record.
Result<Trace> parse_trace(std::span<const std::byte> bytes);

// The routes of a trace. Plans of steps are in the order in which they were made.
Routes routes_of(const Trace& trace);

// Gives a planner the recorded calls and compares its decisions with the recorded ones: experts, places,
// slots, victims, promotions. An error names the first difference.
struct ReplayResult {
  uint64_t plans = 0;  // compared
  LayerCounters counters;
};
Result<ReplayResult> verify_replay(const Trace& trace);

}  // namespace experts
}  // namespace spillway
