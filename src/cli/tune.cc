// `spillway tune`: finds the settings of the expert cache that are best for a model on this machine, runs
// them, and keeps them for `run`.
#include <filesystem>

#include "base/limits.h"
#include "cli/arguments.h"
#include "cli/common.h"
#include "cli/load_settings.h"
#include "cli/model_text.h"
#include "cli/output_file.h"
#include "cli/probe.h"
#include "cli/profiles.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"
#include "cli/tune_report.h"
#include "cli/tuned.h"
#include "model/describe.h"
#include "report/summary.h"
#include "sys/cpu.h"
#include "tune/engine_lab.h"
#include "tune/fingerprint.h"
#include "tune/run_recorder.h"
#include "tune/tuner.h"

namespace spillway::cli {
namespace {

// Users of a workload from a file, which is to be read first.
constexpr uint32_t kMostUsers = 64;
constexpr uint32_t kLargestUbatch = 2048;  // where prompts are what is asked for
constexpr const char* kTuned[] = {"--moe-cache-cpu-share", "--moe-cache-admit",     "--moe-promote",
                                  "--moe-cache-policy",    "--moe-cache-half-life", "--moe-explore"};

struct TuneFlags {
  LoadFlags load;
  std::string workload_file, goal = "decode", machine_file, out;
  uint64_t max_device_mib = 0, max_host_mib = 0;
  double minutes = 10;
  uint32_t users = 1;
  bool reload = false, json = false, keep = true;

  void add_to(CLI::App& command);
};

void TuneFlags::add_to(CLI::App& command) {
  const char* group = "Tuning";
  command
      .add_option(
          "--workload", workload_file,
          "your own conversations, one JSON object with \"messages\" a line; without it, built-in ones")
      ->group(group);
  command
      .add_option(
          "--goal", goal,
          "what is to be better: decode (tokens a second), ttft (time to the first token), p95 (the slow "
          "tokens), mixed")
      ->check(CLI::IsMember({"decode", "ttft", "p95", "mixed"}))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--max-device-mib", max_device_mib,
                  "most memory of the device that may be used, while tuning too; 0: what is free")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--max-host-mib", max_host_mib,
                  "most memory of the host that may be used, while tuning too; 0: what is usable")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
      ->capture_default_str()
      ->group(group);
  command.add_option("--minutes", minutes, "most time that it may take, loading aside")
      ->check(NumberWithin(0.1, 24 * 60.0))
      ->capture_default_str()
      ->group(group);
  command.add_option("--users", users, "conversations that go on at once")
      ->check(CLI::Range(1u, kMostUsers))
      ->capture_default_str()
      ->group(group);
  command.add_flag("--reload", reload, "try other loading modes too, for which the model is loaded again")
      ->group(group);
  command
      .add_option("--machine", machine_file,
                  "hardware profile of this machine to start from, as 'spillway probe' writes it")
      ->group(group);
  command
      .add_option("-o,--out", out, "write the whole result (JSON) to this file; 'spillway report' draws it")
      ->group(group);
  command.add_flag("--json", json, "print the result as JSON instead of tables")->group(group);
  command.add_flag("!--no-keep", keep, "do not keep what was found for later runs")->group(group);
  load.add_to(command);
}

Result<tune::Workload> own_workload(const TuneFlags& flags) {
  SW_ASSIGN(const std::string text, read_text_file(flags.workload_file, limits::kMaxTextBytes));
  auto workload =
      tune::parse_workload(flags.workload_file.substr(flags.workload_file.find_last_of('/') + 1), text);
  if (!workload) return std::unexpected(workload.error().in(flags.workload_file));
  if (const std::string words = tune::words_for_unused(*workload); !words.empty()) note(words);
  return workload;
}

// The options with which everything is tried: the largest cache and micro-batch, within the limits.
Result<engine::Options> lab_options(const TuneFlags& flags, const CLI::App& command,
                                    std::span<const tune::Workload> workloads) {
  SW_ASSIGN(engine::Options options, flags.load.options(command));
  options.device.most_bytes = flags.max_device_mib << 20;
  options.most_host_bytes = flags.max_host_mib << 20;
  options.device.planner = {};  // what is tuned
  if (options.device.cache.is_off())
    return invalid(
        "--moe-cache-mib 0: there is nothing to tune without a cache; leave the flag out, or give the "
        "largest "
        "size that may be tried");
  if (options.context == 0) {
    SW_ASSIGN(const engine::ModelFiles files, engine::open_model_files(options.path));
    SW_ASSIGN(const auto tokenizer,
              load_tokenizer(options.path, files.model.metadata(), limits::kMaxVocabulary));
    SW_ASSIGN(const model::Description model, model::describe(files.model.metadata(), files.model.tensors()));
    uint64_t most = std::min(model.trained_context, engine::kDefaultContext);
    for (const tune::Workload& workload : workloads) {
      SW_ASSIGN(const uint64_t needed, workload.context_needed(*tokenizer));
      most = std::max(most, needed);
    }
    options.context = static_cast<uint32_t>(std::min<uint64_t>(most, limits::kMaxContext));
  }
  for (const char* flag : kTuned)
    if (command.count(flag) > 0) note(fmt::format("{} has no effect here: tuning sets it", flag));
  return options;
}

