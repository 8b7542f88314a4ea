// Machines and models that people run, for the simulator: typical rates and sizes, not measured by this
// project. Every value is labelled estimated.
#pragma once

#include <span>

#include "experts/profile.h"

namespace spillway {
namespace experts {

// RTX 3060 on PCIe 3, the same on PCIe 4, RTX 4090 with DDR5, RTX 3090 with an EPYC.
std::span<const HardwareProfile> known_machines();
// By name, or an error that lists the names.
Result<HardwareProfile> find_machine(std::string_view name);

// Decode sizes of a published model file.
struct ModelSizes {
  std::string_view name;
  uint32_t n_layers;  // MoE layers
  uint32_t n_experts;
  uint32_t n_used;
  uint64_t expert_bytes;  // of one expert
  uint64_t dense_bytes;   // read per token
};
std::span<const ModelSizes> known_models();

}  // namespace experts
}  // namespace spillway
