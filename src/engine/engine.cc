#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "backend/cpu/cpu_compute.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/limits.h"
#include "engine/program.h"
#include "engine/rope_tables.h"
#include "engine/weights.h"
#include "model/describe.h"
#include "sys/cpu.h"
#include "sys/memory_limits.h"

namespace spillway::engine {
struct Engine::State {
  ModelFiles files;
  std::unique_ptr<Plan> plan;
  double load_seconds = 0;
  std::unique_ptr<sys::ThreadPool> pool;
  HostWeights weights;
  std::vector<RopeTables> ropes;
  sys::Allocation kv_memory;
  std::vector<cpu::KvLayer> kv_layers;
  std::unique_ptr<KvPages> pages;
  std::unique_ptr<cpu::CpuCompute> device;
  AlignedArray<float> logits;  // (logits_rows, vocabulary)
  uint32_t logits_rows = 0;

  Result<void> allocate_kv();
  void copy_page(KvPages::Copy copy);
  // `origin`: the (item, token) of each row.
  void run_micro_batch(std::span<const BatchItem> items, std::span<const std::pair<size_t, size_t>> origin,
                       const backend::Step& step, const LogitsSink& sink);
};

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

const gguf::Metadata& Engine::metadata() const { return state_->files.model.metadata(); }
const model::Description& Engine::description() const { return state_->plan->description; }
const MemoryPlan& Engine::memory() const { return state_->plan->memory; }
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
  auto allocation = sys::Allocation::create(memory.kv_bytes, sys::Pages::kPreferHuge);
  if (!allocation)
    return std::unexpected(allocation.error().in(
        fmt::format("the KV cache for {} positions needs {} MiB; a smaller -c needs less", memory.context,
                    memory.kv_bytes >> 20)));
  kv_memory = std::move(*allocation);
  std::byte* next = kv_memory.data();
  for (const LayerIds& layer : plan->program.layers) {
    const backend::AttentionSpec& a = layer.attention;
    cpu::KvLayer kv{.key_page_bytes = key_bytes * cpu::kPagePositions * a.kv_heads * a.key_length,
                    .value_page_bytes = value_bytes * cpu::kPagePositions * a.kv_heads * a.value_length};
    kv.keys = next;
    kv.values = next + n_pages * kv.key_page_bytes;
    next = kv.values + n_pages * kv.value_page_bytes;
    kv_layers.push_back(kv);
  }
  SW_ASSERT(next == kv_memory.data() + memory.kv_bytes);
  pages = std::make_unique<KvPages>(n_pages, cpu::kPagePositions);
  return {};
}

void Engine::State::copy_page(KvPages::Copy copy) {
  for (const cpu::KvLayer& kv : kv_layers) {
    std::memcpy(kv.keys + copy.to * kv.key_page_bytes, kv.keys + copy.from * kv.key_page_bytes,
                kv.key_page_bytes);
    std::memcpy(kv.values + copy.to * kv.value_page_bytes, kv.values + copy.from * kv.value_page_bytes,
                kv.value_page_bytes);
  }
}

Result<std::unique_ptr<Engine>> Engine::load(const Options& options, const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  auto state = std::make_unique<State>();
  SW_ASSIGN(state->files, open_model_files(options.path));
  auto planned = engine::plan(state->files, options);
  if (!planned) return std::unexpected(planned.error().in(options.path));
  state->plan = std::make_unique<Plan>(std::move(*planned));
  const auto& [description, program, memory] = *state->plan;
  if (!memory.fits) return fail(Error::Kind::kNoMemory, "{}: {}", options.path, memory.verdict);

  SW_ASSIGN(state->pool, sys::ThreadPool::create(memory.threads));
  SW_ASSIGN(state->weights, HostWeights::load(state->files, program.weights, memory.mode,
                                              cpu::kernels(memory.set), memory.threads, progress));
  SW_TRY(state->allocate_kv());
  std::vector<cpu::RopeTable> ropes;
  for (size_t i = 0; i < description.ropes.size(); ++i) {
    const std::span<const float> factors = state->weights.vector(program.rope_factors[i]);
    SW_ASSIGN(RopeTables tables, RopeTables::make(description.ropes[i], factors, memory.context));
    state->ropes.push_back(std::move(tables));
    ropes.push_back(state->ropes.back().view());
  }
  state->device = std::make_unique<cpu::CpuCompute>(
      *state->pool, cpu::kernels(memory.set), compute_sizes(program, memory.ubatch),
      state->weights.matrices(), memory.kv_types, state->kv_layers, std::move(ropes));
  state->logits_rows = logits_rows(memory, description.vocabulary);
  state->logits = AlignedArray<float>(size_t{state->logits_rows} * description.vocabulary);
  state->load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
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
  const auto undo = [&] {
    for (size_t i = 0; i < items.size(); ++i) s.pages->truncate(items[i].sequence, before[i]);
  };

  // Room for everything first: nothing is computed in vain.
  for (const BatchItem& item : items) {
    auto copies = s.pages->reserve(item.sequence, static_cast<uint32_t>(item.tokens.size()));
    if (!copies) {
      undo();
      return std::unexpected(copies.error());
    }
    for (const KvPages::Copy copy : *copies) s.copy_page(copy);
  }

  std::vector<int32_t> tokens;
  std::vector<uint32_t> positions;
  std::vector<backend::Piece> pieces;
  std::vector<std::pair<size_t, size_t>> origin;  // (item, token) of each row
  size_t item = 0, token = 0;
  while (item < items.size()) {
    if (keep_going && !keep_going()) {
      undo();
      return fail(Error::Kind::kCancelled, "stopped");
    }
    tokens.clear(), positions.clear(), pieces.clear(), origin.clear();
    while (item < items.size() && tokens.size() < s.plan->memory.ubatch) {
      const BatchItem& from = items[item];
      const size_t n = std::min(from.tokens.size() - token, s.plan->memory.ubatch - tokens.size());
      const uint32_t position = length(from.sequence);
      if (n > 0) {
        pieces.push_back({.first_row = static_cast<uint32_t>(tokens.size()),
                          .rows = static_cast<uint32_t>(n),
                          .first_position = position,
                          .pages = s.pages->pages(from.sequence)});
        for (size_t i = 0; i < n; ++i) {
          tokens.push_back(from.tokens[token + i]);
          positions.push_back(position + static_cast<uint32_t>(i));
          origin.emplace_back(item, token + i);
        }
        s.pages->advance(from.sequence, static_cast<uint32_t>(n));
      }
      token += n;
      if (token == from.tokens.size()) ++item, token = 0;
    }
    if (tokens.empty()) break;
    s.run_micro_batch(items, origin, {.tokens = tokens, .positions = positions, .pieces = pieces}, sink);
    if (auto finished = s.device->finish(); !finished) {
      undo();
      return finished;
    }
  }
  return {};
}

void Engine::State::run_micro_batch(std::span<const BatchItem> items,
                                    std::span<const std::pair<size_t, size_t>> origin,
                                    const backend::Step& step, const LogitsSink& sink) {
  const Program& program = plan->program;
  program.run(*device, step);

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
    device->logits(kHidden, part, program.output_norm, program.norm_epsilon, program.output, logits.data(),
                   stride);
    for (size_t i = 0; i < part.size(); ++i)
      sink(origin[part[i]].first, origin[part[i]].second, {logits.data() + i * stride, stride});
  }
}

}  // namespace spillway::engine