// Where prompts are what is asked for, larger micro-batches are tried too: as large as the device has room
// for beside the layers that it has now.
void raise_ubatch(const engine::ModelFiles& files, const engine::OpenedDevice& opened,
                  const engine::Placement& now, engine::Options& options) {
  engine::Options larger = options;
  for (uint32_t n = std::min(kLargestUbatch, options.context); n > options.ubatch; n /= 2) {
    larger.ubatch = n;
    const auto plan = engine::plan(files, larger, opened);
    if (!plan || !plan->memory.fits || !tune::serves_experts(plan->placement) ||
        plan->placement.first_device_layer != now.first_device_layer)
      continue;
    options.ubatch = n;
    return;
  }
  note(fmt::format("micro-batches above {} are not tried: the memory has no room for them", options.ubatch));
}

// That there is something to tune, before anything is loaded; sets the largest micro-batch.
Result<void> check_device(const TuneFlags& flags, const CLI::App& command, engine::Options& options) {
  SW_ASSIGN(const engine::ModelFiles files, engine::open_model_files(options.path));
  SW_ASSIGN(const engine::OpenedDevice opened, engine::open_device(options.device));
  if (!opened.device)
    return unsupported(
        "there is nothing to tune: the CPU runs alone ({}); --device names one ('spillway devices' lists "
        "them)",
        opened.reason);
  const auto plan = engine::plan(files, options, opened);
  if (plan && !plan->memory.fits)
    return fail(Error::Kind::kNoMemory, "{}: {}", options.path, plan->memory.verdict);
  if (plan && tune::serves_experts(plan->placement)) {
    const bool prompts = flags.goal == "ttft" || flags.goal == "mixed";
    if (prompts && command.count("--ub") == 0) raise_ubatch(files, opened, plan->placement, options);
    return {};
  }
  if (flags.max_device_mib == 0) {
    if (!plan) return std::unexpected(plan.error());
    return unsupported("no expert can be held on the device: {}",
                       plan->placement.notes.empty() ? "its memory is too small" : plan->placement.notes[0]);
  }
  const auto least = tune::least_device_mib(files, options, opened);
  if (!least)
    return fail(Error::Kind::kNoMemory,
                "--max-device-mib {}: no expert fits on the device within that, nor within all "
                "that is free there",
                flags.max_device_mib);
  return fail(Error::Kind::kNoMemory,
              "--max-device-mib {} allows nothing: beside dense weights, KV cache and scratch no layer's "
              "experts can be "
              "cached; {} is the smallest that would do (a smaller -c needs less)",
              flags.max_device_mib, *least);
}

// What a measured profile says of other numbers of threads than the one that is loaded.
std::vector<tune::ThreadChoice> thread_choices(const tune::ProfileFile& file, uint32_t loaded) {
  std::vector<tune::ThreadChoice> all;
  double rate = 0;
  for (const tune::CpuRate& cpu : file.cpu_kernels)
    if (cpu.type == file.cpu_kernels[0].type && cpu.tokens == 1) {
      if (cpu.threads == loaded) rate = cpu.gb_s.median;
      if (cpu.threads <= loaded) all.push_back({cpu.threads, cpu.gb_s.median});
    }
  if (rate <= 0) return {};
  for (tune::ThreadChoice& choice : all) choice.cpu_rate /= rate;
  return all;
}

