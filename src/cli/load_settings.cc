#include "cli/load_settings.h"

#include <algorithm>

#include "cli/arguments.h"

namespace spillway::cli {
namespace {

// One value for all settings.
constexpr std::string_view kNoLists[] = {"-m", "-q", "-b", "--stats-json", "--timeline"};
// Not given is something else than any value.
constexpr std::string_view kUnsetMeansSomething[] = {"-ncmoe", "--moe-cache-admit", "--moe-promote"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool has_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// For an argument list.
std::string argument_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? "-" + option.get_snames()[0] : "--" + option.get_lnames()[0];
}

std::unique_ptr<CLI::App> load_command(LoadFlags& flags) {
  auto command = std::make_unique<CLI::App>();
  command->set_help_flag();
  flags.add_to(*command);
  flags.add_records_to(*command);
  return command;
}

const CLI::Option* find(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : command.get_options())
    if (name_as_written(*option) == name) return option;
  return nullptr;
}

}  // namespace

Result<LoadSetting> LoadSetting::parse(const FlagValues& given) {
  LoadSetting setting;
  setting.flags_ = std::make_unique<LoadFlags>();
  setting.command_ = load_command(*setting.flags_);
  std::vector<std::string> arguments;
  for (const auto& [name, value] : given) {
    const CLI::Option* option = find(*setting.command_, name);
    if (option == nullptr) return invalid("this build has no flag '{}' for loading a model", name);
    if (!has_value(*option)) {
      if (value == "on") arguments.push_back(argument_name(*option));
    } else if (value != option->get_default_str() || is_one_of(name, kUnsetMeansSomething)) {
      arguments.push_back(argument_name(*option));
      arguments.push_back(value);
    }
  }
  std::ranges::reverse(arguments);  // CLI11 takes them from the back
  setting.command_->parse(std::move(arguments));
  return setting;
}

FlagValues LoadSetting::all() const { return load_flags_of(*command_); }

FlagValues load_flags_of(const CLI::App& command) {
  LoadFlags scratch;
  const auto all = load_command(scratch);
  FlagValues values;
  for (const CLI::Option* known : all->get_options()) {
    const std::string name = name_as_written(*known);
    const CLI::Option* option = find(command, name);
    if (option == nullptr) continue;
    if (!has_value(*option)) {
      if (option->count() > 0) values[name] = "on";
    } else if (option->count() > 0) {
      values[name] = option->as<std::string>();
    } else if (const std::string value = option->get_default_str();
               !value.empty() && !is_one_of(name, kUnsetMeansSomething)) {
      values[name] = value;
    }
  }
  return values;
}

void take_effective(FlagValues& flags, const engine::Engine& engine) {
  const engine::MemoryPlan& memory = engine.memory();
  flags["-t"] = fmt::format("{}", memory.threads);
  flags["-c"] = fmt::format("{}", memory.context);
  flags["-ub"] = fmt::format("{}", memory.ubatch);
  flags["-lm"] = engine::load_mode_name(memory.mode);
  flags["--device"] = engine.device() ? engine.device()->id : "none";
}

void LoadSettingFlags::add_to(CLI::App& command) {
  LoadFlags scratch;
  const auto source = load_command(scratch);
  for (const CLI::Option* option : source->get_options()) {
    Flag& flag = *flags_.emplace_back(std::make_unique<Flag>());
    flag.name = name_as_written(*option);
    flag.is_list = has_value(*option) && !is_one_of(flag.name, kNoLists);
    const std::string names = option->get_name(false, true);
    CLI::Option* added = nullptr;
    if (has_value(*option)) {
      added = command.add_option(names, flag.value, option->get_description());
      added->default_str(option->get_default_str());
      added->type_name(option->get_type_name() + (flag.is_list ? ",..." : ""));
    } else {
      added = command.add_flag(names, flag.on, option->get_description());
    }
    added->group(option->get_group());
    flag.option = added;
  }
}

std::string LoadSettingFlags::model() const {
  for (const auto& flag : flags_)
    if (flag->name == "-m") return flag->value;
  return "";
}

std::vector<FlagValues> LoadSettingFlags::combinations() const {
  std::vector<FlagValues> all{{}};
  for (const auto& flag : flags_) {
    if (flag->option->count() == 0) continue;
    std::vector<std::string> values{flag->option->get_items_expected_max() == 0 ? "on" : flag->value};
    if (flag->is_list) values = split_list(flag->name, flag->value);
    std::vector<FlagValues> longer;
    for (const FlagValues& before : all)
      for (const std::string& value : values) longer.emplace_back(before)[flag->name] = value;
    all = std::move(longer);
  }
  return all;
}

std::vector<std::string> split_list(const std::string& flag, const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    if (parts.back().empty()) throw CLI::ValidationError(flag, fmt::format("'{}' has an empty place", text));
    if (end == text.size()) return parts;
    begin = end + 1;
  }
}

}  // namespace spillway::cli
