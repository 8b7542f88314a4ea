#include "tune/profile_file.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/limits.h"

namespace spillway::tune {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kKind = "hardware profile";

// ---- reading: of details, what is missing or of another type is left as it is ----

template <class T>
void take(const Json& json, const char* key, T& to) {
  const auto found = json.find(key);
  if (found == json.end()) return;
  if constexpr (std::is_same_v<T, std::string>) {
    if (found->is_string()) to = found->template get<std::string>();
  } else if constexpr (std::is_same_v<T, double>) {
    if (found->is_number()) to = found->template get<double>();
  } else {
    if (found->is_number_unsigned()) to = found->template get<T>();
  }
}

template <class T>
void take(const Json& json, const char* key, std::optional<T>& to) {
  T value{};
  take(json, key, value);
  if (json.contains(key) && json[key].is_number()) to = value;
}

void take(const Json& json, const char* value_key, Sample& to) {
  take(json, value_key, to.median);
  to.low = to.high = to.median;
  take(json, "low", to.low);
  take(json, "high", to.high);
  take(json, "repeats", to.repeats);
}

const Json& object_at(const Json& json, const char* key) {
  static const Json kEmpty = Json::object();
  const auto found = json.find(key);
  return found != json.end() && found->is_object() ? *found : kEmpty;
}

// The objects of a list.
template <class T, class Take>
void take_list(const Json& json, const char* key, std::vector<T>& to, Take take_one) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) return;
  for (const Json& item : *found)
    if (item.is_object()) take_one(item, to.emplace_back());
}

Result<void> take_quantity(experts::Quantity& quantity, std::string_view name, const Json& json) {
  if (!json.is_object() || !json.contains("value") || !json["value"].is_number())
    return invalid("quantities.{}: {{\"value\": number, \"label\": text}} is needed", name);
  std::string label;
  take(json, "label", label);
  for (uint32_t i = 0; i < kLabels; ++i)
    if (label == label_name(static_cast<Label>(i))) {
      quantity = {json["value"].get<double>(), static_cast<Label>(i)};
      return {};
    }
  return invalid("quantities.{}.label: default, measured, predicted or estimated is needed, found '{}'", name,
                 label);
}

Result<void> take_quantities(const Json& json, ProfileFile& file) {
  const Json quantities = json.value("quantities", Json());
  if (!quantities.is_object()) return invalid("quantities: an object is needed");
  const auto all = file.profile.quantities();
  for (const auto& [key, value] : quantities.items()) {
    const auto found =
        std::ranges::find(all, key, [](const auto& named) { return std::string(named.first); });
    if (found == all.end()) return invalid("quantities: '{}' is not known", key);
    SW_TRY(take_quantity(*found->second, key, value));
    Sample spread;
    take(value, "value", spread);
    if (spread.repeats > 0) file.spreads[key] = spread;
    std::string reason;
    take(value, "reason", reason);
    if (!reason.empty()) file.reasons[key] = reason;
  }
  return file.profile.check();
}

void take_machine(const Json& json, report::Machine& machine) {
  take(json, "cpu", machine.cpu);
  take(json, "cores", machine.cores);
  take(json, "memory_bytes", machine.memory_bytes);
  take(json, "device", machine.device);
  take(json, "driver", machine.driver);
  take(json, "device_bytes", machine.device_bytes);
  take(json, "system", machine.system);
}

void take_details(const Json& json, ProfileFile& file) {
  take(json, "created", file.created);
  take(json, "seconds", file.seconds);
  take(json, "other_cores", file.other_cores);
  take_machine(object_at(json, "machine"), file.machine);
  take_list(json, "memory", file.memory, [](const Json& item, ReadRate& to) {
    take(item, "threads", to.threads);
    take(item, "gb_s", to.gb_s);
  });
  take_list(json, "cpu_kernels", file.cpu_kernels, [](const Json& item, CpuRate& to) {
    take(item, "type", to.type);
    take(item, "threads", to.threads);
    take(item, "tokens", to.tokens);
    take(item, "gb_s", to.gb_s);
  });
  take_list(json, "link", file.link, [](const Json& item, LinkRate& to) {
    take(item, "direction", to.direction);
    take(item, "memory", to.memory);
    take(item, "gb_s", to.gb_s);
    take(item, "copy_us", to.copy_us);
    take(item, "why_not", to.why_not);
  });
  take_list(json, "device", file.device, [](const Json& item, DeviceTime& to) {
    take(item, "expert_bytes", to.expert_bytes);
    take(item, "experts", to.experts);
    take(item, "tokens", to.tokens);
    take(item, "us", to.us);
  });
  for (const auto& [name, wait] : object_at(json, "waits_us").items())
    if (wait.is_object()) take(wait, "value", file.waits_us[name]);
  const Json& limits = object_at(json, "limits");
  take(limits, "group_memory_bytes", file.limits.group_memory_bytes);
  take(limits, "group_cpus", file.limits.group_cpus);
  take(limits, "locked_bytes", file.limits.locked_bytes);
  if (const auto notes = json.find("notes"); notes != json.end() && notes->is_array())
    for (const Json& note : *notes)
      if (note.is_string()) file.notes.push_back(note.get<std::string>());
}

// ---- writing ----