// The machine as it was measured: by a profile that was named or kept, or now, in a tenth of the time.
struct Machine {
  std::optional<experts::HardwareProfile> named;
  std::optional<tune::ProfileFile> file;
};
Result<Machine> know_machine(const TuneFlags& flags, engine::Options& options) {
  Machine machine;
  if (!flags.machine_file.empty()) {
    SW_ASSIGN(machine.named, find_profile("--machine", flags.machine_file));
    return machine;
  }
  SW_ASSIGN(engine::OpenedDevice opened, engine::open_device(options.device));
  const backend::DeviceInfo info = opened.device->info();
  for (SavedProfile& saved : saved_profiles())
    if (saved.changes.empty() && saved.file.machine.device == info.name &&
        saved.file.machine.driver == info.driver) {
      machine.file = std::move(saved.file);
      return machine;
    }
  uint32_t threads = options.threads;
  if (threads == 0) {
    SW_ASSIGN(const sys::CpuTopology topology, sys::read_cpu_topology());
    threads = sys::choose_threads(topology).threads;
  }
  auto created = tune::MachineTarget::create(
      {.threads = threads, .memory_bytes = options.most_host_bytes / 4}, std::move(opened.device));
  if (!created && created.error().kind == Error::Kind::kNoMemory) {
    note(fmt::format(
        "the machine is not measured first, there is too little memory for it ({}); the time model "
        "starts from default rates",
        created.error().message));
    return machine;
  }
  if (!created) return std::unexpected(created.error());
  const auto target = *std::move(created);
  constexpr double kProbeSeconds = 10;
  SW_ASSIGN(machine.file, measure_machine(*target, std::min(kProbeSeconds, 6 * flags.minutes)));
  if (const std::string path = saved_profile_path(info.id); !path.empty() && flags.keep)
    SW_TRY(write_profile(path, *machine.file));
  options.profiles.push_back({machine.file->profile, info.name, info.driver});
  return machine;
}

// A bar for each phase, all of which count the same time.
class PhaseBar {
 public:
  void update(const tune::TuneProgress& progress) {
    if (!bar_ || progress.doing != doing_) bar_.emplace(doing_ = progress.doing);
    total_s_ = progress.total_s;
    ended_s_ = clock_.now_s() + progress.total_s - progress.done_s;
    tick();
  }
  // Time has gone on.
  void tick() {
    if (bar_)
      bar_->update(static_cast<uint64_t>(std::max(0.0, total_s_ - (ended_s_ - clock_.now_s()))),
                   static_cast<uint64_t>(total_s_));
  }
  void clear() { bar_.reset(); }

 private:
  const sys::MonotonicClock clock_;
  std::string doing_;
  double total_s_ = 0, ended_s_ = 0;  // when all time is over
  std::optional<ProgressBar> bar_;
};

Result<void> keep(const TuneFlags& flags, const CLI::App& command, const engine::Engine& engine,
                  const std::string& load_mode, const tune::TuneReport& report) {
  if (!flags.keep || report.outcome == tune::Outcome::kInterrupted) return {};
  if (report.outcome == tune::Outcome::kEverythingFits) {
    say("nothing is kept: there is nothing to tune");
    return {};
  }
  if (report.stopped && report.outcome == tune::Outcome::kDefault) {
    say("nothing is kept, and what was found before stays as it is: it was stopped before anything better "
        "was seen");
    return {};
  }
  const report::ResultFile& result = report.result;
  // What it was bound to belongs to what was found.
  tune::Settings settings = report.recommended;
  if (settings != tune::Settings{}) {
    if (command.count("-t") > 0 && settings.threads == 0) settings.threads = flags.load.threads;
    if (command.count("--ub") > 0 && settings.ubatch == 0) settings.ubatch = flags.load.ubatch;
  }
  std::error_code error;
  const tune::TunedProfile profile{
      .made_for = {result.build, result.model, machine_of(result.machine, *engine.device()), load_mode,
                   placement_flags(command)},
      .model_path = std::filesystem::weakly_canonical(flags.load.model, error).string(),
      .created = result.created,
      .context = engine.context(),
      .settings = settings,
      .gain = report.gain,
      .conclusion = result.conclusion};
  SW_ASSIGN(const std::string path, tune::save_tuned_profile(profile, tuned_folder()));
  say(settings == tune::Settings{}
          ? fmt::format("kept in {}: 'spillway run' stays with the default, whatever was found before", path)
          : fmt::format(
                "kept in {}: 'spillway run' begins with it from now on (--profile none leaves it out)",
                path));
  return {};
}

// What every setting that is tried shares; those that are tuned have their defaults.
Result<FlagValues> shared_flags(const CLI::App& command, const engine::Engine& engine, uint32_t ubatch) {
  FlagValues flags = load_flags_of(command);
  for (const char* flag : kTuned) flags.erase(flag);
  flags.erase("--moe-cache-mib");  // the largest that may be tried
  SW_ASSIGN(const LoadSetting defaults, LoadSetting::parse({{"-m", flags["-m"]}}));
  flags.merge(defaults.all());
  take_effective(flags, engine);
  flags["-ub"] = fmt::format("{}", ubatch);
  for (const char* limit : {"--max-device-mib", "--max-host-mib"})
    if (command.count(limit) > 0) flags[limit] = command[limit]->as<std::string>();
  return flags;
}

