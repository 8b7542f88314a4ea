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

}  // namespace

void add_devices(CLI::App& app, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("devices", "List the devices that --device can name");
  command->add_flag("--json", *json, "print JSON");
  command->callback([json, &exit_code] {
    const std::vector<backend::DeviceInfo> devices = engine::list_devices();
    if (*json) {
      Json list = Json::array();
      for (const backend::DeviceInfo& d : devices) list.push_back(device_json(d));
      fmt::print("{}\n", list.dump(2, ' ', false, Json::error_handler_t::replace));
    } else {
      for (const backend::DeviceInfo& d : devices) print_device(d);
    }
    exit_code = finish_output();
  });
}

}  // namespace spillway::cli
