#include "cli/verify_settings.h"

#include "engine/devices.h"
#include "tune/fingerprint.h"

namespace spillway::cli {
namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<std::vector<std::string>> kv_types(const char* flag, const std::string& list) {
  std::vector<std::string> types = split(list);
  for (const std::string& type : types)
    if (type != "f16" && type != "f32") return invalid("{} {}: f16 and f32 are known", flag, type);
  if (types.empty()) return invalid("{}: f16 or f32 is needed", flag);
  return types;
}

// One value in place of each list.
struct Choice {
  std::string device = "none", cache = "auto", share = "auto", key = "f16", value = "f16";
};

Result<engine::Options> options_with(const VerifyFlags& flags, const CLI::App& command,
                                     const Choice& choice) {
  LoadFlags load = flags.load;
  load.device.device = choice.device;
  load.device.cache = choice.cache;
  load.device.share = choice.share;
  load.key_type = choice.key;
  load.value_type = choice.value;
  return load.options(command);
}

Result<void> add_device_settings(const VerifyFlags& flags, const CLI::App& command,
                                 std::vector<Alternative>& list, std::string& why_none) {
  const DeviceFlags& device = flags.load.device;
  for (const std::string& name : split(device.device)) {
    // Opened once before anything is loaded, so that a device that isn't there is known at once.
    SW_ASSIGN(const engine::Options probe, options_with(flags, command, {.device = name}));
    SW_ASSIGN(const engine::OpenedDevice opened, engine::open_device(probe.device));
    if (!opened.device) {
      why_none = opened.reason;
      continue;
    }
    for (const std::string& cache : split(device.cache))
      for (const std::string& share : split(device.share)) {
        Alternative alternative{
            .name = fmt::format("{}, cache {}, share {}", opened.device->info().id, cache, share),
            .must_be_equal = true};
        alternative.flags = {
            {"--device", name}, {"--moe-cache-mib", cache}, {"--moe-cache-cpu-share", share}};
        SW_ASSIGN(alternative.options,
                  options_with(flags, command, {.device = name, .cache = cache, .share = share}));
        list.push_back(std::move(alternative));
      }
  }
  return {};
}

Result<void> add_kv_types(const VerifyFlags& flags, const CLI::App& command, std::vector<Alternative>& list) {
  SW_ASSIGN(const std::vector<std::string> keys, kv_types("-ctk", flags.load.key_type));
  SW_ASSIGN(const std::vector<std::string> values, kv_types("-ctv", flags.load.value_type));
  for (const std::string& key : keys)
    for (const std::string& value : values) {
      if (key == "f16" && value == "f16") continue;  // the reference
      Alternative alternative{.name = fmt::format("KV cache: keys {}, values {}", key, value)};
      alternative.flags = {{"--device", "none"}, {"-ctk", key}, {"-ctv", value}};
      SW_ASSIGN(alternative.options, options_with(flags, command, {.key = key, .value = value}));
      list.push_back(std::move(alternative));
    }
  return {};
}

Result<void> add_files(const VerifyFlags& flags, const CLI::App& command, std::vector<Alternative>& list) {
  if (flags.against.empty()) return {};
  SW_ASSIGN(const report::Model own, tune::model_facts(flags.load.model));
  for (const std::string& path : flags.against) {
    SW_ASSIGN(const report::Model other, tune::model_facts(path));
    // A copy of the file promises what the file itself does.
    Alternative alternative{.name = other.file, .must_be_equal = other.content == own.content};
    alternative.flags = {{"--device", "none"}, {"--against", path}};
    SW_ASSIGN(alternative.options, reference_options(flags, command));
    alternative.options.path = path;
    list.push_back(std::move(alternative));
  }
  return {};
}

}  // namespace

Result<engine::Options> reference_options(const VerifyFlags& flags, const CLI::App& command) {
  return options_with(flags, command, {});
}

Result<std::vector<Alternative>> alternatives(const VerifyFlags& flags, const CLI::App& command) {
  std::vector<Alternative> list;
  std::string why_none;
  SW_TRY(add_device_settings(flags, command, list, why_none));
  SW_TRY(add_kv_types(flags, command, list));
  SW_TRY(add_files(flags, command, list));
  if (list.empty())
    return fail(
        Error::Kind::kNotFound,
        "there is nothing to compare with: no device is used ({}); give --against FILE for another file of "
        "the model, -ctk f32 for another KV cache, or --device",
        why_none);
  return list;
}

}  // namespace spillway::cli
