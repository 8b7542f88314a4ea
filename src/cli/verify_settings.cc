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

Result<Alternative> alternative(std::string name, const VerifyFlags& flags, const CLI::App& command,
                                const Choice& choice) {
  LoadFlags load = flags.load;
  load.device.device = choice.device;
  load.device.cache = choice.cache;
  load.device.share = choice.share;
  load.key_type = choice.key;
  load.value_type = choice.value;
  Alternative made{.name = std::move(name), .flags = load_flags_of(command)};
  for (const auto& [flag, value] : {std::pair("--device", choice.device),
                                    {"--moe-cache-mib", choice.cache},
                                    {"--moe-cache-cpu-share", choice.share},
                                    {"-ctk", choice.key},
                                    {"-ctv", choice.value}})
    made.flags[flag] = value;
  SW_ASSIGN(made.options, load.options(command));
  return made;
}

Result<void> add_device_settings(const VerifyFlags& flags, const CLI::App& command,
                                 std::vector<Alternative>& list, std::string& why_none) {
  const DeviceFlags& device = flags.load.device;
  for (const std::string& name : split(device.device)) {
    // Opened once before anything is loaded, so that a device that isn't there is known at once.
    SW_ASSIGN(const Alternative any, alternative("", flags, command, {.device = name}));
    SW_ASSIGN(const engine::OpenedDevice opened, engine::open_device(any.options.device));
    if (!opened.device) {
      why_none = opened.reason;
      continue;
    }
    for (const std::string& cache : split(device.cache))
      for (const std::string& share : split(device.share)) {
        SW_ASSIGN(Alternative made,
                  alternative(fmt::format("{}, cache {}, share {}", opened.device->info().id, cache, share),
                              flags, command, {.device = name, .cache = cache, .share = share}));
        made.must_be_equal = true;
        list.push_back(std::move(made));
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
      SW_ASSIGN(list.emplace_back(), alternative(fmt::format("KV cache: keys {}, values {}", key, value),
                                                 flags, command, {.key = key, .value = value}));
    }
  return {};
}

Result<void> add_files(const VerifyFlags& flags, const CLI::App& command, std::vector<Alternative>& list) {
  if (flags.against.empty()) return {};
  SW_ASSIGN(const report::Model own, tune::model_facts(flags.load.model));
  for (const std::string& path : flags.against) {
    SW_ASSIGN(const report::Model other, tune::model_facts(path));
    SW_ASSIGN(Alternative made, alternative(other.file, flags, command, {}));
    made.must_be_equal = other.content == own.content;  // a copy of the file promises what the file does
    made.options.path = made.flags["-m"] = path;
    list.push_back(std::move(made));
  }
  return {};
}

}  // namespace

Result<Alternative> reference(const VerifyFlags& flags, const CLI::App& command) {
  return alternative("reference", flags, command, {});
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
