#include "tune/profile_file.h"

#include <nlohmann/json.hpp>

#include "base/limits.h"

namespace spillway::tune {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kKind = "hardware profile";

Result<void> take(experts::Quantity& quantity, std::string_view name, const Json& json) {
  if (!json.is_object() || !json.contains("value") || !json["value"].is_number())
    return invalid("quantities.{}: {{\"value\": number, \"label\": text}} is needed", name);
  const std::string label =
      json.contains("label") && json["label"].is_string() ? json["label"].get<std::string>() : "";
  for (uint32_t i = 0; i < kLabels; ++i)
    if (label == label_name(static_cast<Label>(i))) {
      quantity = {json["value"].get<double>(), static_cast<Label>(i)};
      return {};
    }
  return invalid("quantities.{}.label: default, measured, predicted or estimated is needed, found '{}'", name,
                 label);
}

}  // namespace

Result<experts::HardwareProfile> parse_profile(std::string_view text) {
  if (text.size() > limits::kMaxProfileBytes)
    return invalid("the profile has {} bytes, at most {} are read", text.size(), limits::kMaxProfileBytes);
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("kind", Json()) != kKind)
    return invalid("not a hardware profile: a JSON object with \"kind\": \"{}\" is needed", kKind);
  if (json.value("schema", Json()) != kProfileSchema)
    return unsupported("the profile has schema {}, this build reads {}: run 'spillway probe' again",
                       json.value("schema", Json()).dump(), kProfileSchema);
  experts::HardwareProfile profile = experts::default_profile();
  const auto text_of = [&](const char* key) {
    const Json value = json.value(key, Json());
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  profile.name = text_of("name");
  profile.source = text_of("source");
  const Json quantities = json.value("quantities", Json());
  if (!quantities.is_object()) return invalid("quantities: an object is needed");
  const auto all = profile.quantities();
  for (const auto& [key, value] : quantities.items()) {
    const auto found =
        std::ranges::find(all, key, [](const auto& named) { return std::string(named.first); });
    if (found == all.end()) return invalid("quantities: '{}' is not known", key);
    SW_TRY(take(*found->second, key, value));
  }
  SW_TRY(profile.check());
  return profile;
}

std::string to_json(const experts::HardwareProfile& profile) {
  Json quantities = Json::object();
  for (const auto& [name, quantity] : profile.quantities())
    quantities[std::string(name)] = {{"value", quantity->value}, {"label", label_name(quantity->label)}};
  const Json json{{"schema", kProfileSchema},
                  {"kind", kKind},
                  {"name", profile.name},
                  {"source", profile.source},
                  {"quantities", quantities}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace spillway::tune
