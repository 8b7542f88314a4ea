#include "cli/tuned.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/limits.h"
#include "cli/arguments.h"
#include "cli/common.h"
#include "cli/load_flags.h"
#include "cli/model_text.h"
#include "engine/memory_plan.h"
#include "tune/fingerprint.h"

namespace spillway::cli {
namespace {

// What decides where everything lies.
constexpr std::string_view kPlacementFlags[] = {"-ngl", "-cmoe", "-ncmoe", "--host-device-mib",
                                                "-ctk", "-ctv"};

// Without a device there is no cache, and nothing of what is tuned matters.
bool may_have_device(const engine::Options& options) { return options.device.device != "none"; }

bool given(const CLI::App& command, const char* name) { return command.count(name) > 0; }

// "2026-11-30", of 2026-11-30T12:00:00Z.
std::string day_of(const std::string& created) { return created.substr(0, 10); }

std::string list_text(const std::vector<std::string>& phrases) {
  return fmt::format("{}", fmt::join(phrases, "; "));
}

Result<tune::FoundProfile> read_named(const std::string& path, const tune::Conditions& now) {
  SW_ASSIGN(const std::string text, read_text_file(path, limits::kMaxProfileBytes));
  auto profile = tune::parse_tuned_profile(text);
  if (!profile) return std::unexpected(profile.error().in(path));
  const std::vector<std::string> stale = tune::stale_because(profile->made_for, now);
  if (!stale.empty())
    return invalid("{}: these settings were tuned on {} for something else: {}; run 'spillway tune' again",
                   path, day_of(profile->created), list_text(stale));
  return tune::FoundProfile{path, *std::move(profile), {}};
}

std::optional<tune::FoundProfile> look_up(const engine::Options& options, const tune::Conditions& now) {
  std::error_code error;
  const std::string path = std::filesystem::weakly_canonical(options.path, error).string();
  tune::ProfileSearch search = tune::find_tuned_profile(tuned_folder(), path, now);
  for (const std::string& sentence : search.unreadable) note(sentence);
  if (search.found && !search.found->stale.empty()) {
    // Where the default had been kept, nothing is missed.
    if (search.found->profile.settings != tune::Settings{})
      note(fmt::format(
          "the settings tuned for this model on {} are not used: {} ('spillway tune' finds new ones, "
          "--profile none silences this)",
          day_of(search.found->profile.created), list_text(search.found->stale)));
    search.found.reset();
  }
  return std::move(search.found);
}

struct Current {
  tune::Conditions conditions;
  uint32_t context = 0;
};

// What is in force with these options, without loading: the file's content is sampled, the device is opened.
Result<Current> conditions_now(const engine::Options& options, const CLI::App& command) {
  Current current;
  tune::Conditions& now = current.conditions;
  now.build = tune::build_facts();
  now.placement = placement_flags(command);
  SW_ASSIGN(const engine::ModelFiles files, engine::open_model_files(options.path));
  SW_ASSIGN(now.model, tune::model_facts(files));
  SW_ASSIGN(const engine::OpenedDevice opened, engine::open_device(options.device));
  SW_ASSIGN(now.machine, tune::machine_facts(opened.device ? &opened.device->info() : nullptr));
  SW_ASSIGN(const engine::Plan plan, engine::plan(files, options, opened));
  if (opened.device) now.machine = machine_of(now.machine, opened.device->info());
  now.load_mode = engine::load_mode_name(plan.memory.mode);
  current.context = plan.memory.context;
  return current;
}

}  // namespace

std::string tuned_folder() {
  namespace fs = std::filesystem;
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config == '/')
    return fs::path(config) / "spillway/tuned";  // relative ones don't count
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr ? home : ".") / ".config/spillway/tuned";
}

report::Machine machine_of(report::Machine machine, const backend::DeviceInfo& device) {
  if (device.software) machine.device_bytes = 0;
  return machine;
}

std::map<std::string, std::string> placement_flags(const CLI::App& command) {
  std::map<std::string, std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->count() > 0 ? name_as_written(*option) : "";
    if (std::ranges::find(kPlacementFlags, name) == std::end(kPlacementFlags)) continue;
    flags[name] = option->get_items_expected_max() == 0 ? "" : option->as<std::string>();
  }
  return flags;
}

Result<TunedUse> use_tuned(const std::string& choice, const CLI::App& command, engine::Options& options) {
  TunedUse use;
  const bool named = choice != "auto";
  if (choice == "none") return use;
  if (!may_have_device(options)) {
    if (named) note("--profile has no effect: the CPU runs alone");
    return use;
  }
  if (!named && !tune::has_tuned_profiles(tuned_folder())) return use;
  const auto now = conditions_now(options, command);
  if (!now) return named ? Result<TunedUse>(std::unexpected(now.error())) : use;  // the load says it
  std::optional<tune::FoundProfile> found;
  if (named) {
    SW_ASSIGN(found, read_named(choice, now->conditions));
  } else {
    found = look_up(options, now->conditions);
  }
  if (!found || found->profile.settings == tune::Settings{}) return use;

  tune::Settings settings = found->profile.settings;
  std::vector<std::string> by_hand;
  const auto take = [&](const char* flag, const char* name, auto put) {
    if (!tune::flags_of(found->profile.settings).contains(flag)) return;
    if (given(command, name)) {
      by_hand.push_back(flag);
    } else {
      put();
    }
  };
  const experts::PlannerSettings planner = tune::planner_settings(settings);
  take("--moe-cache-mib", "--moe-cache-mib", [&] {
    if (!settings.cache_bytes) return;
    if (*settings.cache_bytes > 0 && now->context > found->profile.context) {
      note(fmt::format(
          "the tuned size of the cache is not used: -c {} is more than the {} that it was tuned with",
          now->context, found->profile.context));
      return;
    }
    options.device.cache = {.unit = engine::CacheSize::Unit::kMib,
                            .value = static_cast<double>(*settings.cache_bytes) / (1 << 20)};
    use.cache = *settings.cache_bytes > 0;
  });
  take("--moe-cache-cpu-share", "--moe-cache-cpu-share",
       [&] { options.device.planner.cpu_share = planner.cpu_share; });
  take("--moe-cache-admit", "--moe-cache-admit", [&] { options.device.planner.admit = planner.admit; });
  take("--moe-promote", "--moe-promote", [&] { options.device.planner.promote = planner.promote; });
  take("-ub", "--ub", [&] { options.ubatch = settings.ubatch; });
  take("-lm", "--lm", [&] { options.load_mode = parse_load_mode(settings.load_mode); });
  take("-t", "-t", [&] { options.threads = settings.threads; });
  use.used = true;
  note(
      fmt::format("these settings were tuned for this model and machine on {} and are used{}: {} ({}; "
                  "--profile none leaves "
                  "them out)",
                  day_of(found->profile.created),
                  by_hand.empty() ? "" : fmt::format(", but for {}, given by hand", fmt::join(by_hand, ", ")),
                  tune::command_text(settings), tune::gain_text(found->profile.gain)));
  return use;
}

}  // namespace spillway::cli
