// What a model will take here, before anything is loaded: every choice with its reason, every byte with its
// place.
#pragma once

#include <string>

#include "backend/cpu/cpu_compute.h"
#include "engine/devices.h"
#include "engine/model_files.h"
#include "engine/options.h"
#include "engine/placement.h"
#include "engine/program.h"

namespace spillway::engine {

struct MemoryPlan {
  LoadMode mode = LoadMode::kRead;  // never kAuto
  std::string mode_reason;
  uint32_t threads = 0;
  std::string threads_reason;
  cpu::InstructionSet set = cpu::InstructionSet::kScalar;
  std::string instruction_set;
  uint32_t context = 0;
  uint32_t ubatch = 0;
  backend::KvTypes kv_types;
  uint64_t weight_bytes = 0;  // memory of our own for weights, on the host
  uint64_t mapped_bytes = 0;  // the file's pages
  uint64_t kv_bytes = 0;
  uint64_t scratch_bytes = 0;  // activations, kernels' scratch, logits
  uint64_t rope_bytes = 0;
  uint64_t device_bytes = 0;  // of a device whose memory is the host's
  uint64_t usable_bytes = 0;  // what this process may use now
  bool fits = true;
  std::string device;                // its name; empty: the CPU alone
  std::string device_reason;         // why this device, or none
  experts::HardwareProfile profile;  // what the device's plan and the planner start from
  std::string verdict;               // a sentence: that it fits, or what is missing and what would free it

  uint64_t own_bytes() const { return weight_bytes + kv_bytes + scratch_bytes + rope_bytes + device_bytes; }
};

struct Plan {
  model::Description description;
  Program program;
  MemoryPlan memory;
  Placement placement;
};

// Describes the model and resolves everything that the options leave open. `opened` is from open_device().
// Errors: a file or option that can't run here at all, and what does not fit on the device; what merely
// doesn't fit on the host has `fits` false.
Result<Plan> plan(const ModelFiles& files, const Options& options, const OpenedDevice& opened);

StepSizes step_sizes(const MemoryPlan& plan, const model::Description& model);

const char* load_mode_name(LoadMode mode);

// Rows of logits that are computed at once.
uint32_t logits_rows(const MemoryPlan& plan, uint32_t vocabulary);
cpu::ComputeSizes compute_sizes(const Program& program, uint32_t ubatch);

}  // namespace spillway::engine
