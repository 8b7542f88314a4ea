// `spillway profiles`: what is kept about this machine and its models, and where.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/profiles.h"
#include "cli/terminal.h"
#include "cli/tuned.h"
#include "tune/tuned_profile.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

Json hardware_json() {
  Json list = Json::array();
  for (const SavedProfile& saved : saved_profiles())
    list.push_back({{"file", saved.path},
                    {"device", saved.file.machine.device},
                    {"driver", saved.file.machine.driver},
                    {"created", saved.file.created},
                    {"changes", saved.changes}});
  return list;
}

Json tuned_json() {
  Json list = Json::array();
  for (const tune::KeptProfile& kept : tune::read_tuned_profiles(tuned_folder())) {
    if (!kept.profile) {
      list.push_back({{"file", kept.file}, {"error", kept.profile.error().message}});
      continue;
    }
    const tune::TunedProfile& profile = *kept.profile;
    std::error_code error;
    list.push_back({{"file", kept.file},
                    {"model", profile.model_path},
                    {"model_there", std::filesystem::exists(profile.model_path, error)},
                    {"device", profile.made_for.machine.device},
                    {"created", profile.created},
                    {"flags", tune::flags_of(profile.settings)},
                    {"is_default", profile.settings == tune::Settings{}},
                    {"gain", profile.gain}});
  }
  return list;
}

std::string text(const Json& json, const char* key) { return printable(json[key].get<std::string>()); }

void print_hardware(const Json& list) {
  fmt::print("Hardware profiles, measured by 'spillway probe'; runs start from those that hold:\n");
  if (list.empty()) fmt::print("  none\n");
  for (const Json& one : list) {
    fmt::print("  {}\n    {}, measured {}: {}\n", text(one, "file"), text(one, "device"),
               text(one, "created"), one["changes"].empty() ? "holds for this host" : "the host changed");
    for (const Json& change : one["changes"]) fmt::print("      {}\n", printable(change.get<std::string>()));
  }
  for (const std::string& sentence : unreadable_profiles()) fmt::print("  {}\n", printable(sentence));
}

void print_tuned(const Json& list) {
  fmt::print("Tuned settings, found by 'spillway tune'; 'spillway run' begins with those that hold:\n");
  if (list.empty()) fmt::print("  none\n");
  for (const Json& one : list) {
    fmt::print("  {}\n", text(one, "file"));
    if (one.contains("error")) {
      fmt::print("    can't be used: {}\n", text(one, "error"));
      continue;
    }
    std::string flags;
    for (const auto& [flag, value] : one["flags"].items())
      flags += fmt::format(" {} {}", flag, printable(value.get<std::string>()));
    fmt::print("    {}{}, on {}, tuned {}:{}\n", text(one, "model"),
               one["model_there"].get<bool>() ? "" : " (not there now)", text(one, "device"),
               text(one, "created"), one["is_default"].get<bool>() ? " the default is best" : flags);
    if (!one["is_default"].get<bool>()) fmt::print("    {}\n", tune::gain_text(one["gain"].get<double>()));
  }
}

}  // namespace

void add_profiles(CLI::App& app, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "profiles", "List what is kept of this machine and of tuning; delete a file to forget it");
  command->add_flag("--json", *json, "print JSON");
  command->callback([json, &exit_code] {
    const Json hardware = hardware_json(), tuned = tuned_json();
    if (*json) {
      fmt::print("{}\n", Json{{"schema", 1}, {"hardware", hardware}, {"tuned", tuned}}.dump(
                             2, ' ', false, Json::error_handler_t::replace));
    } else {
      print_hardware(hardware);
      print_tuned(tuned);
    }
    exit_code = finish_output();
  });
}

}  // namespace spillway::cli