Result<int> tune_model(TuneFlags& flags, const CLI::App& command, const std::string& typed) {
  SW_TRY(check_output_file(flags.out, {flags.load.model, flags.workload_file, flags.machine_file}));
  SW_ASSIGN(const tune::Goal goal, tune::parse_goal(flags.goal));
  const tune::Workload topics = tune::builtin_topics();
  tune::Workload workload = topics;
  if (!flags.workload_file.empty()) {
    SW_ASSIGN(workload, own_workload(flags));
  }
  catch_interrupts();
  SW_ASSIGN(engine::Options options, lab_options(flags, command, std::vector{workload, topics}));
  SW_TRY(check_device(flags, command, options));
  const sys::MonotonicClock clock;
  const double began_s = clock.now_s();
  auto known = know_machine(flags, options);
  if (!known && known.error().kind == Error::Kind::kCancelled)
    return fail(
        Error::Kind::kCancelled,
        "stopped while the machine was still being measured: nothing is known of the model, and nothing was "
        "written");
  SW_ASSIGN(const Machine machine, std::move(known));
  const double probed_s = clock.now_s() - began_s;

  const auto load = [&](engine::LoadMode mode) {
    engine::Options asked = options;
    asked.load_mode = mode;
    ProgressBar bar("loading", ProgressBar::Unit::kBytes);
    return engine::Engine::load(asked, [&](uint64_t done, uint64_t total) {
      bar.update(done, total);
      return !interrupted();
    });
  };
  SW_ASSIGN(auto engine, load(options.load_mode));
  for (const std::string& word : words_about_load(flags.load, command, *engine)) note(word);
  if (!flags.load.quiet) say(dim(describe_load(*engine)));
  SW_ASSIGN(const auto tokenizer, load_tokenizer(options.path, engine->metadata(), engine->vocabulary()));
  SW_ASSIGN(const auto chat_template, load_chat_template(engine->metadata(), tokenizer->vocabulary(), ""));
  const experts::HardwareProfile start = machine.named.value_or(engine->memory().profile);
  const std::string load_mode = engine::load_mode_name(engine->memory().mode);

  PhaseBar bar;
  tune::EngineLabSetup setup{.load = load,
                             .tokenizer = tokenizer.get(),
                             .chat_template = chat_template ? &*chat_template : nullptr,
                             .workload = workload,
                             .users = flags.users,
                             .limited = flags.max_device_mib > 0 || command.count("--moe-cache-mib") > 0,
                             .stopped = [&bar] {
                               bar.tick();
                               return interrupted();
                             }};
  if (!flags.workload_file.empty()) setup.topics = topics;
  if (flags.reload)
    setup.load_modes = {engine::LoadMode::kRead, engine::LoadMode::kMmap, engine::LoadMode::kMlock};
  if (machine.file) setup.threads = thread_choices(*machine.file, engine->memory().threads);
  tune::EngineLab lab(std::move(engine), std::move(setup));
  SW_ASSIGN(const FlagValues shared, shared_flags(command, lab.engine(), lab.facts().default_ubatch));
  auto report = tune::tune(lab, start, {.goal = goal, .seconds = 60 * flags.minutes - probed_s},
                           [&](const tune::TuneProgress& progress) { bar.update(progress); });
  bar.clear();
  SW_TRY(report);

  report::ResultFile& result = report->result;
  result.created = tune::utc_now();
  result.command = typed;
  result.build = tune::build_facts();
  SW_ASSIGN(result.model, tune::model_facts(options.path));
  SW_ASSIGN(result.machine, tune::machine_facts(lab.engine().device()));
  result.workload = workload.facts();
  result.workload.requests = 0;  // said in a note: a run is one of them, and not all
  result.workload.users = flags.users;
  for (report::Setting& setting : result.settings)
    setting.flags.insert(shared.begin(), shared.end());  // behind its own
  for (const std::string& word : report::notes_about(result)) result.notes.push_back(word);
  if (!flags.out.empty() && report->outcome == tune::Outcome::kInterrupted && result.runs.empty())
    note(fmt::format("'{}' is not written: there is nothing to keep", flags.out));
  else if (!flags.out.empty())
    SW_TRY(write_output_file(flags.out, report::to_json(result)));
  if (flags.json) {
    fmt::print("{}\n", report::to_json(result));
  } else {
    fmt::print("{}", tune_text(*report));
  }
  SW_TRY(keep(flags, command, lab.engine(), load_mode, *report));
  if (interrupted()) return kExitInterrupted;
  return report->model_failed ? kExitModelFailed : finish_output();
}

}  // namespace

void add_tune(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<TuneFlags>();
  CLI::App* command = app.add_subcommand(
      "tune",
      "Find the best cache settings for a model on this machine, by running them; 'run' then uses them");
  flags->add_to(*command);
  command->callback([flags, command, &exit_code] {
    const auto result = tune_model(*flags, *command, command_line(*command));
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace spillway::cli
