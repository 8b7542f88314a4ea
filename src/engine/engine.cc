#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "backend/cpu/cpu_compute.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/limits.h"
#include "engine/device_load.h"
#include "engine/program.h"
#include "engine/rope_tables.h"
#include "engine/weights.h"
#include "experts/controller.h"
#include "model/describe.h"
#include "model/sizes.h"
#include "sys/cpu.h"
#include "sys/memory_limits.h"

namespace spillway::engine {

struct Engine::State {
  Options options;
  ModelFiles files;
  std::unique_ptr<Plan> plan;
  double load_seconds = 0;
  sys::MonotonicClock real_clock;
  std::unique_ptr<sys::ThreadPool> pool;
  HostWeights weights;
  std::vector<RopeTables> ropes;
  sys::Allocation kv_memory;
  std::vector<cpu::KvLayer> kv_layers;
  std::unique_ptr<KvPages> pages;
  std::unique_ptr<cpu::CpuCompute> cpu;
  std::unique_ptr<cpu::ExpertCompute> cpu_experts;  // where some are planned
  std::unique_ptr<experts::TraceWriter> trace;      // while one is written; the planner tells it
  std::unique_ptr<experts::Planner> planner;
  std::unique_ptr<Timeline> timeline;
  std::unique_ptr<ExpertStep> experts;  // where there is a device
  uint64_t pinned_bytes = 0;
  std::vector<std::string> notes;
  AlignedArray<float> logits;  // (logits_rows, vocabulary)
  uint32_t logits_rows = 0;
  // Ends first: its copies, those of experts that were promoted last too, read the memory above.
  OpenedDevice opened;

