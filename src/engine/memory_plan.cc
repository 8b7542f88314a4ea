#include "engine/memory_plan.h"

#include <algorithm>

#include "backend/cpu/cpu_compute.h"
#include "base/checked.h"
#include "base/limits.h"
#include "engine/weights.h"
#include "model/describe.h"
#include "model/sizes.h"
#include "sys/cpu.h"
#include "sys/memory_limits.h"

namespace spillway::engine {
namespace {

// Logits are handed out in pieces, so that a long prompt with all its rows needs no buffer for all of them.
constexpr uint64_t kLogitsBufferBytes = 32 << 20;

// "Comfortably": a fifth of the usable memory stays for the rest of the machine and the page cache.
constexpr double kComfortableShare = 0.8;

Result<void> choose_load_mode(MemoryPlan& plan, LoadMode asked, uint64_t interleaved_bytes,
                              const ModelFiles& files) {
  const uint64_t needed = interleaved_bytes + plan.kv_bytes + plan.scratch_bytes + plan.rope_bytes;
  const bool comfortable =
      static_cast<double>(needed) <= kComfortableShare * static_cast<double>(plan.usable_bytes);
  switch (asked) {
    case LoadMode::kAuto:
      plan.mode = comfortable ? LoadMode::kRead : LoadMode::kMmap;
      plan.mode_reason =
          comfortable ? fmt::format("read into row-interleaved memory, since {} MiB fit in the {} MiB usable",
                                    mib(needed), mib(plan.usable_bytes))
                      : fmt::format("mapped, since {} MiB do not fit comfortably in the {} MiB usable",
                                    mib(needed), mib(plan.usable_bytes));
      break;
    case LoadMode::kRead:
      plan.mode = asked, plan.mode_reason = "read into row-interleaved memory, as asked";
      break;
    case LoadMode::kMlock:
      plan.mode = asked, plan.mode_reason = "read into row-interleaved memory and locked, as asked";
      break;
    case LoadMode::kMmap:
      plan.mode = asked, plan.mode_reason = "mapped, as asked";
      break;
    case LoadMode::kDirect: {
      plan.mode = asked;
      plan.mode_reason = "read around the page cache into row-interleaved memory, as asked";
      const auto direct = open_direct(files);
      if (!direct && direct.error().kind != Error::Kind::kUnsupported) return std::unexpected(direct.error());
      if (!direct) {
        plan.mode = LoadMode::kRead;
        plan.mode_reason = fmt::format(
            "read into row-interleaved memory through the page cache, since '-lm dio' is refused: {}",
            direct.error().message);
      }
      break;
    }
  }
  plan.weight_bytes = plan.mode == LoadMode::kMmap ? 0 : interleaved_bytes;
  plan.mapped_bytes = plan.mode == LoadMode::kMmap ? files.file_bytes : 0;
  return {};
}

Result<void> choose_threads(MemoryPlan& plan, uint32_t asked) {
  if (asked != 0) {
    plan.threads = asked;
    plan.threads_reason = "as asked";
    return {};
  }
  SW_ASSIGN(const sys::CpuTopology topology, sys::read_cpu_topology());
  sys::ThreadChoice choice = sys::choose_threads(topology);
  plan.threads = choice.threads;
  plan.threads_reason = std::move(choice.explanation);
  return {};
}

void judge(MemoryPlan& plan) {
  plan.fits = plan.own_bytes() <= plan.usable_bytes;
  if (!plan.fits) {
    plan.verdict = fmt::format(
        "does not fit: {} MiB needed, {} MiB usable, {} MiB missing; a smaller -c frees {} MiB at most{}",
        mib(plan.own_bytes()), mib(plan.usable_bytes), mib(plan.own_bytes() - plan.usable_bytes),
        mib(plan.kv_bytes), plan.weight_bytes ? ", '-lm mmap' the weights" : "");
  } else if (plan.mapped_bytes > plan.usable_bytes - plan.own_bytes()) {
    plan.verdict = fmt::format(
        "runs, but slowly: the file has {} MiB and {} MiB are left to cache it, so parts are read from "
        "disk again and again",
        mib(plan.mapped_bytes), mib(plan.usable_bytes - plan.own_bytes()));
  } else {
    plan.verdict = "it fits";
  }
}

// Where device and host share a memory: fewer resident experts are more bytes on the host, which leave less
// for the device; it settles in two or three rounds, or does not fit.
constexpr int kPlacementAttempts = 4;

// The host's part of the plan, given what lies on the device.
Result<void> count_host_bytes(MemoryPlan& memory, const ModelFiles& files, const Options& options,
                              const model::Description& description, const Program& program,
                              const Placement& placement) {
  const cpu::Kernels& kernels = cpu::kernels(memory.set);
  const cpu::ComputeSizes sizes = compute_sizes(program, memory.ubatch);
  const uint64_t positions = ceil_div(memory.context, cpu::kPagePositions) * cpu::kPagePositions;
  // Layers on the device have their KV cache there.
  model::Description on_cpu = description;
  on_cpu.layers.resize(placement.first_device_layer);
  memory.kv_bytes =
      positions * model::kv_bytes_per_position(on_cpu, backend::kv_value_bytes(memory.kv_types.key),
                                               backend::kv_value_bytes(memory.kv_types.value));
  memory.rope_bytes = 0;
  for (const model::Rope& rope : description.ropes)
    memory.rope_bytes += uint64_t{memory.context} * rope.params.rope_length * sizeof(float);
  memory.scratch_bytes =
      cpu::CpuCompute::scratch_bytes(sizes, memory.threads, kernels) +
      (placement.groups.empty() ? 0 : cpu::ExpertCompute::bytes(sizes, memory.threads, kernels)) +
      uint64_t{logits_rows(memory, description.vocabulary)} * description.vocabulary * sizeof(float);
  return choose_load_mode(
      memory, options.load_mode,
      HostWeights::interleaved_bytes(program.weights, weights_on_host(program, placement)), files);
}

}  // namespace

const char* load_mode_name(LoadMode mode) {
  switch (mode) {
    case LoadMode::kAuto:
      return "auto";
    case LoadMode::kRead:
      return "none";
    case LoadMode::kMmap:
      return "mmap";
    case LoadMode::kMlock:
      return "mlock";
    case LoadMode::kDirect:
      return "dio";
  }
  return "";
}

cpu::ComputeSizes compute_sizes(const Program& p, uint32_t ubatch) {
  return {.max_rows = ubatch,
          .max_width = p.max_width,
          .hidden = p.hidden,
          .experts = p.experts,
          .max_experts_used = p.max_experts_used,
          .expert_width = p.expert_width,
          .max_head_length = p.max_head_length,
          .buffer_widths = p.buffer_widths};
}

uint32_t logits_rows(const MemoryPlan& plan, uint32_t vocabulary) {
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(kLogitsBufferBytes / (vocabulary * sizeof(float)), 1, plan.ubatch));
}

