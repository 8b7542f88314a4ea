#include "engine/engine.h"

#include "base/limits.h"
#include "engine/engine_state.h"
#include "experts/controller.h"
#include "model/sizes.h"

namespace spillway::engine {

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

const gguf::Metadata& Engine::metadata() const { return state_->files.model.metadata(); }
const model::Description& Engine::description() const { return state_->plan->description; }
const MemoryPlan& Engine::memory() const { return state_->plan->memory; }
const Placement& Engine::placement() const { return state_->plan->placement; }
const backend::DeviceInfo* Engine::device() const {
  return state_->opened.device ? &state_->opened.device->info() : nullptr;
}
std::vector<std::string> Engine::notes() const {
  std::vector<std::string> notes = state_->notes;
  if (state_->planner)
    notes.insert(notes.end(), state_->planner->notes().begin(), state_->planner->notes().end());
  return notes;
}
Result<void> Engine::reconfigure(const RunSettings& settings) { return state_->reconfigure(settings); }
const Timeline* Engine::timeline() const { return state_->timeline.get(); }
double Engine::load_seconds() const { return state_->load_seconds; }
SequenceId Engine::open_sequence() { return state_->pages->open(); }
void Engine::close_sequence(SequenceId id) { state_->pages->close(id); }
uint32_t Engine::length(SequenceId id) const { return state_->pages->length(id); }
void Engine::truncate(SequenceId id, uint32_t length) { state_->pages->truncate(id, length); }
SequenceId Engine::fork(SequenceId id, uint32_t length) { return state_->pages->fork(id, length); }

Result<std::unique_ptr<Engine>> Engine::load(const Options& options, const Progress& progress) {
  SW_ASSIGN(auto state, State::load(options, progress));
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

ExpertStats Engine::expert_stats() const {
  const State& s = *state_;
  ExpertStats stats{.pinned_bytes = s.pinned_bytes};
  if (!s.experts) return stats;
  stats.times = s.experts->times();
  for (const std::span<const std::byte> range : s.weights.ranges()) stats.host_expert_bytes += range.size();
  for (uint32_t l = 0; l < s.plan->placement.layers.size(); ++l)
    if (s.plan->placement.layers[l].experts == ExpertPlace::kResident)
      stats.resident.push_back({l, s.experts->resident_uses()[l]});
  if (!s.planner) return stats;
  stats.total = s.planner->total();
  if (s.planner->report() != nullptr) stats.controller = experts::describe(*s.planner->report());
  for (uint32_t l = 0; l < s.plan->placement.layers.size(); ++l) {
    const LayerPlacement& at = s.plan->placement.layers[l];
    if (at.experts == ExpertPlace::kPlanned)
      stats.layers.push_back({l, s.planner->counters(at.planner_layer)});
  }
  return stats;
}

Result<void> Engine::begin_trace(const std::string& source, experts::TraceWriter::Sink sink) {
  State& s = *state_;
  if (!s.planner)
    return unsupported("there is nothing to record: {}",
                       s.opened.device
                           ? "all experts are resident on the device, so none is planned (-cmoe keeps them "
                             "in host memory)"
                           : "the CPU runs alone, so no expert is planned (--device)");
  const Placement& placement = s.plan->placement;
  const model::Sizes sizes = model::measure_sizes(description());
  experts::TraceHead head{
      .source = source,
      .settings = s.options.device.planner,
      .groups = placement.groups,
      .profile = s.plan->memory.profile,
      .dense_bytes = sizes.dense_bytes() - (description().tied ? 0 : sizes.embedding_bytes)};
  for (const uint32_t pool : placement.group_pool) {
    head.slots.push_back(placement.pools[pool].used_slots);
    head.ring_slots.push_back(placement.pools[pool].ring_slots);
  }
  s.trace = std::make_unique<experts::TraceWriter>(head, std::move(sink));
  s.planner->listen(s.trace.get());
  return {};
}

Result<void> Engine::end_trace() {
  State& s = *state_;
  if (!s.trace) return {};
  s.planner->listen(nullptr);
  const std::unique_ptr<experts::TraceWriter> trace = std::move(s.trace);
  return trace->finish();
}

void Engine::record_timeline() {
  state_->timeline = std::make_unique<Timeline>();
  if (state_->experts) state_->experts->set_timeline(state_->timeline.get());
}

Result<void> Engine::decode(std::span<const BatchItem> items, const LogitsSink& sink,
                            const std::function<bool()>& keep_going) {
  State& s = *state_;
  std::vector<uint32_t> before;
  for (const BatchItem& item : items) {
    before.push_back(length(item.sequence));
    if (before.back() + item.tokens.size() > context())
      return fail(Error::Kind::kNoMemory,
                  "{} tokens do not fit: the sequence holds {} and the context is {}; raise it with -c",
                  item.tokens.size(), before.back(), context());
    for (const int32_t token : item.tokens)
      if (token < 0 || static_cast<uint32_t>(token) >= vocabulary())
        return invalid("token {} is outside the vocabulary of {}", token, vocabulary());
  }
  Result<void> done = s.run(items, sink, keep_going);
  if (done) return {};
  for (size_t i = 0; i < items.size(); ++i) s.pages->truncate(items[i].sequence, before[i]);
  if (done.error().kind != Error::Kind::kDeviceLost || !s.options.device.continue_on_host) return done;

  // The device is gone, and what it held with it.
  Options options = s.options;
  options.device.device = "none";
  std::unique_ptr<KvPages> pages = std::move(s.pages);
  pages->forget_all();
  const std::string reason = done.error().message;
  state_.reset();  // its memory is needed
  auto state = State::load(options, {});
  if (!state) return std::unexpected(state.error().in(reason + "; and going on without it failed"));
  state_ = std::move(*state);
  state_->pages = std::move(pages);
  state_->notes.push_back(reason + "; the CPU alone goes on, and every sequence is empty");
  return fail(Error::Kind::kDeviceLost, "{}; the CPU alone goes on from here, and every sequence is empty",
              reason);
}

}  // namespace spillway::engine
