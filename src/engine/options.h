// How a model is to be loaded and run. `auto` values are resolved at load and reported (LoadReport).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/host/host_device.h"
#include "engine/cache_size.h"
#include "experts/planner.h"

namespace spillway::engine {

enum class LoadMode : uint8_t {
  kAuto,    // kRead where the weights fit comfortably in this process's memory, else kMmap
  kRead,    // into memory of our own, row-interleaved
  kMmap,    // used where the file's pages lie
  kMlock,   // as kRead, and locked against swapping
  kDirect,  // as kRead, but read around the page cache; kRead where the file system refuses that
};

// What runs beside the CPU, and how its memory is used. The defaults are those of the flags.
struct DeviceOptions {
  std::string device = "auto";  // as open_device() takes it: auto, none, host, vulkan, vulkan:N
  std::optional<uint32_t>
      layers;  // -ngl: the last N layers, and the output where N is above the model's; unset: what fits
  bool experts_on_host = false;  // -cmoe: no layer's experts are made resident
  std::optional<uint32_t>
      layers_with_host_experts;      // -ncmoe: of the first N layers; the others are made resident
  CacheSize cache;                   // --moe-cache-mib
  experts::PlannerSettings planner;  // share, policy, admission, promotion
  bool pin = true;                   // not --no-host
  uint64_t most_bytes = 0;           // of device memory that may be used; 0: what is free
  bool continue_on_host = false;     // go on with the CPU alone where the device is lost
  backend::HostDeviceOptions host;   // of the device "host"
};

// A hardware profile of this host that was measured with one of its devices.
struct KnownProfile {
  experts::HardwareProfile profile;
  std::string device, driver;  // as DeviceInfo names them
};

struct Options {
  std::string path;  // a GGUF file, or any shard of a split one
  LoadMode load_mode = LoadMode::kAuto;
  uint32_t threads = 0;  // 0 = chosen from quota, affinity and core kinds
  uint32_t context =
      0;  // positions of the KV cache, all sequences together; 0 = the model's, at most kDefaultContext
  uint32_t ubatch = 512;         // most tokens of one micro-batch
  uint64_t most_host_bytes = 0;  // of host memory that may be used; 0: what is usable
  backend::KvTypes kv_types;
  std::optional<cpu::InstructionSet> instruction_set;  // for tests; unset = the best
  DeviceOptions device;
  // The planner starts from the one of the device that is used, with its driver; else from default rates.
  std::vector<KnownProfile> profiles;
};

// What can be changed while a model is loaded (Engine::reconfigure).
struct RunSettings {
  uint32_t threads = 0;  // at most those that it was loaded with; 0 = those
  uint32_t ubatch = 0;   // likewise
  CacheSize cache;       // at most the slots that it was loaded with; auto = those
  experts::PlannerSettings planner;
};

// A chat's worth; a whole 128k context would cost gigabytes that most sessions never touch.
inline constexpr uint32_t kDefaultContext = 4096;

// Bytes loaded so far, of all. Returning false stops the load with kCancelled.
using Progress = std::function<bool(uint64_t done, uint64_t total)>;

}  // namespace spillway::engine
