// The devices of this machine, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/device.h"
#include "base/result.h"
#include "engine/options.h"

namespace spillway::engine {

// Every device that --device can name: "host" and the Vulkan ones.
std::vector<backend::DeviceInfo> list_devices();

struct OpenedDevice {
  std::unique_ptr<backend::Device> device;  // null: the CPU alone
  std::string reason;                       // why this one
};

// "none", "host", "vulkan" (the first), "vulkan:N", or "auto": the first Vulkan device that is no software,
// or none. A device that was named and isn't there is an error that lists those that are.
Result<OpenedDevice> open_device(const DeviceOptions& options);

// Runs the self-test (backend/self_test.h) on the device that open_device() gives, opened for this alone.
// What came out otherwise than defined, a sentence each; empty where all is well or there is no device.
Result<std::vector<std::string>> self_test(const DeviceOptions& options, std::vector<TensorType> types,
                                           backend::KvTypes kv_types);

}  // namespace spillway::engine
