#include "engine/devices.h"

#include <charconv>

#include "backend/self_test.h"
#include "backend/vulkan/vulkan_device.h"

namespace spillway::engine {
namespace {

std::string known_devices() {
  std::string names = "none";
  for (const backend::DeviceInfo& info : list_devices())
    names += fmt::format(", {} ({})", info.id, info.name);
  return names;
}

Result<OpenedDevice> open_vulkan_device(uint32_t index, std::string reason) {
  SW_ASSIGN(auto device, vulkan::open_vulkan(index));
  return OpenedDevice{std::move(device), std::move(reason)};
}

}  // namespace

std::vector<backend::DeviceInfo> list_devices() {
  std::vector<backend::DeviceInfo> devices = vulkan::vulkan_devices();
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
  const std::vector<backend::DeviceInfo> devices = vulkan::vulkan_devices();
  if (name == "auto") {
    for (uint32_t i = 0; i < devices.size(); ++i)
      if (!devices[i].software) return open_vulkan_device(i, "the first GPU");
    return OpenedDevice{nullptr, devices.empty()
                                     ? "no Vulkan device was found"
                                     : "the only Vulkan devices are software, slower than the CPU itself"};
  }
  if (!name.starts_with("vulkan"))
    return invalid("--device {}: there is no such device; there are: {}", name, known_devices());
  uint32_t index = 0;
  if (name != "vulkan") {
    const char* begin = name.data() + std::string_view("vulkan:").size();
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(begin, end, index);
    if (!name.starts_with("vulkan:") || error != std::errc() || stop != end)
      return invalid("--device {}: it names no device; there are: {}", name, known_devices());
  }
  if (index >= devices.size())
    return fail(Error::Kind::kNotFound, "--device {}: there is no such device; there are: {}", name,
                known_devices());
  return open_vulkan_device(index, "as asked");
}

Result<std::vector<std::string>> self_test(const DeviceOptions& options, std::vector<TensorType> types,
                                           backend::KvTypes kv_types) {
  SW_ASSIGN(const OpenedDevice opened, open_device(options));
  if (!opened.device) return std::vector<std::string>();
  return backend::self_test(*opened.device, {.types = std::move(types), .kv_types = kv_types});
}

}  // namespace spillway::engine