void add(Json& json, const char* value_key, const Sample& sample) {
  json[value_key] = sample.median;
  json["low"] = sample.low;
  json["high"] = sample.high;
  json["repeats"] = sample.repeats;
}

Json quantities_json(const ProfileFile& file) {
  Json quantities = Json::object();
  for (const auto& [key, quantity] : file.profile.quantities()) {
    const std::string name(key);
    Json json{{"value", quantity->value}, {"label", label_name(quantity->label)}};
    if (const auto spread = file.spreads.find(name); spread != file.spreads.end()) {
      json["low"] = spread->second.low;
      json["high"] = spread->second.high;
      json["repeats"] = spread->second.repeats;
    }
    if (const auto reason = file.reasons.find(name); reason != file.reasons.end())
      json["reason"] = reason->second;
    quantities[name] = std::move(json);
  }
  return quantities;
}

Json head_json(const experts::HardwareProfile& profile, Json quantities) {
  return {{"schema", kProfileSchema},
          {"kind", kKind},
          {"name", profile.name},
          {"source", profile.source},
          {"quantities", std::move(quantities)}};
}

Json link_json(const LinkRate& link) {
  Json json{{"direction", link.direction}, {"memory", link.memory}};
  if (link.why_not.empty()) {
    json["gb_s"] = link.gb_s;
    json["copy_us"] = link.copy_us;
  } else {
    json["why_not"] = link.why_not;
  }
  return json;
}

void add_lists(Json& json, const ProfileFile& file) {
  json["memory"] = json["cpu_kernels"] = json["link"] = json["device"] = Json::array();
  for (const ReadRate& rate : file.memory) {
    Json item{{"threads", rate.threads}};
    add(item, "gb_s", rate.gb_s);
    json["memory"].push_back(std::move(item));
  }
  for (const CpuRate& rate : file.cpu_kernels) {
    Json item{{"type", rate.type}, {"threads", rate.threads}, {"tokens", rate.tokens}};
    add(item, "gb_s", rate.gb_s);
    json["cpu_kernels"].push_back(std::move(item));
  }
  for (const LinkRate& link : file.link) json["link"].push_back(link_json(link));
  for (const DeviceTime& time : file.device) {
    Json item{{"expert_bytes", time.expert_bytes}, {"experts", time.experts}, {"tokens", time.tokens}};
    add(item, "us", time.us);
    json["device"].push_back(std::move(item));
  }
}

std::string text_of(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

bool is_profile_file(std::string_view text) {
  // Without a parser: that it is too large or damaged is for parse_profile_file() to say.
  constexpr size_t kBeginning = 4096;
  return text.substr(0, kBeginning).contains(fmt::format("\"{}\"", kKind));
}

Result<ProfileFile> parse_profile_file(std::string_view text) {
  if (text.size() > limits::kMaxProfileBytes)
    return invalid("the profile has {} bytes, at most {} are read", text.size(), limits::kMaxProfileBytes);
  if (const auto size = check_json_size(text); !size)
    return std::unexpected(size.error().in("not a hardware profile"));
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("kind", Json()) != kKind)
    return invalid("not a hardware profile: a JSON object with \"kind\": \"{}\" is needed", kKind);
  if (json.value("schema", Json()) != kProfileSchema)
    return unsupported("the profile has schema {}, this build reads {}: run 'spillway probe' again",
                       json.value("schema", Json()).dump(-1, ' ', false, Json::error_handler_t::replace),
                       kProfileSchema);
  ProfileFile file;
  file.profile = experts::default_profile();
  file.profile.name.clear();
  file.profile.source.clear();
  take(json, "name", file.profile.name);
  take(json, "source", file.profile.source);
  SW_TRY(take_quantities(json, file));
  take_details(json, file);
  return file;
}

Result<experts::HardwareProfile> parse_profile(std::string_view text) {
  SW_ASSIGN(const ProfileFile file, parse_profile_file(text));
  return file.profile;
}

std::string to_json(const experts::HardwareProfile& profile) {
  ProfileFile file;
  file.profile = profile;
  return text_of(head_json(profile, quantities_json(file)));
}

std::string to_json(const ProfileFile& file) {
  Json json = head_json(file.profile, quantities_json(file));
  json["created"] = file.created;
  json["seconds"] = file.seconds;
  json["other_cores"] = file.other_cores;
  const report::Machine& m = file.machine;
  json["machine"] = {{"cpu", m.cpu},       {"cores", m.cores},   {"memory_bytes", m.memory_bytes},
                     {"device", m.device}, {"driver", m.driver}, {"device_bytes", m.device_bytes},
                     {"system", m.system}};
  add_lists(json, file);
  json["waits_us"] = Json::object();
  for (const auto& [name, wait] : file.waits_us) add(json["waits_us"][name], "value", wait);
  json["limits"] = Json::object();
  if (file.limits.group_memory_bytes) json["limits"]["group_memory_bytes"] = *file.limits.group_memory_bytes;
  if (file.limits.group_cpus) json["limits"]["group_cpus"] = *file.limits.group_cpus;
  if (file.limits.locked_bytes) json["limits"]["locked_bytes"] = *file.limits.locked_bytes;
  json["notes"] = file.notes;
  return text_of(json);
}

}  // namespace spillway::tune