StepSizes step_sizes(const MemoryPlan& plan, const model::Description& model) {
  StepSizes sizes{.kv_types = plan.kv_types,
                  .kv_pages = static_cast<uint32_t>(ceil_div(plan.context, backend::kPagePositions)),
                  .ubatch = plan.ubatch,
                  .logits_rows = logits_rows(plan, model.vocabulary),
                  .vocabulary = model.vocabulary,
                  .context = plan.context};
  for (const model::Rope& rope : model.ropes) sizes.rope_lengths.push_back(rope.params.rope_length);
  return sizes;
}

namespace {

experts::HardwareProfile starting_profile(const Options& options, const OpenedDevice& opened) {
  if (opened.device)
    for (const KnownProfile& known : options.profiles)
      if (known.device == opened.device->info().name && known.driver == opened.device->info().driver)
        return known.profile;
  return experts::default_profile();
}

// Bytes behind a file's last tensor that are more than padding belong to nothing: a header whose tensors were
// lost looks like that, and all that it still names may lie at the wrong place.
void note_bytes_left_over(const ModelFiles& files, model::Description& description) {
  for (uint32_t shard = 0; shard < files.files.size(); ++shard) {
    uint64_t end = 0;
    for (const gguf::TensorInfo& tensor : files.model.tensors())
      if (tensor.shard == shard && tensor.size_known) end = std::max(end, tensor.offset + tensor.bytes);
    const uint64_t size = files.files[shard]->size();
    if (end == 0 || size <= end || size - end <= limits::kMostPadding) continue;
    description.notes.push_back(fmt::format(
        "{}: {} bytes behind the last tensor belong to nothing: the file may be damaged; compare its size "
        "or checksum with where it came from",
        files.files[shard]->path(), size - end));
  }
}

}  // namespace

Result<Plan> plan(const ModelFiles& files, const Options& options, const OpenedDevice& opened) {
  SW_ASSIGN(model::Description description, model::describe(files.model.metadata(), files.model.tensors()));
  note_bytes_left_over(files, description);
  Program program(description);
  MemoryPlan memory;

  const cpu::InstructionSet best = cpu::best_instruction_set();
  memory.set = options.instruction_set.value_or(best);
  if (memory.set > best)
    return unsupported("this processor cannot run these kernels; its best are {}", cpu::kernels(best).name);
  const cpu::Kernels& kernels = cpu::kernels(memory.set);
  memory.instruction_set = kernels.name;
  SW_TRY(choose_threads(memory, options.threads));
  memory.context =
      options.context != 0 ? options.context : std::min(description.trained_context, kDefaultContext);
  memory.ubatch = std::clamp(options.ubatch, 1u, memory.context);
  memory.kv_types = options.kv_types;
  SW_ASSIGN(const sys::MemoryLimits limits, sys::read_memory_limits());
  memory.usable_bytes = limits.available_bytes;
  if (options.most_host_bytes > 0)
    memory.usable_bytes = std::min(memory.usable_bytes, options.most_host_bytes);

  memory.device_reason = opened.reason;
  memory.profile = starting_profile(options, opened);
  Placement placement = place_on_cpu(program);
  if (!opened.device) {
    SW_TRY(count_host_bytes(memory, files, options, description, program, placement));
  } else {
    const backend::DeviceInfo& info = opened.device->info();
    memory.device = fmt::format("{} ({})", info.id, info.name);
    uint64_t limit = info.available_bytes;
    for (int attempt = 0; attempt < kPlacementAttempts; ++attempt) {
      auto placed = place(program, step_sizes(memory, description), options.device, memory.profile,
                          *opened.device, limit);
      // Once the device may have only what the host leaves, it is the host's memory that is too small.
      if (!placed && attempt > 0) break;
      if (!placed) return std::unexpected(placed.error());
      placement = std::move(*placed);
      SW_TRY(count_host_bytes(memory, files, options, description, program, placement));
      if (!info.unified_memory && !info.software) break;
      // One memory for both: the device gets what the host leaves.
      memory.device_bytes = placement.bytes.total();
      if (memory.own_bytes() <= memory.usable_bytes) break;
      const uint64_t host = memory.own_bytes() - memory.device_bytes;
      limit = memory.usable_bytes - std::min(memory.usable_bytes, host);
    }
  }
  judge(memory);
  return Plan{std::move(description), std::move(program), std::move(memory), std::move(placement)};
}

}  // namespace spillway::engine
