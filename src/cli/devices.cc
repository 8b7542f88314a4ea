// `spillway devices`: what --device can name here, and what each can do.
#include "engine/devices.h"

#include <nlohmann/json.hpp>

#include "cli/common.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

Json device_json(const backend::DeviceInfo& d) {
  return {{"id", d.id},
          {"name", d.name},
          {"driver", d.driver},
          {"memory_bytes", d.memory_bytes},
          {"available_bytes", d.available_bytes},
          {"max_allocation_bytes", d.max_allocation_bytes},
          {"software", d.software},
          {"unified_memory", d.unified_memory},
          {"copy_queue", d.copy_queue},
          {"notes", d.notes}};
}

void print_device(const backend::DeviceInfo& d) {
  fmt::print("{:<10} {}{}\n", d.id, printable(d.name), d.driver.empty() ? "" : ", " + printable(d.driver));
  fmt::print("           {} of {} free{}{}{}\n", format_bytes(d.available_bytes),
             format_bytes(d.memory_bytes),
             d.copy_queue ? ", copies beside the computing" : ", copies in the same queue as the computing",
             d.unified_memory ? ", memory shared with the host" : "",
             d.software ? ", software: for correctness, not for speed; never chosen by auto" : "");
  for (const std::string& note : d.notes) fmt::print("           {}\n", printable(note));
}

// Of every type of weights that is computed with, and both types of the KV cache.
Result<std::vector<std::string>> self_test(const std::string& id) {
  std::vector<TensorType> types;
  constexpr uint32_t kMostTypeIds = 64;  // of GGUF today: 42
  for (uint32_t i = 0; i < kMostTypeIds; ++i)
    if (const TensorTypeInfo* type = find_tensor_type(i)) types.push_back(type->type);
  SW_ASSIGN(std::vector<std::string> faults, engine::self_test({.device = id}, types, {}));
  SW_ASSIGN(const auto more, engine::self_test({.device = id}, {TensorType::kF32},
                                               {backend::KvType::kF32, backend::KvType::kF32}));
  faults.insert(faults.end(), more.begin(), more.end());
  return faults;
}

struct DevicesFlags {
  std::string device;
  bool json = false, self_test = false;
};

Result<int> list(const DevicesFlags& flags) {
  std::vector<backend::DeviceInfo> devices = engine::list_devices();
  if (!flags.device.empty()) {
    SW_ASSIGN(const engine::OpenedDevice opened, engine::open_device({.device = flags.device}));
    if (!opened.device)
      return fail(Error::Kind::kNotFound, "--device {}: no device, {}", flags.device, opened.reason);
    const backend::DeviceInfo info = opened.device->info();
    devices = {info};
  }
  Json array = Json::array();
  bool passed = true;
  for (const backend::DeviceInfo& d : devices) {
    if (!flags.json) print_device(d);
    Json json = device_json(d);
    if (flags.self_test) {
      std::vector<std::string> faults;
      if (auto tested = self_test(d.id))
        faults = *std::move(tested);
      else
        faults = {tested.error().message};
      passed = passed && faults.empty();
      if (!flags.json && faults.empty())
        fmt::print("           self-test: every result is as defined, bit for bit\n");
      if (!flags.json)
        for (const std::string& fault : faults) fmt::print("           self-test: {}\n", printable(fault));
      json["self_test"] = {{"passed", faults.empty()}, {"faults", faults}};
    }
    array.push_back(std::move(json));
  }
  if (flags.json) fmt::print("{}\n", array.dump(2, ' ', false, Json::error_handler_t::replace));
  const int written = finish_output();
  return passed ? written : kExitError;
}

}  // namespace

void add_devices(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<DevicesFlags>();
  CLI::App* command = app.add_subcommand("devices", "List the devices that --device can name");
  command->add_option("--device,--dev", flags->device, "this one alone");
  command->add_flag("--self-test", flags->self_test,
                    "compute what devices differ in, and compare it with the definition bit for bit");
  command->add_flag("--json", flags->json, "print JSON");
  command->callback([flags, &exit_code] {
    const auto result = list(*flags);
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace spillway::cli
