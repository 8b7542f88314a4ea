#include "cli/load_flags.h"

#include <fstream>

#include "base/limits.h"
#include "cli/common.h"
#include "cli/expert_report.h"
#include "cli/output_file.h"
#include "cli/profiles.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"
#include "cli/tuned.h"

namespace spillway::cli {

void LoadFlags::add_to(CLI::App& command) {
  const char* group = "Model and memory";
  command.add_option("-m,--model", model, "GGUF file; of a split model, any of its files")
      ->required()
      ->group(group);
  command
      .add_option(
          "--lm,--load-mode", load_mode,
          "auto: read where it fits comfortably in memory, else mmap; none: read; mlock: read and lock; dio: "
          "read around the page cache; mmap: use the file where it lies")
      ->check(CLI::IsMember({"auto", "none", "mmap", "mlock", "dio"}))
      ->capture_default_str()
      ->group(group);
  command.add_option("-c,--ctx-size", context, "positions of the KV cache; 0: the model's, at most 4096")
      ->check(CLI::Range(0u, limits::kMaxContext))
      ->capture_default_str()
      ->group(group);
  command.add_option("--ctk,--cache-type-k", key_type, "type of the cached keys")
      ->check(CLI::IsMember({"f16", "f32"}))
      ->capture_default_str()
      ->group(group);
  command.add_option("--ctv,--cache-type-v", value_type, "type of the cached values")
      ->check(CLI::IsMember({"f16", "f32"}))
      ->capture_default_str()
      ->group(group);
  command.add_option("-t,--threads", threads, "threads; 0: chosen from CPU quota, affinity and core kinds")
      ->check(CLI::Range(0u, limits::kMaxThreads))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--ub,--ubatch-size", ubatch,
                  "most tokens of one micro-batch; the result does not depend on it")
      ->check(CLI::Range(1u, limits::kMaxUbatch))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--isa", instruction_set,
                  "kernels: auto, scalar, avx2, avx512; the result does not depend on it")
      ->check(CLI::IsMember({"auto", "scalar", "avx2", "avx512"}))
      ->capture_default_str()
      ->group(group);

  command.add_flag("-q,--quiet", quiet, "do not say how the model was loaded")->group(group);

  const char* carried = "Accepted from llama.cpp command lines, without effect here";
  command.add_option("-b,--batch-size", batch, "logical batch: micro-batches (-ub) are all there is")
      ->group(carried);

  device.add_to(command);
}

void LoadFlags::add_records_to(CLI::App& command) {
  const char* records = "Records";
  command
      .add_option("--stats-json", stats_file,
                  "write what the experts did (hits, misses, bytes, waits, times) to this file at the end")
      ->group(records);
  command
      .add_option("--timeline", timeline_file,
                  "write what ran when to this file, for Perfetto or Chrome's tracing")
      ->group(records);
}

void LoadFlags::add_profile_to(CLI::App& command) {
  profile = "auto";
  command
      .add_option(
          "--profile", profile,
          "settings found by 'spillway tune': auto: those for this model and machine, where nothing has "
          "changed since; none; or a file. Flags given by hand win")
      ->capture_default_str()
      ->group("Model and memory");
}

std::vector<std::string> LoadFlags::without_effect(const CLI::App& command) const {
  std::vector<std::string> words;
  const auto given = [&](const char* name) { return command.count(name) > 0; };
  if (given("-b")) words.push_back("-b has no effect: use -ub for the size of a micro-batch");
  return words;
}

namespace {

backend::KvType kv_type(const std::string& name) {
  return name == "f32" ? backend::KvType::kF32 : backend::KvType::kF16;
}

}  // namespace

engine::LoadMode parse_load_mode(std::string_view text) {
  return text == "none"    ? engine::LoadMode::kRead
         : text == "mmap"  ? engine::LoadMode::kMmap
         : text == "mlock" ? engine::LoadMode::kMlock
         : text == "dio"   ? engine::LoadMode::kDirect
                           : engine::LoadMode::kAuto;
}

Result<engine::Options> LoadFlags::options(const CLI::App& command) const {
  engine::Options options{.path = model, .threads = threads, .context = context, .ubatch = ubatch};
  options.load_mode = parse_load_mode(load_mode);
  SW_ASSIGN(options.device, device.options(command));
  options.kv_types = {.key = kv_type(key_type), .value = kv_type(value_type)};
  for (const SavedProfile& saved : saved_profiles()) {
    const report::Machine& machine = saved.file.machine;
    if (saved.changes.empty())
      options.profiles.push_back({saved.file.profile, machine.device, machine.driver});
  }
  if (instruction_set == "scalar") options.instruction_set = cpu::InstructionSet::kScalar;
  if (instruction_set == "avx2") options.instruction_set = cpu::InstructionSet::kAvx2;
  if (instruction_set == "avx512") options.instruction_set = cpu::InstructionSet::kAvx512;
  return options;
}

Result<void> LoadFlags::check_outputs(const std::vector<std::string>& others) const {
  if (same_file(stats_file, timeline_file))
    return invalid("--stats-json and --timeline name the same file, '{}'", stats_file);
  for (const std::string& path : {stats_file, timeline_file}) {
    SW_TRY(check_output_file(path, {model}));
    for (const std::string& other : others)
      if (same_file(path, other))
        return invalid("'{}' is read or written already: name another file for --stats-json or --timeline",
                       path);
  }
  return {};
}

