// Loading an engine, and changing what can be changed while it is loaded.
#include <chrono>

#include "base/assert.h"
#include "base/checked.h"
#include "engine/device_load.h"
#include "engine/engine_state.h"

namespace spillway::engine {

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
  for (size_t i = 0; i < description.ropes.size(); ++i) {
    const std::span<const float> factors = state->weights.vector(program.rope_factors[i]);
    SW_ASSIGN(RopeTables tables, RopeTables::make(description.ropes[i], factors, memory.context));
    state->ropes.push_back(std::move(tables));
  }
  state->loaded_threads = memory.threads;
  state->loaded_ubatch = memory.ubatch;
  state->start_cpu();
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
    pin_experts();
    SW_ASSIGN(planner, make_planner(options.device.planner, memory.profile, cache_slots(placement, {})));
  }
  start_experts();
  return {};
}

void Engine::State::start_cpu() {
  std::vector<backend::RopeTable> tables;
  tables.reserve(ropes.size());
  for (const RopeTables& rope : ropes) tables.push_back(rope.view());
  cpu = std::make_unique<cpu::CpuCompute>(*pool, cpu::kernels(plan->memory.set),
                                          compute_sizes(plan->program, loaded_ubatch), weights.matrices(),
                                          plan->memory.kv_types, kv_layers, std::move(tables));
}

Result<std::unique_ptr<experts::Planner>> Engine::State::make_planner(
    const experts::PlannerSettings& settings, const experts::HardwareProfile& profile,
    std::span<const uint32_t> slots) const {
  const Placement& placement = plan->placement;
  std::vector<uint32_t> ring;
  ring.reserve(placement.group_pool.size());
  for (const uint32_t p : placement.group_pool) ring.push_back(placement.pools[p].ring_slots);
  return experts::Planner::create(settings, placement.groups, slots, ring, profile);
}

void Engine::State::start_experts() {
  if (planner)
    cpu_experts =
        std::make_unique<cpu::ExpertCompute>(*pool, cpu::kernels(plan->memory.set),
                                             compute_sizes(plan->program, loaded_ubatch), weights.matrices());
  experts = std::make_unique<ExpertStep>(*opened.device, cpu_experts.get(), planner.get(), plan->program,
                                         plan->placement, weights.matrices(), clock());
  experts->set_timeline(timeline.get());
  opened.device->set_runner(experts.get());
}

Result<void> Engine::State::reconfigure(const RunSettings& settings) {
  auto& [description, program, memory, placement] = *plan;
  if (trace) return unsupported("settings can't be changed while a trace is written");
  const uint32_t threads = settings.threads == 0 ? loaded_threads : settings.threads;
  const uint32_t ubatch = settings.ubatch == 0 ? loaded_ubatch : settings.ubatch;
  if (threads > loaded_threads || ubatch > loaded_ubatch)
    return invalid("{} threads and micro-batches of {} tokens: the model was loaded for {} and {} at most",
                   threads, ubatch, loaded_threads, loaded_ubatch);
  const std::vector<uint32_t> slots = cache_slots(placement, settings.cache);
  std::unique_ptr<experts::Planner> new_planner;
  if (planner) {
    for (size_t g = 0; g < slots.size(); ++g)
      if (const uint32_t most = placement.pools[placement.group_pool[g]].cache_slots; slots[g] > most)
        return invalid("a cache of {} takes {} slots, the model was loaded with {}", settings.cache.text(),
                       slots[g], most);
    SW_ASSIGN(new_planner, make_planner(settings.planner, memory.profile, slots));
  }
  std::unique_ptr<sys::ThreadPool> new_pool;
  if (threads != memory.threads) {
    SW_ASSIGN(new_pool, sys::ThreadPool::create(threads));
  }
  if (planner) SW_TRY(experts->empty_cache());

  // From here on nothing fails.
  experts.reset();
  memory.threads = threads;
  memory.ubatch = ubatch;
  if (new_pool) {
    cpu_experts.reset();
    cpu.reset();
    pool = std::move(new_pool);
    start_cpu();
  }
  if (planner) {
    planner = std::move(new_planner);
    options.device.planner = settings.planner;
    for (size_t g = 0; g < slots.size(); ++g) placement.pools[placement.group_pool[g]].used_slots = slots[g];
  }
  if (opened.device) start_experts();
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
      "{} of {} KiB of host memory are pinned: {}; the others are copied through a staging buffer",
      pinned_bytes >> 10, bytes >> 10, why_not));
  double& link_gb_s = plan->memory.profile.link_gb_s.value;
  link_gb_s *= 1 - 0.5 * static_cast<double>(bytes - pinned_bytes) / static_cast<double>(bytes);
}

}  // namespace spillway::engine
