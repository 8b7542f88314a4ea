// Where everything of a model would lie on a machine, from its description alone: the engine's own placement
// (engine/placement.h), on a device that exists in numbers only.
#pragma once

#include "engine/memory_plan.h"
#include "gguf/shards.h"
#include "tune/plan_machine.h"

namespace spillway::tune {

struct PlanModel {
  model::Description description;
  engine::Program program;
  uint64_t expert_bytes = 0;  // of all routed experts
  uint64_t dense_bytes = 0;   // of all other weights
  // Of one token: weights that are read, and of them those of routed experts.
  uint64_t token_bytes = 0, token_expert_bytes = 0;
  // The MoE layers of the model, numbered from 0, by equal count, use and bytes.
  std::vector<experts::GroupShape> groups;
};
// Errors: the family is not known, or the model has no layer with experts.
Result<PlanModel> describe_for_plan(const gguf::Model& file);

struct PlanUse {
  uint32_t context = 4096;  // positions of the KV cache; a token looks at half of them
  uint32_t ubatch = 512;    // of a prompt
};

// The operating system and everything else that runs: what a desktop has in use before anything is started.
inline constexpr uint64_t kHostReserveBytes = uint64_t{2} << 30;

struct Layout {
  engine::Placement placement;
  // By MoE layer of the model.
  std::vector<engine::ExpertPlace> experts;
  std::vector<uint32_t> planner_layer;  // where kPlanned
  // Read for each token: on the device (with the KV cache, half full), of it by the output head; by the CPU.
  uint64_t device_dense_bytes = 0, output_bytes = 0, cpu_dense_bytes = 0;
  uint64_t host_needed_bytes = 0;   // kHostReserveBytes with it
  uint64_t host_missing_bytes = 0;  // 0: it fits
};
// kNoMemory: the device cannot hold even what has to lie there.
Result<Layout> lay_out(const PlanModel& model, const PlanMachine& machine, const PlanUse& use);

}  // namespace spillway::tune
