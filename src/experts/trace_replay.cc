// The same planner, given the recorded calls.
#include <algorithm>
#include <map>

#include "experts/trace.h"

namespace spillway {
namespace experts {
namespace {

class Replay {
 public:
  explicit Replay(const Trace& trace) : trace_(trace) {}

  Result<ReplayResult> run() {
    const TraceHead& head = trace_.head;
    SW_ASSIGN(planner_,
              Planner::create(head.settings, head.groups, head.slots, head.ring_slots, head.profile));
    most_open_ = head.settings.max_open_plans > 0 ? head.settings.max_open_plans : count_layers(head.groups);
    for (size_t i = 0; i < trace_.events.size(); ++i)
      if (const auto done = step(trace_.events[i]); !done)
        return std::unexpected(done.error().in(fmt::format("trace, record {}", i)));
    return ReplayResult{trace_.plans.size(), planner_->total()};
  }

 private:
  Result<void> step(const Trace::Event& event) {
    switch (event.kind) {
      case Trace::Kind::kStep:
      case Trace::Kind::kStepEnd:
        return {};
      case Trace::Kind::kPlan:
        return plan(trace_.plans[event.value]);
      case Trace::Kind::kComplete: {
        const Trace::Completed& completed = trace_.completed[event.value];
        if (std::erase(open_, completed.id) == 0) return invalid("plan {} is not open", completed.id);
        planner_->complete(completed.id, completed.seen);
        return {};
      }
      case Trace::Kind::kAsk:
        return ask(trace_.asked[event.value]);
      case Trace::Kind::kArrived:
      case Trace::Kind::kFailed:
      case Trace::Kind::kCancelled:
        return end_copy(event);
    }
    return {};
  }

  Result<void> plan(const Trace::Planned& recorded) {
    if (open_.size() == most_open_) return invalid("more than {} plans are open", most_open_);
    uses_.clear();
    for (const PlanEntry& entry : recorded.entries) uses_.push_back({entry.expert, entry.tokens});
    std::sort(uses_.begin(), uses_.end(), [](const Use& a, const Use& b) { return a.expert < b.expert; });
    const Plan& plan = planner_->plan({recorded.layer, recorded.n_tokens, uses_});
    for (size_t i = 0; i < plan.entries.size(); ++i)
      if (plan.entries[i] != recorded.entries[i])
        return invalid(
            "layer {}: recorded is expert {} as {} in slot {}, planned is expert {} as {} in slot {}",
            plan.layer, recorded.entries[i].expert, decision_name(recorded.entries[i].decision),
            static_cast<int32_t>(recorded.entries[i].slot), plan.entries[i].expert,
            decision_name(plan.entries[i].decision), static_cast<int32_t>(plan.entries[i].slot));
    if (plan.id != recorded.id || !std::equal(plan.evicted.begin(), plan.evicted.end(),
                                              recorded.evicted.begin(), recorded.evicted.end()))
      return invalid("layer {}: other experts are evicted than recorded", plan.layer);
    open_.push_back(plan.id);
    for (const PlanEntry& entry : plan.entries)
      if (entry.decision == Decision::kUpload) copies_[entry.ticket] = false;
    return {};
  }

  Result<void> ask(const Trace::Asked& asked) {
    const auto granted = planner_->next_promotion(asked.next, asked.idle_link_us);
    if (granted != asked.granted)
      return invalid("recorded is {}, granted is {}", describe(asked.granted), describe(granted));
    if (granted) copies_[granted->ticket] = true;
    return {};
  }

  Result<void> end_copy(const Trace::Event& event) {
    const auto copy = copies_.find(event.value);
    if (copy == copies_.end()) return invalid("copy {} is not under way", event.value);
    if (event.kind == Trace::Kind::kCancelled) {
      if (!copy->second || planner_->in_use(event.value))
        return invalid("copy {} can't be cancelled", event.value);
      planner_->cancelled(event.value);
    } else if (event.kind == Trace::Kind::kArrived) {
      planner_->arrived(event.value);
    } else {
      planner_->failed(event.value);
    }
    copies_.erase(copy);
    return {};
  }

  static std::string describe(const std::optional<PromotionCopy>& copy) {
    if (!copy) return "no promotion";
    return fmt::format("a promotion of expert {} of layer {}", copy->key.expert, copy->key.layer);
  }

  const Trace& trace_;
  std::unique_ptr<Planner> planner_;
  size_t most_open_ = 0;
  std::vector<uint64_t> open_;
  std::map<Ticket, bool> copies_;  // under way: whether it is a promotion
  std::vector<Use> uses_;
};

}  // namespace

Result<ReplayResult> verify_replay(const Trace& trace) { return Replay(trace).run(); }

}  // namespace experts
}  // namespace spillway
