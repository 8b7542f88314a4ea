#include "tune/engine_lab.h"

#include <algorithm>

#include "base/limits.h"
#include "model/sizes.h"
#include "tune/workload_run.h"

namespace spillway::tune {
namespace {

// Micro-batches that calibration and search know; what lies above the loaded one can't be tried.
constexpr uint32_t kUbatches[] = {64, 128, 256, 512, 1024, 2048};

// A cache below that serves no layer: the planner's floor, a token's experts and half as many again.
uint64_t least_cache(const engine::Placement& placement) {
  uint64_t least = 0;
  for (const experts::GroupShape& group : placement.groups) {
    const uint64_t floor = (group.n_used + (group.n_used + 1) / 2) * group.expert_bytes;
    least = least == 0 ? floor : std::min(least, floor);
  }
  return least;
}

}  // namespace

bool serves_experts(const engine::Placement& placement) {
  if (placement.n_resident_layers() > 0) return true;
  return placement.n_planned_layers() > 0 && placement.cache_bytes() >= least_cache(placement);
}

std::optional<uint64_t> least_device_mib(const engine::ModelFiles& files, engine::Options options,
                                         const engine::OpenedDevice& opened) {
  const auto serves = [&](uint64_t mib) {
    options.device.most_bytes = mib << 20;
    const auto plan = engine::plan(files, options, opened);
    return plan && serves_experts(plan->placement);
  };
  uint64_t high = opened.device->info().available_bytes >> 20, low = 0;  // low never does
  if (high == 0 || !serves(high)) return std::nullopt;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (serves(middle) ? high : low) = middle;
  }
  return high;
}

EngineLab::EngineLab(std::unique_ptr<engine::Engine> engine, EngineLabSetup setup)
    : engine_(std::move(engine)), setup_(std::move(setup)), loaded_(engine_->memory().mode), mode_(loaded_) {
  const engine::Placement& placement = engine_->placement();
  const engine::MemoryPlan& memory = engine_->memory();
  facts_.groups = placement.groups;
  for (const uint32_t pool : placement.group_pool)
    facts_.ring_slots.push_back(placement.pools[pool].ring_slots);
  const model::Description& model = engine_->description();
  const model::Sizes sizes = model::measure_sizes(model);
  facts_.dense_bytes = sizes.dense_bytes() - (model.tied ? 0 : sizes.embedding_bytes);
  facts_.max_cache_bytes = placement.cache_bytes();
  facts_.other_device_bytes = placement.bytes.total() - placement.cache_bytes();
  facts_.limited = setup_.limited;
  facts_.all_fits = !placement.groups.empty() && placement.cache_bytes() >= placement.cacheable_bytes();
  facts_.default_ubatch = std::min(uint32_t{512}, memory.ubatch);
  for (const uint32_t ubatch : kUbatches)
    if (ubatch <= memory.ubatch) facts_.ubatches.push_back(ubatch);
  if (facts_.ubatches.empty() || facts_.ubatches.back() != memory.ubatch)
    facts_.ubatches.push_back(memory.ubatch);
  facts_.threads = setup_.threads;
  facts_.users = setup_.users;
  facts_.load_mode = engine::load_mode_name(loaded_);
  for (const engine::LoadMode mode : setup_.load_modes)
    if (mode != loaded_) facts_.load_modes.push_back(engine::load_mode_name(mode));
  if (const uint32_t n = placement.n_resident_layers(); n > 0 && !placement.groups.empty())
    facts_.notes.push_back(
        fmt::format("The experts of {} layers are resident on the device for good; the sizes are those of "
                    "the cache for the other "
                    "{}, and without a cache means without that one.",
                    n, placement.n_planned_layers()));

  const Halves halves = split(setup_.workload);
  if (halves.same)
    facts_.notes.push_back(
        "The workload is a single conversation: calibration saw what the settings were then judged by, so "
        "the figures "
        "are too good. Two conversations or more are needed.");
  // Other topics first and between, so that the workload's own are those that calibration measures.
  const auto own = together(halves.calibration), topics = together(setup_.topics);
  for (size_t i = 0; i < std::max(own.size(), topics.size()); ++i) {
    if (!topics.empty()) add_prompt(topics[i % topics.size()], false);
    add_prompt(own[i % own.size()], false);
  }
  for (std::vector<Conversation>& prompt : together(halves.held_out)) add_prompt(std::move(prompt), true);
}

