#include "experts/trace.h"
#include "experts/trace_codec.h"

namespace spillway {
namespace experts {
namespace {

constexpr size_t kPiece = 64 << 10;

void write(TraceEncoder& out, const Choice& choice) {
  out.number(static_cast<uint64_t>(choice.kind));
  out.real(choice.value);
}

void write(TraceEncoder& out, const PlannerSettings& settings) {
  out.number(static_cast<uint64_t>(settings.policy.kind));
  out.real(settings.policy.half_life);
  out.number(settings.policy.static_tokens);
  write(out, settings.cpu_share);
  write(out, settings.admit);
  out.number(static_cast<uint64_t>(settings.promote));
  out.number(settings.explore ? 1 : 0);
  out.number(settings.max_open_plans);
}

void write(TraceEncoder& out, const HardwareProfile& profile) {
  out.text(profile.name);
  out.text(profile.source);
  for (const auto& [key, quantity] : profile.quantities()) {
    out.real(quantity->value);
    out.number(static_cast<uint64_t>(quantity->label));
  }
}

void write(TraceEncoder& out, const ExpertKey& key) {
  out.number(key.layer);
  out.number(key.expert);
}

}  // namespace

TraceWriter::TraceWriter(const TraceHead& head, Sink sink) : sink_(std::move(sink)) {
  buffer_.reserve(2 * kPiece);
  for (const char c : kTraceMagic) buffer_.push_back(static_cast<std::byte>(c));
  TraceEncoder out(buffer_);
  out.number(kTraceVersion);
  out.text(head.source);
  write(out, head.settings);
  out.number(head.groups.size());
  for (size_t g = 0; g < head.groups.size(); ++g) {
    const GroupShape& group = head.groups[g];
    out.number(group.layers.size());
    for (const LayerId layer : group.layers) out.number(layer);
    out.number(group.n_experts);
    out.number(group.n_used);
    out.number(group.expert_bytes);
    out.number(head.slots[g]);
    out.number(head.ring_slots[g]);
  }
  write(out, head.profile);
  out.number(head.dense_bytes);
}

void TraceWriter::flush() {
  if (!error_ && !buffer_.empty())
    if (const auto written = sink_(buffer_); !written) error_ = written.error();
  buffer_.clear();
}

void TraceWriter::begin(Trace::Kind kind) {
  if (buffer_.size() >= kPiece) flush();
  TraceEncoder(buffer_).number(1 + static_cast<uint64_t>(kind));  // 0 ends the trace
}

Result<void> TraceWriter::finish() {
  TraceEncoder(buffer_).number(0);
  flush();
  if (error_) return std::unexpected(*error_);
  return {};
}

void TraceWriter::begin_step(uint32_t n_tokens) {
  begin(Trace::Kind::kStep);
  TraceEncoder(buffer_).number(n_tokens);
}

void TraceWriter::end_step(uint64_t step_ns) {
  begin(Trace::Kind::kStepEnd);
  TraceEncoder(buffer_).number(step_ns);
}

void TraceWriter::planned(const Plan& plan) {
  begin(Trace::Kind::kPlan);
  TraceEncoder out(buffer_);
  out.number(plan.id);
  out.number(plan.layer);
  out.number(plan.n_tokens);
  out.number(plan.entries.size());
  for (const PlanEntry& entry : plan.entries) {
    out.number(entry.expert);
    out.number(entry.tokens);
    out.number(static_cast<uint64_t>(entry.decision));
    if (entry.decision != Decision::kCpu) out.number(entry.slot);
    if (entry.decision == Decision::kUpload || entry.decision == Decision::kJoin) out.number(entry.ticket);
  }
  out.number(plan.evicted.size());
  for (const ExpertKey& key : plan.evicted) write(out, key);
}

void TraceWriter::completed(uint64_t plan_id, const Observation& seen) {
  begin(Trace::Kind::kComplete);
  TraceEncoder out(buffer_);
  out.number(plan_id);
  for (const uint64_t ns : {seen.device_ns, seen.link_ns, seen.background_ns, seen.cpu_ns, seen.total_ns})
    out.number(ns);
}

void TraceWriter::arrived(Ticket ticket) {
  begin(Trace::Kind::kArrived);
  TraceEncoder(buffer_).number(ticket);
}

void TraceWriter::failed(Ticket ticket) {
  begin(Trace::Kind::kFailed);
  TraceEncoder(buffer_).number(ticket);
}

void TraceWriter::cancelled(Ticket ticket) {
  begin(Trace::Kind::kCancelled);
  TraceEncoder(buffer_).number(ticket);
}

void TraceWriter::asked(LayerId next, double idle_link_us, const std::optional<PromotionCopy>& granted) {
  begin(Trace::Kind::kAsk);
  TraceEncoder out(buffer_);
  out.number(next);
  out.real(idle_link_us);
  out.number(granted ? (granted->evicted ? 2 : 1) : 0);
  if (!granted) return;
  write(out, granted->key);
  out.number(granted->slot);
  out.number(granted->ticket);
  if (granted->evicted) write(out, *granted->evicted);
}

}  // namespace experts
}  // namespace spillway
