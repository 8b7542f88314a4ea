#include "cli/bench_measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "cli/common.h"
#include "cli/model_text.h"
#include "cli/terminal.h"
#include "engine/model_files.h"
#include "sys/cpu.h"
#include "tune/bench_text.h"
#include "tune/fingerprint.h"
#include "tune/run_recorder.h"
#include "tune/workload_run.h"

namespace spillway::cli {
namespace {

// What reconfigure() changes without loading again, beside the size of the cache.
constexpr const char* kWithoutLoading[] = {"-t",
                                           "-ub",
                                           "--moe-cache-cpu-share",
                                           "--moe-cache-policy",
                                           "--moe-cache-half-life",
                                           "--moe-cache-admit",
                                           "--moe-promote",
                                           "--moe-explore"};

// Settings with the same key can share a loaded model. Where it is left open which layers' experts are
// resident, that depends on the size of the cache, and another size is another load.
FlagValues load_key(const LoadSetting& setting) {
  FlagValues key = setting.all();
  for (const char* flag : kWithoutLoading) key.erase(flag);
  if (key.contains("-cmoe") || key.contains("-ncmoe")) key.erase("--moe-cache-mib");
  return key;
}

uint32_t resolved_threads(uint32_t threads) {
  if (threads > 0) return threads;
  const auto topology = sys::read_cpu_topology();
  return topology ? sys::choose_threads(*topology).threads : 1;
}

// A size that both fit in: sizes of different units can't be compared here, and auto is the most there can
// be.
engine::CacheSize larger(const engine::CacheSize& a, const engine::CacheSize& b) {
  if (a.is_off()) return b;
  if (b.is_off()) return a;
  if (a.unit != b.unit) return {};
  return a.value >= b.value ? a : b;
}

void add_note(std::vector<std::string>& notes, const std::string& note) {
  if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
}

}  // namespace

BenchMeasurement::BenchMeasurement(const BenchJob& job)
    : job_(job),
      decided_(job.settings.size()),
      cache_bytes_(job.settings.size()),
      bar_("measuring", ProgressBar::Unit::kPart) {
  result_.kind = "bench";
  result_.created = tune::utc_now();
  result_.build = tune::build_facts();
  for (const BenchSetting& setting : job.settings) {
    report::Setting& kept = result_.settings.emplace_back();
    kept.name = setting.name;
    kept.flags = setting.load.all();
    setting.work.write(kept.flags);
  }
}

const tune::Workload* BenchMeasurement::workload(size_t setting) const {
  return workloads_[setting] ? &*workloads_[setting] : nullptr;
}

Result<void> BenchMeasurement::run() {
  SW_TRY(read_works());
  const tune::Workload* first = workload(0);
  result_.workload = first ? first->facts() : report::Workload{.name = job_.settings[0].work.text()};
  for (uint32_t r = 0; r < job_.repetitions && !stopped_; ++r)
    for (size_t i = 0; i < job_.settings.size() && !stopped_; ++i)
      SW_TRY(turn(r % 2 == 0 ? i : job_.settings.size() - 1 - i, r));
  bar_.clear();
  note_words();
  if (result_.runs.empty()) return fail(Error::Kind::kCancelled, "interrupted before anything was measured");
  return {};
}

// Every word once, with the settings that it is about.
void BenchMeasurement::note_words() {
  std::vector<std::pair<std::set<size_t>, std::string>> words;
  words.reserve(words_.size());
  for (const auto& [word, settings] : words_) words.emplace_back(settings, word);
  std::ranges::sort(words);
  std::vector<std::string> notes;
  for (const auto& [settings, word] : words) {
    std::vector<std::string> names;
    names.reserve(settings.size());
    for (const size_t setting : settings) names.push_back(job_.settings[setting].name);
    if (is_single())
      notes.push_back(word);
    else if (names.size() == job_.settings.size())
      notes.push_back("All settings: " + word);
    else
      notes.push_back(names.size() == 1 ? fmt::format("{}: {}", names[0], word)
                                        : fmt::format("'{}': {}", fmt::join(names, "', '"), word));
  }
  // A single one's are among the counters that follow the tables.
  if (!is_single())
    for (size_t i = 0; i < decided_.size(); ++i)
      if (!decided_[i].empty()) notes.push_back(fmt::format("{}: {}", job_.settings[i].name, decided_[i]));
  result_.notes.insert(result_.notes.begin(), notes.begin(), notes.end());
}

// What each setting runs, and the context that it takes: by the model's own tokenizer, before it is loaded.
Result<void> BenchMeasurement::read_works() {
  std::string path;
  std::unique_ptr<text::Tokenizer> tokenizer;
  for (const BenchSetting& setting : job_.settings) {
    if (path != setting.load.flags().model) {
      path = setting.load.flags().model;
      SW_ASSIGN(const engine::ModelFiles files, engine::open_model_files(path));
      SW_ASSIGN(tokenizer, load_tokenizer(path, files.model.metadata(), limits::kMaxVocabulary));
    }
    SW_ASSIGN(auto work, setting.work.load());
    SW_ASSIGN(const uint32_t context, setting.work.context(work, *tokenizer));
    workloads_.push_back(std::move(work));
    contexts_.push_back(context);
  }
  return {};
}

Result<void> BenchMeasurement::turn(size_t setting, uint32_t repetition) {
  auto active = activate(setting);
  if (!active && active.error().kind == Error::Kind::kCancelled) stopped_ = true;
  if (stopped_) return {};
  if (!active) return is_single() ? active : std::unexpected(active.error().in(job_.settings[setting].name));
  if (cold_) SW_TRY(one_run(setting, repetition));
  if (!stopped_) SW_TRY(one_run(setting, repetition));
  return {};
}

Result<void> BenchMeasurement::one_run(size_t setting, uint32_t repetition) {
  const BenchWork& work = job_.settings[setting].work;
  const size_t before = result_.runs.size();
  constexpr uint64_t kParts = 1000;  // of a run, for the bar
  const tune::RunOptions options{
      // Plain tokens begin elsewhere each time; a workload is the same.
      .seed = work.workload.empty() ? work.seed + 2 * repetition + (cold_ ? 0 : 1) : work.seed,
      .ignore_eos = work.ignore_eos,
      .keep_going = [] { return !interrupted(); },
      .progress =
          [&](uint64_t done, uint64_t most) {
            bar_.update(before * kParts + kParts * done / std::max<uint64_t>(most, 1),
                        runs_expected_ * kParts);
          }};
  auto run = workload(setting)
                 ? tune::run_workload(*engine_, *tokenizer_, chat_template_ ? &*chat_template_ : nullptr,
                                      *workload(setting), options)
                 : tune::run_tokens(*engine_, text_, work.prompt, work.generate, options);
  if (!run) return std::unexpected(run.error());
  run->setting = static_cast<uint32_t>(setting);
  run->warm = !cold_;
  if (const auto stats = engine_->expert_stats(); !stats.controller.empty())
    decided_[setting] = stats.controller.front();
  stopped_ = !run->cut_short.empty();
  cold_ = false;
  runs_expected_ = std::max(runs_expected_, before + 2);
  result_.runs.push_back(std::move(*run));
  return {};
}

Result<void> BenchMeasurement::activate(size_t setting) {
  if (active_ == setting) return {};
  const BenchSetting& wanted = job_.settings[setting];
  const bool is_loaded = active_ && load_key(job_.settings[*active_].load) == load_key(wanted.load);
  if (!is_loaded) SW_TRY(load(setting));
  if (!is_single()) {
    SW_ASSIGN(const engine::Options options, wanted.load.flags().options(wanted.load.command()));
    SW_TRY(engine_->reconfigure({.threads = resolved_threads(options.threads),
                                 .ubatch = std::min(options.ubatch, engine_->memory().context),
                                 .cache = options.device.cache,
                                 .planner = options.device.planner}));
    cold_ = cold_ || engine_->placement().n_planned_layers() > 0;
  }
  for (const std::string& word : words_about_load(wanted.load.flags(), wanted.load.command(), *engine_))
    words_[word].insert(setting);
  active_ = setting;
  take_effective(result_.settings[setting].flags, *engine_);
  cache_bytes_[setting] = static_cast<double>(engine_->placement().cache_bytes());
  return {};
}

Result<void> BenchMeasurement::load(size_t setting) {
  const LoadSetting& load = job_.settings[setting].load;
  SW_ASSIGN(engine::Options options, load.flags().options(load.command()));
  // As large as any of those that will share it.
  uint32_t context = 0;
  size_t n_sharing = 0;
  for (size_t i = 0; i < job_.settings.size(); ++i) {
    const BenchSetting& other = job_.settings[i];
    if (load_key(other.load) != load_key(load)) continue;
    ++n_sharing;
    SW_ASSIGN(const engine::Options others, other.load.flags().options(other.load.command()));
    options.threads = std::max(resolved_threads(options.threads), resolved_threads(others.threads));
    options.ubatch = std::max(options.ubatch, others.ubatch);
    if (i != setting) options.device.cache = larger(options.device.cache, others.device.cache);
    context = std::max(context, contexts_[i]);
  }
  if (is_single()) options.threads = load.flags().threads;  // so that the reason for the number is shown
  if (options.context == 0) options.context = context;
  const BenchWork& work = job_.settings[setting].work;
  if (work.workload.empty() && options.context < std::max(work.prompt, work.generate))
    return invalid("-c {} is too small for -p {} and -n {}", options.context, work.prompt, work.generate);

  active_.reset();
  engine_.reset();  // its memory is needed
  bar_.clear();
  ProgressBar bar("loading", ProgressBar::Unit::kBytes);
  SW_ASSIGN(engine_, engine::Engine::load(options, [&](uint64_t done, uint64_t total) {
              bar.update(done, total);
              return !interrupted();
            }));
  if (!load.flags().timeline_file.empty()) engine_->record_timeline();
  ++loads_;
  cold_ = true;
  if (n_sharing > 1 && engine_->placement().n_planned_layers() > 0)
    add_note(result_.notes,
             "Settings that can share a loaded model do: the device peak is what was allocated for all of "
             "them, with room for the largest expert cache, and not what one of them alone would take.");
  if (loads_ == 1) SW_TRY(take_facts());
  if (engine_->device() != nullptr && result_.machine.device == "none") {
    SW_ASSIGN(result_.machine, tune::machine_facts(engine_->device()));
  }
  estimate_runs();
  return {};
}

Result<void> BenchMeasurement::take_facts() {
  const LoadFlags& flags = job_.settings[0].load.flags();
  SW_ASSIGN(result_.model, tune::model_facts(flags.model));
  SW_ASSIGN(result_.machine, tune::machine_facts(engine_->device()));
  SW_ASSIGN(tokenizer_, load_tokenizer(flags.model, engine_->metadata(), engine_->vocabulary()));
  SW_ASSIGN(chat_template_, load_chat_template(engine_->metadata(), tokenizer_->vocabulary(), ""));
  if (!chat_template_ && workload(0))
    add_note(result_.notes, "The model has no chat template: texts are continued as they are.");
  SW_ASSIGN(text_, tokenizer_->encode(tune::bench_text(), {.add_special = false}));
  if (text_.empty()) return invalid("the model's tokenizer makes no tokens of ordinary text");
  return {};
}

// How many there will be, cold ones included, if all settings are like the loaded one.
void BenchMeasurement::estimate_runs() {
  const size_t n = job_.settings.size(), turns = job_.repetitions;
  bool reload = false;
  for (const BenchSetting& setting : job_.settings)
    reload = reload || load_key(setting.load) != load_key(job_.settings[0].load);
  const bool cold_each = reload || engine_->placement().n_planned_layers() > 0;
  // The last setting of a turn is the first of the next.
  const size_t cold = cold_each && n > 1 ? n + (turns - 1) * (n - 1) : 1;
  runs_expected_ = n * turns + cold;
}

}  // namespace spillway::cli
