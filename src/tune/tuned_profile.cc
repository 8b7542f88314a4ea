#include "tune/tuned_profile.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/limits.h"
#include "tune/fingerprint.h"

namespace spillway::tune {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
constexpr const char* kKind = "tuned settings";

std::string flags_text(const std::map<std::string, std::string>& flags) {
  std::string text;
  for (const auto& [flag, value] : flags)
    text += fmt::format("{}{}{}{}", text.empty() ? "" : " ", flag, value.empty() ? "" : " ", value);
  return text.empty() ? "none of -ngl, -cmoe and -ncmoe" : text;
}

Result<std::map<std::string, std::string>> text_map(const Json& json, const char* key) {
  std::map<std::string, std::string> map;
  const Json object = json.value(key, Json());
  if (!object.is_object()) return invalid("{}: an object is needed", key);
  for (const auto& [name, value] : object.items()) {
    if (!value.is_string()) return invalid("{}.{}: a text is needed", key, name);
    map[name] = value.get<std::string>();
  }
  return map;
}

Result<std::string> text_of(const Json& json, const char* key) {
  const Json value = json.value(key, Json());
  if (!value.is_string()) return invalid("{}: a text is needed", key);
  return value.get<std::string>();
}

Result<std::string> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return fail(Error::Kind::kIo, "it can't be read");
  return text.str();
}

// What a file may be called, of the model's own name.
std::string plain(std::string_view text) {
  std::string name;
  for (const char c : text)
    name += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
  return name;
}

std::string file_name(const TunedProfile& profile) {
  const std::string key = profile.model_path + "\n" + profile.made_for.machine.device;
  const std::string hash = content_hash(std::as_bytes(std::span(key)));
  return fmt::format("{}-{}.json", plain(fs::path(profile.model_path).stem().string()), hash.substr(0, 12));
}

}  // namespace

Result<TunedProfile> parse_tuned_profile(std::string_view text) {
  if (text.size() > limits::kMaxProfileBytes)
    return invalid("the tuned settings have {} bytes, at most {} are read", text.size(),
                   limits::kMaxProfileBytes);
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("kind", Json()) != kKind)
    return invalid("these are no tuned settings: a JSON object with \"kind\": \"{}\" is needed", kKind);
  if (json.value("schema", Json()) != kTunedSchema)
    return unsupported("the tuned settings have schema {}, this build reads {}: run 'spillway tune' again",
                       json.value("schema", Json()).dump(), kTunedSchema);
  TunedProfile profile;
  const auto facts = report::parse_result(json.value("facts", Json()).dump());
  if (!facts) return std::unexpected(facts.error().in("facts"));
  profile.made_for = {.build = facts->build, .model = facts->model, .machine = facts->machine};
  profile.created = facts->created;
  profile.conclusion = facts->conclusion;
  SW_ASSIGN(profile.model_path, text_of(json, "model_path"));
  SW_ASSIGN(profile.made_for.load_mode, text_of(json, "load_mode"));
  SW_ASSIGN(profile.made_for.placement, text_map(json, "placement"));
  SW_ASSIGN(const auto flags, text_map(json, "flags"));
  auto settings = settings_of(flags);
  if (!settings) return std::unexpected(settings.error().in("flags"));
  profile.settings = *std::move(settings);
  const Json context = json.value("context", Json()), gain = json.value("gain", Json());
  if (!context.is_number_unsigned() || context.get<uint64_t>() > limits::kMaxContext)
    return invalid("context: a number of positions is needed");
  profile.context = context.get<uint32_t>();
  if (!gain.is_number()) return invalid("gain: a number is needed");
  profile.gain = gain.get<double>();
  return profile;
}

std::string to_json(const TunedProfile& profile) {
  const report::ResultFile facts{.kind = "tune",
                                 .created = profile.created,
                                 .build = profile.made_for.build,
                                 .model = profile.made_for.model,
                                 .machine = profile.made_for.machine,
                                 .conclusion = profile.conclusion};
  const Json json{{"schema", kTunedSchema},
                  {"kind", kKind},
                  {"model_path", profile.model_path},
                  {"load_mode", profile.made_for.load_mode},
                  {"context", profile.context},
                  {"placement", profile.made_for.placement},
                  {"flags", flags_of(profile.settings)},
                  {"gain", profile.gain},
                  {"facts", Json::parse(report::to_json(facts))}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<std::string> stale_because(const Conditions& was, const Conditions& is) {
  std::vector<std::string> all = changes(was.model, is.model);
  const auto add = [&](std::vector<std::string> more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  add(changes(was.build, is.build));
  report::Machine machine_was = was.machine, machine_is = is.machine;
  machine_was.system.clear(), machine_is.system.clear();
  add(changes(machine_was, machine_is));
  if (was.load_mode != is.load_mode)
    all.push_back(
        fmt::format("the loading mode was '{}', now it is '{}' (-lm)", was.load_mode, is.load_mode));
  if (was.placement != is.placement)
    all.push_back(fmt::format("it was made with {}, and now there is {}", flags_text(was.placement),
                              flags_text(is.placement)));
  return all;
}

std::string gain_text(double gain) {
  if (gain > 1) return fmt::format("{:.2f} times as good as the default then, measured", gain);
  return "no better than the default then, measured, but with less of the device's memory";
}

Result<std::string> save_tuned_profile(const TunedProfile& profile, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  const fs::path path = fs::path(folder) / file_name(profile), part = path.string() + ".part";
  {
    std::ofstream out(part, std::ios::binary);
    out << to_json(profile) << std::flush;
    if (!out)
      return fail(Error::Kind::kIo, "'{}' can't be written; XDG_CONFIG_HOME says where settings are kept",
                  path.string());
  }
  fs::rename(part, path, error);
  if (error) return fail(Error::Kind::kIo, "'{}' can't be written: {}", path.string(), error.message());
  return path.string();
}

bool has_tuned_profiles(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") return true;
  return false;
}

std::vector<KeptProfile> read_tuned_profiles(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::ranges::sort(files);  // the order of a folder is nobody's
  std::vector<KeptProfile> kept;
  for (const fs::path& file : files) {
    const auto text = read_file(file);
    kept.push_back({file.string(),
                    text ? parse_tuned_profile(*text) : Result<TunedProfile>(std::unexpected(text.error()))});
  }
  return kept;
}

ProfileSearch find_tuned_profile(const std::string& folder, const std::string& model_path,
                                 const Conditions& now) {
  ProfileSearch search;
  for (KeptProfile& kept : read_tuned_profiles(folder)) {
    if (!kept.profile) {
      search.unreadable.push_back(
          fmt::format("'{}' is passed over: {}", kept.file, kept.profile.error().message));
      continue;
    }
    const bool same = kept.profile->made_for.model.content == now.model.content;
    if (!same && kept.profile->model_path != model_path) continue;
    FoundProfile found{std::move(kept.file), *std::move(kept.profile), {}};
    found.stale = stale_because(found.profile.made_for, now);
    // One that holds, else the one with the least that changed.
    if (!search.found || found.stale.size() < search.found->stale.size()) search.found = std::move(found);
  }
  return search;
}

}  // namespace spillway::tune
