// What the probe (probe.h) takes times of: this machine (probe_machine.h) or a simulated one
// (probe_simulated.h). Times are microseconds; each call does the work once and returns how long it took.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor_type.h"

namespace spillway::tune {

// `regions` parallel regions one after another, each with this many experts, all of them used by `tokens`
// tokens. Every region reads other experts, from memory larger than the caches.
struct CpuLoad {
  TensorType type = TensorType::kQ4_K;
  uint32_t threads = 1;
  uint32_t tokens = 1;
  uint32_t experts = 1;
  uint32_t regions = 1;
};

enum class Direction : uint8_t { kUp, kDown };           // to the device, from it
enum class HostMemory : uint8_t { kPinned, kPageable };  // of copies up

struct CopyLoad {
  Direction direction = Direction::kUp;
  HostMemory memory = HostMemory::kPinned;
  uint32_t size = 0;  // index into copy_sizes()
  uint32_t copies = 1;
};

// `operations` operations one after another, each with this many experts that all tokens use.
struct DeviceLoad {
  uint32_t size = 0;  // index into device_expert_sizes()
  uint32_t experts = 1;
  uint32_t tokens = 1;
  uint32_t operations = 1;
};

enum class Wait : uint8_t {
  kPool,      // an empty parallel region of all threads, which had gone to sleep
  kDevice,    // handing over nothing to the device, and waiting until it is done
  kHandOver,  // giving the device one layer's results of the CPU
  kPlanned,   // routing of a layer, until the host has read the ids
  kResident,  // the same routing, which nobody waits for; many in a row, the time of one
};

struct BothTimes {
  double cpu_us = 0, link_us = 0;  // until each was done
};

class ProbeTarget {
 public:
  virtual ~ProbeTarget() = default;

  virtual double now_us() = 0;               // for the time budget
  virtual uint32_t threads() const = 0;      // that the engine would use
  virtual uint64_t read_bytes() const = 0;   // that read_us() reads, each time others
  virtual uint32_t cpu_experts() const = 0;  // the most of one region
  virtual uint32_t cpu_tokens() const = 0;
  virtual uint64_t cpu_expert_bytes(TensorType type) const = 0;
  // Cores that others have kept busy since the last call; nothing where that can't be seen.
  virtual double other_cores() = 0;

  virtual Result<double> read_us(uint32_t threads) = 0;
  virtual Result<double> cpu_us(const CpuLoad& load) = 0;

  // Without a device, none of these is called.
  virtual bool has_device() const = 0;
  virtual bool software_device() const = 0;  // its times mean nothing
  // Why copies from this memory can't be timed; empty where they can.
  virtual std::string why_no_copies(HostMemory memory) const = 0;
  virtual std::vector<uint64_t> copy_sizes(Direction direction) const = 0;  // bytes, ascending, two or more
  virtual std::vector<uint64_t> device_expert_sizes() const = 0;            // likewise
  virtual uint32_t device_experts() const = 0;                              // the most of one operation
  virtual uint32_t device_tokens() const = 0;
  virtual Result<double> copy_us(const CopyLoad& load) = 0;
  virtual Result<double> device_us(const DeviceLoad& load) = 0;
  virtual Result<double> wait_us(Wait what) = 0;  // kPool without a device too
  // Both, started together.
  virtual Result<BothTimes> both_us(const CpuLoad& cpu, const CopyLoad& copy) = 0;
};

}  // namespace spillway::tune
