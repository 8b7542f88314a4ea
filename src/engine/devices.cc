#include "engine/devices.h"

namespace spillway::engine {
namespace {

std::string known_devices() {
  std::string names = "none";
  for (const backend::DeviceInfo& info : list_devices())
    names += fmt::format(", {} ({})", info.id, info.name);
  return names;
}

}  // namespace

std::vector<backend::DeviceInfo> list_devices() {
  std::vector<backend::DeviceInfo> devices;
  if (auto host = backend::host_info({})) devices.push_back(std::move(*host));
  return devices;
}

Result<OpenedDevice> open_device(const DeviceOptions& options) {
  const std::string_view name = options.device;
  if (name == "none") return OpenedDevice{nullptr, "as asked"};
  if (name == "host") {
    SW_ASSIGN(auto device, backend::open_host(options.host));
    return OpenedDevice{std::move(device), "as asked: a pretended device, for tests"};
  }
  if (name == "auto") return OpenedDevice{nullptr, "no GPU backend is built in"};
  return invalid("there is no device '{}'; there are: {}", name, known_devices());
}

}  // namespace spillway::engine