void EngineLab::add_prompt(std::vector<Conversation> prompt, bool held_out) {
  facts_.prompts.push_back({.topic = prompt[0].topic, .held_out = held_out});
  prompts_.push_back(std::move(prompt));
}

// As many conversations as there are users; the last ones go on with the first.
std::vector<std::vector<Conversation>> EngineLab::together(const Workload& workload) const {
  const std::vector<Conversation>& all = workload.conversations;
  std::vector<std::vector<Conversation>> prompts;
  for (size_t first = 0; first < all.size(); first += setup_.users) {
    prompts.emplace_back();
    for (uint32_t user = 0; user < setup_.users; ++user) {
      prompts.back().push_back(all[(first + user) % all.size()]);
      prompts.back().back().user = user;
    }
  }
  return prompts;
}

Result<void> EngineLab::configure(const Settings& settings) {
  engine::LoadMode mode = loaded_;
  for (const engine::LoadMode known : setup_.load_modes)
    if (settings.load_mode == engine::load_mode_name(known)) mode = known;
  if (mode != mode_) {
    engine_.reset();  // its memory is needed
    SW_ASSIGN(engine_, setup_.load(mode));
    mode_ = mode;
  }
  engine::RunSettings run{.threads = settings.threads,
                          .ubatch = settings.ubatch > 0 ? settings.ubatch : facts_.default_ubatch,
                          .planner = planner_settings(settings)};
  if (settings.cache_bytes)
    run.cache = {.unit = engine::CacheSize::Unit::kMib,
                 .value = static_cast<double>(*settings.cache_bytes) / (1 << 20)};
  return engine_->reconfigure(run);
}

Result<report::Run> EngineLab::answer(std::span<const uint32_t> prompts, uint32_t generate, double until_s) {
  Workload workload{.name = setup_.workload.name, .conversations = {}};
  for (const uint32_t prompt : prompts)
    workload.conversations.insert(workload.conversations.end(), prompts_[prompt].begin(),
                                  prompts_[prompt].end());
  limit_answers(workload, generate);
  RunOptions options{.ignore_eos = true};
  options.keep_going = [&] { return !stopped() && (until_s <= 0 || seconds() < until_s); };
  return run_workload(*engine_, *setup_.tokenizer, setup_.chat_template, workload, options);
}

Result<Trial> EngineLab::run(const Settings& settings, const Task& task) {
  if (stopped()) return fail(Error::Kind::kCancelled, "stopped");
  SW_TRY(configure(settings));
  const double until_s = task.most_seconds > 0 ? seconds() + task.most_seconds : 0;
  std::vector<std::byte> bytes;
  if (task.trace)
    SW_TRY(engine_->begin_trace(engine_->description().name,
                                [&](std::span<const std::byte> piece) -> Result<void> {
                                  bytes.insert(bytes.end(), piece.begin(), piece.end());
                                  return {};
                                }));
  Trial trial;
  const auto all = [&]() -> Result<void> {
    if (!task.warm_up.empty()) SW_TRY(answer(task.warm_up, task.generate, until_s));
    // Every planned layer makes one plan a step.
    trial.warm_up_steps = engine_->expert_stats().total.all().plans /
                          std::max<uint64_t>(1, experts::count_layers(facts_.groups));
    SW_ASSIGN(trial.run, answer(task.measured, task.generate, until_s));
    return {};
  };
  const auto done = all();
  SW_TRY(engine_->end_trace());
  SW_TRY(done);
  if (stopped()) return fail(Error::Kind::kCancelled, "stopped");
  trial.run.warm = true;
  if (task.trace) {
    SW_ASSIGN(trial.trace, experts::parse_trace(bytes));
  }
  return trial;
}

}  // namespace spillway::tune
