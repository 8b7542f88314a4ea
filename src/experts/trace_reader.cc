#include <algorithm>

#include "base/limits.h"
#include "experts/trace.h"
#include "experts/trace_codec.h"

namespace spillway {
namespace experts {
namespace {

constexpr uint64_t kMostText = 1 << 16;
constexpr uint64_t kAny = ~uint64_t{0};
constexpr uint32_t kMostSlots = (1u << 24) - 1;  // as the planner's tickets hold

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : in_(bytes) {}

  Result<Trace> read() {
    for (const char c : kTraceMagic)
      if (const auto byte = in_.number(kAny, "the first bytes"); !byte || *byte != static_cast<uint64_t>(c))
        return invalid("this is no trace of Spillway: it does not begin with '{}'", kTraceMagic);
    SW_ASSIGN(const uint64_t version, in_.number(kAny, "the version"));
    if (version != kTraceVersion)
      return unsupported("trace: version {}; this program reads version {}", version, kTraceVersion);
    SW_TRY(head());
    for (;;) {
      // A run that was cut off leaves part of a record: what came before it counts.
      const auto more = record();
      if (!more && in_.ran_out()) {
        drop_part();
        return std::move(trace_);
      }
      if (!more) return std::unexpected(more.error());
      if (!*more) break;
    }
    if (!in_.at_end()) return invalid("trace: bytes follow its end at byte {}", in_.position());
    trace_.whole = true;
    return std::move(trace_);
  }

 private:
  template <class T>
  Result<void> take(T& to, uint64_t most, std::string_view what) {
    SW_ASSIGN(const uint64_t value, in_.number(most, what));
    to = static_cast<T>(value);
    return {};
  }
  Result<void> take_real(double& to, std::string_view what) {
    SW_ASSIGN(to, in_.real(what));
    return {};
  }
  Result<void> take(Choice& choice, std::string_view what) {
    SW_TRY(take(choice.kind, 2, what));
    return take_real(choice.value, what);
  }

  Result<void> head() {
    TraceHead& head = trace_.head;
    SW_ASSIGN(head.source, in_.text(kMostText, "the source"));
    PlannerSettings& s = head.settings;
    SW_TRY(take(s.policy.kind, kPolicies - 1, "the policy"));
    SW_TRY(take_real(s.policy.half_life, "the half-life"));
    SW_TRY(take(s.policy.static_tokens, UINT32_MAX, "the static policy's tokens"));
    SW_TRY(take(s.cpu_share, "the CPU share"));
    SW_TRY(take(s.admit, "the admission factor"));
    SW_TRY(take(s.promote, 3, "promotion"));
    SW_TRY(take(s.explore, 1, "exploration"));
    SW_TRY(take(s.max_open_plans, limits::kMaxLayers, "the open plans"));
    SW_ASSIGN(const uint64_t n_groups, in_.number(limits::kMaxLayers, "the number of groups"));
    for (uint64_t g = 0; g < n_groups; ++g) {
      GroupShape group;
      SW_ASSIGN(const uint64_t n_layers, in_.number(limits::kMaxLayers, "the layers of a group"));
      for (uint64_t i = 0; i < n_layers; ++i) {
        SW_ASSIGN(const uint64_t layer, in_.number(limits::kMaxLayers - 1, "a layer of a group"));
        group.layers.push_back(static_cast<LayerId>(layer));
      }
      SW_TRY(take(group.n_experts, limits::kMaxExperts, "the experts of a group"));
      SW_TRY(take(group.n_used, limits::kMaxExpertsUsed, "the experts used per token"));
      SW_TRY(take(group.expert_bytes, uint64_t{1} << 48, "the bytes of an expert"));
      SW_TRY(take(head.slots.emplace_back(), kMostSlots, "the slots of a group"));
      SW_TRY(take(head.ring_slots.emplace_back(), kMostSlots, "the ring slots of a group"));
      head.groups.push_back(std::move(group));
    }
    SW_TRY(check_groups(head.groups));
    for (const GroupShape& group : head.groups)
      for (const LayerId layer : group.layers) {
        if (shape_of_.size() <= layer) shape_of_.resize(layer + 1, nullptr);
        shape_of_[layer] = &group;
      }
    HardwareProfile& profile = head.profile;
    SW_ASSIGN(profile.name, in_.text(kMostText, "the profile's name"));
    SW_ASSIGN(profile.source, in_.text(kMostText, "the profile's source"));
    for (const auto& [key, quantity] : profile.quantities()) {
      SW_TRY(take_real(quantity->value, key));
      SW_TRY(take(quantity->label, kLabels - 1, key));
    }
    SW_TRY(profile.check());
    return take(head.dense_bytes, uint64_t{1} << 48, "the dense bytes");
  }