namespace {

// Where the rates that the planner starts from are from; empty where nothing was ever measured here.
std::string describe_profile(const engine::Engine& engine) {
  const backend::DeviceInfo* device = engine.device();
  if (device == nullptr || engine.placement().n_planned_layers() == 0) return {};
  if (engine.memory().profile.link_gb_s.label == Label::kMeasured)
    return fmt::format("hardware profile: {} (measured)", engine.memory().profile.source);
  for (const SavedProfile& saved : saved_profiles()) {
    std::vector<std::string> changes = saved.changes;
    if (saved.file.machine.device != device->name) continue;
    if (saved.file.machine.driver != device->driver) changes.push_back("the device's driver changed");
    return fmt::format("the hardware profile in '{}' is not used: {}; measure again with 'spillway probe'",
                       saved.path, changes.empty() ? "it was measured without a link" : changes[0]);
  }
  return {};
}

std::string unused_tensors_text(const std::vector<std::string>& unused) {
  constexpr size_t kNamed = 3;
  std::string names;
  for (size_t i = 0; i < std::min(kNamed, unused.size()); ++i)
    names += fmt::format("{}'{}'", i == 0 ? "" : ", ", unused[i]);
  return fmt::format(
      "warning: {} tensor{} in the file {} no part of the model that is run and {} not used: {}{}",
      unused.size(), unused.size() == 1 ? "" : "s", unused.size() == 1 ? "is" : "are",
      unused.size() == 1 ? "is" : "are", names, unused.size() > kNamed ? ", ..." : "");
}

}  // namespace

std::vector<std::string> words_about_load(const LoadFlags& flags, const CLI::App& command,
                                          const engine::Engine& engine) {
  std::vector<std::string> words = flags.without_effect(command);
  const auto add = [&](const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  const model::Description& model = engine.description();
  if (!model.unused_tensors.empty()) words.push_back(unused_tensors_text(model.unused_tensors));
  for (const std::string& word : model.notes) words.push_back("warning: " + word);
  if (const uint32_t context = engine.memory().context; context > model.trained_context)
    words.push_back(fmt::format(
        "warning: -c {} is more than the {} positions that the model was trained for; beyond them "
        "its answers get worse",
        context, model.trained_context));
  add(engine.device() == nullptr ? flags.device.without_device(command)
                                 : flags.device.without_use(command, engine.placement()));
  if (engine.device() != nullptr && engine.placement().n_planned_layers() > 0) add(unreadable_profiles());
  add(engine.notes());
  return words;
}

Result<std::unique_ptr<engine::Engine>> load_engine(const LoadFlags& flags, const CLI::App& command) {
  SW_TRY(flags.check_outputs());
  SW_ASSIGN(engine::Options options, flags.options(command));
  SW_ASSIGN(const TunedUse tuned, use_tuned(flags.profile, command, options));
  ProgressBar bar("loading", ProgressBar::Unit::kBytes);
  const auto progress = [&](uint64_t done, uint64_t total) {
    bar.update(done, total);
    return !interrupted();
  };
  auto engine = engine::Engine::load(options, progress);
  bar.clear();
  if (!engine && engine.error().kind == Error::Kind::kNoMemory && tuned.cache) {
    // Something else may have taken of the device's memory since.
    note("the tuned cache does not fit now, so its size is left open: " + engine.error().message);
    options.device.cache = {};
    engine = engine::Engine::load(options, progress);
    bar.clear();
  }
  if (!engine) return engine;
  if (!flags.timeline_file.empty()) (*engine)->record_timeline();
  for (const std::string& word : words_about_load(flags, command, **engine)) note(word);
  if (!flags.quiet) {
    say(dim(describe_load(**engine)));
    if ((*engine)->device() != nullptr)
      say(dim(describe_placement((*engine)->memory(), (*engine)->placement(), *(*engine)->device())));
    if (const std::string words = describe_profile(**engine); !words.empty()) say(dim(words));
  }
  return engine;
}

Result<void> write_records(const LoadFlags& flags, const engine::Engine& engine) {
  if (!flags.stats_file.empty())
    SW_TRY(write_output_file(flags.stats_file, expert_stats_json(engine).dump(2) + "\n"));
  if (!flags.timeline_file.empty()) SW_TRY(write_output_file(flags.timeline_file, engine.timeline()->json()));
  return {};
}

namespace {

std::string kv_types_text(const backend::KvTypes& types) {
  const std::string key = backend::kv_type_name(types.key);
  return types.key == types.value ? key
                                  : fmt::format("{}, values {}", key, backend::kv_type_name(types.value));
}

}  // namespace

std::string describe_load(const engine::Engine& engine) {
  const engine::MemoryPlan& m = engine.memory();
  const model::Description& d = engine.description();
  return fmt::format(
      "{} ({}), {} layers; weights: {} {}; KV cache: {}{} positions ({}); scratch: {}; {} threads ({}), "
      "{} kernels; "
      "loaded in {:.2f} s (measured)",
      d.name.empty() ? "model" : d.name, d.family, d.layers.size(),
      format_bytes(m.weight_bytes + m.mapped_bytes), m.mode_reason,
      m.kv_bytes > 0 ? format_bytes(m.kv_bytes) + " for " : "on the device, ", m.context,
      kv_types_text(m.kv_types), format_bytes(m.scratch_bytes + m.rope_bytes), m.threads, m.threads_reason,
      m.instruction_set, engine.load_seconds());
}

}  // namespace spillway::cli
