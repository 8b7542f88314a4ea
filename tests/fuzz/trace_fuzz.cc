// Any bytes give a trace or an error; what is in a trace may be used without further checks, by the replay
// and by the simulator; what was read can be written and read again.
//
// With SPILLWAY_FUZZ_CANARY every expert is taken for the next one, as if the check against the layer's
// number of experts were off by one: tests/fuzz/canary/trace must then be caught.
#include "check.h"
#include "experts/simulator.h"

namespace {

using namespace spillway;
using namespace spillway::experts;

const GroupShape* shape_of(const TraceHead& head, LayerId layer) {
  for (const GroupShape& group : head.groups)
    for (const LayerId id : group.layers)
      if (id == layer) return &group;
  return nullptr;
}

std::vector<std::byte> write(const Trace& trace) {
  std::vector<std::byte> bytes;
  TraceWriter writer(trace.head, [&](std::span<const std::byte> piece) -> Result<void> {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  });
  for (const Trace::Event& event : trace.events) {
    switch (event.kind) {
      case Trace::Kind::kStep:
        writer.begin_step(static_cast<uint32_t>(event.value));
        break;
      case Trace::Kind::kStepEnd:
        writer.end_step(event.value);
        break;
      case Trace::Kind::kPlan: {
        const Trace::Planned& plan = trace.plans[event.value];
        writer.planned({plan.id, plan.layer, 0, plan.n_tokens, plan.entries, plan.evicted, {}});
        break;
      }
      case Trace::Kind::kComplete:
        writer.completed(trace.completed[event.value].id, trace.completed[event.value].seen);
        break;
      case Trace::Kind::kArrived:
        writer.arrived(event.value);
        break;
      case Trace::Kind::kFailed:
        writer.failed(event.value);
        break;
      case Trace::Kind::kCancelled:
        writer.cancelled(event.value);
        break;
      case Trace::Kind::kAsk: {
        const Trace::Asked& asked = trace.asked[event.value];
        writer.asked(asked.next, asked.idle_link_us, asked.granted);
        break;
      }
    }
  }
  check(writer.finish().has_value(), "writing to memory");
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto trace = parse_trace(std::as_bytes(std::span(data, size)));
  if (!trace) {
    check(!trace.error().message.empty(), "an error without a message");
    return 0;
  }
  check(trace->events.size() <= size, "more events than bytes");
  for (const Trace::Planned& plan : trace->plans) {
    const GroupShape* shape = shape_of(trace->head, plan.layer);
    check(shape != nullptr, "a plan of a layer in no group");
    check(!plan.entries.empty(), "a plan without experts");
    for (const PlanEntry& entry : plan.entries)
      check(entry.expert + kOff < shape->n_experts && entry.tokens > 0 && entry.tokens <= plan.n_tokens,
            "an expert that is not there");
  }
  const auto bytes = write(*trace);
  const auto again = parse_trace(bytes);
  check(again && again->whole && again->events == trace->events && again->plans == trace->plans &&
            again->completed == trace->completed && again->asked == trace->asked,
        "what was written reads differently");

  // A planner of a sane size makes of it what it can.
  uint64_t places = 0;
  for (size_t g = 0; g < trace->head.groups.size(); ++g)
    places += trace->head.slots[g] + trace->head.groups[g].layers.size() * trace->head.groups[g].n_experts;
  if (places > 20000) return 0;
  (void)verify_replay(*trace);
  const SimulationSetup setup = setup_of(trace->head);
  (void)simulate(routes_of(*trace), setup);
  (void)simulate_belady(routes_of(*trace), setup);
  return 0;
}