  // False: the end.
  Result<bool> record() {
    SW_ASSIGN(const uint64_t tag, in_.number(1 + static_cast<uint64_t>(Trace::Kind::kStepEnd), "a record"));
    if (tag == 0) return false;
    const auto kind = static_cast<Trace::Kind>(tag - 1);
    uint64_t value = 0;
    switch (kind) {
      case Trace::Kind::kStep:
        SW_TRY(take(value, limits::kMaxUbatch, "the tokens of a step"));
        stepped_ = true;
        break;
      case Trace::Kind::kStepEnd:
        SW_TRY(take(value, kAny, "the time of a step"));
        break;
      case Trace::Kind::kArrived:
      case Trace::Kind::kFailed:
      case Trace::Kind::kCancelled:
        SW_TRY(take(value, kAny, "a ticket"));
        break;
      case Trace::Kind::kPlan:
        if (!stepped_) return invalid("trace: a plan before the first step");
        value = trace_.plans.size();
        trace_.plans.emplace_back();
        SW_TRY(plan(trace_.plans.back()));
        break;
      case Trace::Kind::kComplete: {
        value = trace_.completed.size();
        Trace::Completed& completed = trace_.completed.emplace_back();
        SW_TRY(take(completed.id, kAny, "a plan's id"));
        Observation& seen = completed.seen;
        for (uint64_t* ns :
             {&seen.device_ns, &seen.link_ns, &seen.background_ns, &seen.cpu_ns, &seen.total_ns})
          SW_TRY(take(*ns, kAny, "a time"));
        break;
      }
      case Trace::Kind::kAsk:
        value = trace_.asked.size();
        trace_.asked.emplace_back();
        SW_TRY(ask(trace_.asked.back()));
        break;
    }
    trace_.events.push_back({kind, value});
    return true;
  }

  // A key whose layer and expert exist.
  Result<void> take(ExpertKey& key) {
    SW_TRY(take_layer(key.layer));
    return take(key.expert, shape_of_[key.layer]->n_experts - 1, "an expert");
  }
  Result<void> take_layer(LayerId& layer) {
    SW_TRY(take(layer, shape_of_.size() - 1, "a layer"));
    if (shape_of_[layer] == nullptr) return invalid("trace: layer {} is in no group", layer);
    return {};
  }

  Result<void> plan(Trace::Planned& plan) {
    SW_TRY(take(plan.id, kAny, "a plan's id"));
    SW_TRY(take_layer(plan.layer));
    const uint32_t n_experts = shape_of_[plan.layer]->n_experts;
    SW_TRY(take(plan.n_tokens, limits::kMaxUbatch, "the tokens of a plan"));
    SW_ASSIGN(const uint64_t n, in_.number(n_experts, "the experts of a plan"));
    if (n == 0) return invalid("trace: a plan of layer {} without experts", plan.layer);
    seen_.assign(n_experts, 0);
    for (uint64_t i = 0; i < n; ++i) {
      PlanEntry& entry = plan.entries.emplace_back();
      SW_TRY(take(entry.expert, n_experts - 1, "an expert"));
      if (seen_[entry.expert]++ != 0)
        return invalid("trace: expert {} twice in a plan of layer {}", entry.expert, plan.layer);
      SW_TRY(take(entry.tokens, plan.n_tokens, "the tokens of an expert"));
      if (entry.tokens == 0)
        return invalid("trace: expert {} of layer {} without tokens", entry.expert, plan.layer);
      SW_TRY(take(entry.decision, kDecisions - 1, "a decision"));
      if (entry.decision != Decision::kCpu) SW_TRY(take(entry.slot, kMostSlots, "a slot"));
      if (entry.decision == Decision::kUpload || entry.decision == Decision::kJoin)
        SW_TRY(take(entry.ticket, kAny, "a ticket"));
    }
    // More than the plan uses where the cache was given up.
    SW_ASSIGN(const uint64_t n_evicted, in_.number(kMostSlots, "the evicted of a plan"));
    for (uint64_t i = 0; i < n_evicted; ++i) SW_TRY(take(plan.evicted.emplace_back()));
    return {};
  }

  Result<void> ask(Trace::Asked& asked) {
    SW_TRY(take(asked.next, limits::kMaxLayers, "a layer"));
    SW_TRY(take_real(asked.idle_link_us, "an idle time"));
    SW_ASSIGN(const uint64_t granted, in_.number(2, "a promotion"));
    if (granted == 0) return {};
    PromotionCopy copy;
    SW_TRY(take(copy.key));
    for (GroupId g = 0; g < trace_.head.groups.size(); ++g)
      if (shape_of_[copy.key.layer] == &trace_.head.groups[g]) copy.group = g;
    SW_TRY(take(copy.slot, kMostSlots, "a slot"));
    SW_TRY(take(copy.ticket, kAny, "a ticket"));
    if (granted == 2) SW_TRY(take(copy.evicted.emplace()));
    asked.granted = copy;
    return {};
  }

  // The last record has no event if it is not whole.
  void drop_part() {
    const auto count = [&](Trace::Kind kind) {
      return static_cast<size_t>(
          std::count_if(trace_.events.begin(), trace_.events.end(),
                        [&](const Trace::Event& event) { return event.kind == kind; }));
    };
    trace_.plans.resize(count(Trace::Kind::kPlan));
    trace_.completed.resize(count(Trace::Kind::kComplete));
    trace_.asked.resize(count(Trace::Kind::kAsk));
  }

  TraceDecoder in_;
  Trace trace_;
  std::vector<const GroupShape*> shape_of_;  // by layer
  std::vector<uint8_t> seen_;
  bool stepped_ = false;
};

}  // namespace

Result<Trace> parse_trace(std::span<const std::byte> bytes) { return Reader(bytes).read(); }

Routes routes_of(const Trace& trace) {
  Routes routes;
  routes.groups = trace.head.groups;
  std::vector<Use> uses;
  for (const Trace::Event& event : trace.events) {
    if (event.kind == Trace::Kind::kStep) routes.begin_step(static_cast<uint32_t>(event.value));
    if (event.kind != Trace::Kind::kPlan) continue;
    const Trace::Planned& plan = trace.plans[event.value];
    uses.clear();
    for (const PlanEntry& entry : plan.entries) uses.push_back({entry.expert, entry.tokens});
    std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.expert < b.expert; });
    routes.add({plan.layer, plan.n_tokens, uses});
  }
  return routes;
}

}  // namespace experts
}  // namespace spillway
