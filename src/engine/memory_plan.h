// What a model will take here, before anything is loaded: every choice with its reason, every byte with its
// place.
#pragma once

#include <string>

#include "backend/cpu/cpu_compute.h"
#include "engine/model_files.h"
#include "engine/options.h"
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
  uint64_t weight_bytes = 0;  // memory of our own for weights
  uint64_t mapped_bytes = 0;  // the file's pages
  uint64_t kv_bytes = 0;
  uint64_t scratch_bytes = 0;  // activations, kernels' scratch, logits
  uint64_t rope_bytes = 0;
  uint64_t usable_bytes = 0;  // what this process may use now
  bool fits = true;
  std::string verdict;  // a sentence: that it fits, or what is missing and what would free it

  uint64_t own_bytes() const { return weight_bytes + kv_bytes + scratch_bytes + rope_bytes; }
};

struct Plan {
  model::Description description;
  Program program;
  MemoryPlan memory;
};

// Describes the model and resolves everything that the options leave open. Errors: a file or option that
// can't run here at all; what merely doesn't fit has `fits` false.
Result<Plan> plan(const ModelFiles& files, const Options& options);

const char* load_mode_name(LoadMode mode);

// Rows of logits that are computed at once.
uint32_t logits_rows(const MemoryPlan& plan, uint32_t vocabulary);
cpu::ComputeSizes compute_sizes(const Program& program, uint32_t ubatch);

}  // namespace spillway::engine
