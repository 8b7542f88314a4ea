// Where everything lies when a device runs beside the CPU: which layers, which experts, and the cache.
//
// Layers that run on the device are the last ones (as llama.cpp's -ngl), so that a step crosses over once.
// Token embeddings are looked up on the CPU, whose table is then needed in one place only. Of a device
// layer's experts, either all are resident (they lie in slots for good, and the layer waits for the host not
// at all), or the planner (experts/planner.h) decides use by use, with a cache whose slots all such layers of
// equal expert layout share, and a ring of a few slots for experts that pass through.
#pragma once

#include <string>
#include <vector>

#include "backend/device.h"
#include "engine/options.h"
#include "engine/program.h"
#include "experts/planner.h"

namespace spillway::engine {

enum class ExpertPlace : uint8_t {
  kNone,      // a dense layer
  kCpu,       // the layer itself is the CPU's
  kResident,  // all in slots, for good
  kPlanned,   // in host memory; the planner decides
};

constexpr uint64_t mib(uint64_t bytes) { return bytes >> 20; }  // whole ones, for messages

struct LayerPlacement {
  bool on_device = false;
  ExpertPlace experts = ExpertPlace::kNone;
  uint32_t pool = UINT32_MAX;           // kResident, kPlanned
  uint32_t first_slot = 0;              // kResident: of expert 0
  uint32_t planner_layer = UINT32_MAX;  // kPlanned: its LayerId
};

// Slots of one expert layout: first those of resident layers, then the cache's, then the ring's.
struct PoolPlacement {
  backend::ExpertLayout layout;
  experts::GroupShape group;  // of the planned layers
  uint32_t resident_slots = 0;
  uint32_t cache_slots = 0;
  uint32_t used_slots = 0;  // of the cache's, that the planner uses: all, or fewer after reconfigure()
  uint32_t ring_slots = 0;
  uint32_t slots() const { return resident_slots + cache_slots + ring_slots; }
};

struct Placement {
  bool has_device = false;
  uint32_t first_device_layer = 0;  // the number of layers where there is none
  bool output_on_device = false;
  std::vector<LayerPlacement> layers;
  std::vector<PoolPlacement> pools;
  std::vector<experts::GroupShape> groups;  // (planner's groups) one for each pool with planned layers
  std::vector<uint32_t> group_pool;         // its pool
  backend::DeviceBytes bytes;
  uint64_t budget_bytes = 0;       // of device memory, that may be used
  std::vector<std::string> notes;  // what was asked for and is not in force, and why

  uint32_t n_planned_layers() const;
  uint32_t n_resident_layers() const;
  uint64_t cache_bytes() const;      // that is used
  uint64_t cacheable_bytes() const;  // of all experts of planned layers
  uint32_t cache_slots() const;      // that are used
};

struct StepSizes {
  backend::KvTypes kv_types;
  uint32_t kv_pages = 0;
  uint32_t ubatch = 0;
  uint32_t logits_rows = 0;
  uint32_t vocabulary = 0;
  uint32_t context = 0;
  std::vector<uint32_t> rope_lengths;  // of each rope
};

// (groups) the slots of a cache of this size; auto: all there are.
std::vector<uint32_t> cache_slots(const Placement& placement, const CacheSize& size);

// Left to the driver, the display and fragmentation: 3 % of the device's free memory, at least 256 MiB.
uint64_t device_reserve_bytes(uint64_t available_bytes);

// All on the CPU.
Placement place_on_cpu(const Program& program);

// `device_limit`: device bytes that may be used at most. kNoMemory, with the bytes needed and free and what
// would help, where what was asked for does not fit. Where it was left open, fewer layers and a smaller cache
// are taken, and the notes say so.
Result<Placement> place(const Program& program, const StepSizes& sizes, const DeviceOptions& options,
                        const experts::HardwareProfile& profile, const backend::Device& device,
                        uint64_t device_limit);

// What the device is told to hold; of the ropes the sizes, the tables are left to the caller.
backend::DeviceSpec device_spec(const Program& program, const Placement& placement, const StepSizes& sizes);

// By WeightId: whether the weight is read from host memory while running.
std::vector<bool> weights_on_host(const Program& program, const Placement& placement);

}  // namespace spillway::engine