  static Result<std::unique_ptr<State>> load(const Options& options, const Progress& progress);
  Result<void> allocate_kv();
  Result<void> test_device();
  Result<void> start_device(const Progress& progress);
  void pin_experts();
  void copy_page(KvPages::Copy copy);
  Result<void> run(std::span<const BatchItem> items, const LogitsSink& sink,
                   const std::function<bool()>& keep_going);
  // `origin`: the (item, token) of each row.
  Result<void> run_micro_batch(std::span<const BatchItem> items,
                               std::span<const std::pair<size_t, size_t>> origin, const backend::Step& step,
                               const LogitsSink& sink);
  // The layers, on the CPU and then on the device. The result is where the output head is.
  Result<void> run_layers(const backend::Step& step);
  // Simulated where the device is.
  const sys::Clock& clock() const {
    const sys::FakeClock* simulated = options.device.host.clock;
    return simulated ? static_cast<const sys::Clock&>(*simulated) : real_clock;
  }
  backend::Compute& output_side() {
    return plan->placement.output_on_device ? static_cast<backend::Compute&>(*opened.device) : *cpu;
  }
};

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

const gguf::Metadata& Engine::metadata() const { return state_->files.model.metadata(); }
const model::Description& Engine::description() const { return state_->plan->description; }
const MemoryPlan& Engine::memory() const { return state_->plan->memory; }
const Placement& Engine::placement() const { return state_->plan->placement; }
const backend::DeviceInfo* Engine::device() const {
  return state_->opened.device ? &state_->opened.device->info() : nullptr;
}
std::vector<std::string> Engine::notes() const { return state_->notes; }
const Timeline* Engine::timeline() const { return state_->timeline.get(); }
double Engine::load_seconds() const { return state_->load_seconds; }
SequenceId Engine::open_sequence() { return state_->pages->open(); }
void Engine::close_sequence(SequenceId id) { state_->pages->close(id); }
uint32_t Engine::length(SequenceId id) const { return state_->pages->length(id); }
void Engine::truncate(SequenceId id, uint32_t length) { state_->pages->truncate(id, length); }
SequenceId Engine::fork(SequenceId id, uint32_t length) { return state_->pages->fork(id, length); }

Result<void> Engine::State::allocate_kv() {
  const MemoryPlan& memory = plan->memory;
  const uint32_t n_pages = static_cast<uint32_t>(ceil_div(memory.context, cpu::kPagePositions));
  const size_t key_bytes = backend::kv_value_bytes(memory.kv_types.key);
  const size_t value_bytes = backend::kv_value_bytes(memory.kv_types.value);
  pages = std::make_unique<KvPages>(n_pages, cpu::kPagePositions);
  if (memory.kv_bytes == 0) return {};  // all layers are the device's
  auto allocation = sys::Allocation::create(memory.kv_bytes, sys::Pages::kPreferHuge);
  if (!allocation)
    return std::unexpected(allocation.error().in(
        fmt::format("the KV cache for {} positions needs {} MiB; a smaller -c needs less", memory.context,
                    memory.kv_bytes >> 20)));
  kv_memory = std::move(*allocation);
  std::byte* next = kv_memory.data();
  for (const LayerIds& layer : std::span(plan->program.layers).first(plan->placement.first_device_layer)) {
    const backend::AttentionSpec& a = layer.attention;
    cpu::KvLayer kv{.key_page_bytes = key_bytes * cpu::kPagePositions * a.kv_heads * a.key_length,
                    .value_page_bytes = value_bytes * cpu::kPagePositions * a.kv_heads * a.value_length};
    kv.keys = next;
    kv.values = next + n_pages * kv.key_page_bytes;
    next = kv.values + n_pages * kv.value_page_bytes;
    kv_layers.push_back(kv);
  }
  SW_ASSERT(next == kv_memory.data() + memory.kv_bytes);
  return {};
}

void Engine::State::copy_page(KvPages::Copy copy) {
  if (opened.device) opened.device->copy_kv_page(copy.from, copy.to);
  for (const cpu::KvLayer& kv : kv_layers) {
    std::memcpy(kv.keys + copy.to * kv.key_page_bytes, kv.keys + copy.from * kv.key_page_bytes,
                kv.key_page_bytes);
    std::memcpy(kv.values + copy.to * kv.value_page_bytes, kv.values + copy.from * kv.value_page_bytes,
                kv.value_page_bytes);
  }
}

Result<std::unique_ptr<Engine>> Engine::load(const Options& options, const Progress& progress) {
  SW_ASSIGN(auto state, State::load(options, progress));
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

Result<std::unique_ptr<Engine::State>> Engine::State::load(const Options& options, const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  auto state = std::make_unique<State>();
  state->options = options;
  SW_ASSIGN(state->files, open_model_files(options.path));
  SW_ASSIGN(state->opened, open_device(options.device));
  auto planned = engine::plan(state->files, options, state->opened);
  if (!planned) return std::unexpected(planned.error().in(options.path));
  state->plan = std::make_unique<Plan>(std::move(*planned));
  const auto& [description, program, memory, placement] = *state->plan;
  if (!memory.fits) return fail(Error::Kind::kNoMemory, "{}: {}", options.path, memory.verdict);

  SW_ASSIGN(state->pool, sys::ThreadPool::create(memory.threads));
  SW_ASSIGN(state->weights,
            HostWeights::load(state->files, program.weights, weights_on_host(program, placement), memory.mode,
                              cpu::kernels(memory.set), memory.threads, progress));
  SW_TRY(state->allocate_kv());
  std::vector<backend::RopeTable> ropes;
  for (size_t i = 0; i < description.ropes.size(); ++i) {
    const std::span<const float> factors = state->weights.vector(program.rope_factors[i]);
    SW_ASSIGN(RopeTables tables, RopeTables::make(description.ropes[i], factors, memory.context));
    state->ropes.push_back(std::move(tables));
    ropes.push_back(state->ropes.back().view());
  }
  state->cpu = std::make_unique<cpu::CpuCompute>(
      *state->pool, cpu::kernels(memory.set), compute_sizes(program, memory.ubatch),
      state->weights.matrices(), memory.kv_types, state->kv_layers, std::move(ropes));
  state->logits_rows = engine::logits_rows(memory, description.vocabulary);
  state->logits = AlignedArray<float>(size_t{state->logits_rows} * description.vocabulary);
  if (state->opened.device) SW_TRY(state->start_device(progress));
  state->load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return state;
}

// Whether the device keeps the promise of equal bits.
Result<void> Engine::State::test_device() {
  DeviceOptions tested = options.device;  // without what a test made of it
  tested.host.faults = {};
  tested.host.memory_bytes = 0;
  tested.host.rates.reset();
  tested.host.clock = nullptr;
  std::vector<TensorType> types;
  for (const model::Weight& weight : plan->program.weights)
    if (std::ranges::find(types, weight.type) == types.end()) types.push_back(weight.type);
  SW_ASSIGN(const std::vector<std::string> faults,
            self_test(tested, std::move(types), plan->memory.kv_types));
  if (!faults.empty())
    notes.push_back(
        fmt::format("this device runs without the promise of equal bits: its self-test found {} "
                    "difference{}, the first: {}",
                    faults.size(), faults.size() == 1 ? "" : "s", faults[0]));
  return {};
}

Result<void> Engine::State::start_device(const Progress& progress) {
  const auto& [description, program, memory, placement] = *plan;
  backend::Device& device = *opened.device;
  notes = placement.notes;
  SW_TRY(test_device());
  backend::DeviceSpec spec = device_spec(program, placement, step_sizes(memory, description));
  spec.ropes.clear();
  for (const RopeTables& tables : ropes) spec.ropes.push_back(tables.view());
  SW_TRY(device.prepare(spec));
  SW_TRY(load_device(device, files, program, placement, spec, weights.matrices(), memory.mode, progress));
  if (!placement.groups.empty()) {
    std::vector<uint32_t> slots, ring;
    for (const uint32_t p : placement.group_pool) {
      slots.push_back(placement.pools[p].cache_slots);
      ring.push_back(placement.pools[p].ring_slots);
    }
    pin_experts();
    SW_ASSIGN(planner, experts::Planner::create(options.device.planner, placement.groups, slots, ring,
                                                memory.profile));
    for (const std::string& note : planner->notes()) notes.push_back(note);
    cpu_experts = std::make_unique<cpu::ExpertCompute>(
        *pool, cpu::kernels(memory.set), compute_sizes(program, memory.ubatch), weights.matrices());
  }
  experts = std::make_unique<ExpertStep>(device, cpu_experts.get(), planner.get(), program, placement,
                                         weights.matrices(), clock());
  device.set_runner(experts.get());
  return {};
}

// Copies from memory that the device knows need no staging. Where that is refused they do, it is said, and
// the planner starts from a slower link: pageable copies reach about half of pinned ones on PCIe.
void Engine::State::pin_experts() {
  uint64_t bytes = 0;
  std::string why_not = "as asked (--no-host)";
  for (const std::span<const std::byte> range : weights.ranges()) {
    bytes += range.size();
    if (options.device.pin) pinned_bytes += opened.device->pin(range, &why_not);
  }
  if (pinned_bytes == bytes) return;
  notes.push_back(fmt::format(
      "{} of {} MiB of host memory are pinned: {}; the others are copied through a staging buffer",
      pinned_bytes >> 20, bytes >> 20, why_not));
  double& link_gb_s = plan->memory.profile.link_gb_s.value;
  link_gb_s *= 1 - 0.5 * static_cast<double>(bytes - pinned_bytes) / static_cast<double>(bytes);
}

ExpertStats Engine::expert_stats() const {
  const State& s = *state_;
  ExpertStats stats{.pinned_bytes = s.pinned_bytes};
  if (!s.experts) return stats;
  stats.times = s.experts->times();
  for (const std::span<const std::byte> range : s.weights.ranges()) stats.host_expert_bytes += range.size();
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
    head.slots.push_back(placement.pools[pool].cache_slots);
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

Result<void> Engine::State::run(std::span<const BatchItem> items, const LogitsSink& sink,
                                const std::function<bool()>& keep_going) {
  // Room for everything first: nothing is computed in vain.
  for (const BatchItem& item : items) {
    SW_ASSIGN(const std::vector<KvPages::Copy> copies,
              pages->reserve(item.sequence, static_cast<uint32_t>(item.tokens.size())));
    for (const KvPages::Copy copy : copies) copy_page(copy);
  }

  std::vector<int32_t> tokens;
  std::vector<uint32_t> positions;
  std::vector<backend::Piece> parts;
  std::vector<std::pair<size_t, size_t>> origin;  // (item, token) of each row
  size_t item = 0, token = 0;
  while (item < items.size()) {
    if (keep_going && !keep_going()) return fail(Error::Kind::kCancelled, "stopped");
    tokens.clear(), positions.clear(), parts.clear(), origin.clear();
    while (item < items.size() && tokens.size() < plan->memory.ubatch) {
      const BatchItem& from = items[item];
      const size_t n = std::min(from.tokens.size() - token, plan->memory.ubatch - tokens.size());
      const uint32_t position = pages->length(from.sequence);
      if (n > 0) {
        parts.push_back({.first_row = static_cast<uint32_t>(tokens.size()),
                         .rows = static_cast<uint32_t>(n),
                         .first_position = position,
                         .pages = pages->pages(from.sequence)});
        for (size_t i = 0; i < n; ++i) {
          tokens.push_back(from.tokens[token + i]);
          positions.push_back(position + static_cast<uint32_t>(i));
          origin.emplace_back(item, token + i);
        }
        pages->advance(from.sequence, static_cast<uint32_t>(n));
      }
      token += n;
      if (token == from.tokens.size()) ++item, token = 0;
    }
    if (tokens.empty()) break;
    SW_TRY(run_micro_batch(items, origin, {.tokens = tokens, .positions = positions, .pieces = parts}, sink));
  }
  return {};
}

Result<void> Engine::State::run_layers(const backend::Step& step) {
  const Program& program = plan->program;
  const uint32_t first = plan->placement.first_device_layer;
  const auto n = static_cast<uint32_t>(program.layers.size());
  cpu->begin(step);
  cpu->embed(program.embedding, kHidden);
  program.run_layers(*cpu, 0, first);
  if (first == n) return {};
  backend::Device& device = *opened.device;
  device.begin(step);
  device.write_buffer(kHidden, cpu->buffer_rows(kHidden).data());
  program.run_layers(device, first, n);
  if (plan->placement.output_on_device) return {};
  device.read_buffer(kHidden, cpu->buffer_rows(kHidden).data());
  return device.finish();
}

Result<void> Engine::State::run_micro_batch(std::span<const BatchItem> items,
                                            std::span<const std::pair<size_t, size_t>> origin,
                                            const backend::Step& step, const LogitsSink& sink) {
  const Program& program = plan->program;
  const uint64_t begin_ns = clock().now_ns();
  if (trace) trace->begin_step(step.rows());
  SW_TRY(run_layers(step));

  std::vector<uint32_t> rows;
  for (uint32_t r = 0; r < step.rows(); ++r) {
    const auto [item, token] = origin[r];
    const BatchItem& from = items[item];
    if (from.want == Want::kAll || (from.want == Want::kLast && token + 1 == from.tokens.size()))
      rows.push_back(r);
  }
  const size_t stride = plan->description.vocabulary;
  for (size_t first = 0; first < rows.size(); first += logits_rows) {
    const std::span<const uint32_t> part =
        std::span(rows).subspan(first, std::min<size_t>(logits_rows, rows.size() - first));
    output_side().logits(kHidden, part, program.output_norm, program.norm_epsilon, program.output,
                         logits.data(), stride);
    SW_TRY(output_side().finish());
    for (size_t i = 0; i < part.size(); ++i)
      sink(origin[part[i]].first, origin[part[i]].second, {logits.data() + i * stride, stride});
  }
  SW_TRY(output_side().finish());
  if (experts) experts->end_step();
  if (trace) trace->end_step(clock().now_ns() - begin_ns);
  return {};
}

}  // namespace spillway::engine
