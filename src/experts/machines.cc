#include "experts/machines.h"

#include <array>
#include <vector>

namespace spillway {
namespace experts {
namespace {

// Memory peaks are the vendors' (360, 1008 and 936 GB/s), of which 0.8 is reached when reading weights. Host
// memory, CPU and link rates are typical results of public benchmarks of such machines (two channels of
// DDR4-3200 and DDR5-6000, eight channels of DDR4-3200; pinned host-to-device copies). The token counts
// follow from arithmetic rates: a CPU of 8 cores multiplies int8 blocks about 4 times as fast as it reads
// them, these devices 16 to 24 times. Fixed costs: 3 ms a step and 20 us a layer, of the latter 10 for the
// CPU part.
HardwareProfile machine(std::string name, double device_peak, double dram, double cpu, double link,
                        double cpu_tokens, double device_tokens) {
  constexpr Label kLabel = Label::kEstimated;
  HardwareProfile p;
  p.name = std::move(name);
  p.source = "typical published rates of such machines; not measured";
  p.device_gb_s = {0.8 * device_peak, kLabel};
  p.dram_gb_s = {dram, kLabel};
  p.cpu_gb_s = {cpu, kLabel};
  p.link_gb_s = {link, kLabel};
  p.cpu_contended_gb_s = {0.0, kLabel};
  p.link_contended_gb_s = {0.0, kLabel};
  p.cpu_tokens = {cpu_tokens, kLabel};
  p.device_tokens = {device_tokens, kLabel};
  p.step_us = {3000.0, kLabel};
  p.layer_us = {10.0, kLabel};
  p.cpu_start_us = {10.0, kLabel};
  p.copy_us = {4.0, kLabel};
  p.device_expert_us = {1.0, kLabel};
  return p;
}

const std::vector<HardwareProfile>& machines() {
  static const std::vector<HardwareProfile> all = {
      machine("rtx3060-pcie3-ddr4", 360, 42, 40, 12.3, 4, 16),
      machine("rtx3060-pcie4-ddr4", 360, 42, 40, 24, 4, 16),
      machine("rtx4090-pcie4-ddr5", 1008, 75, 68, 25, 4, 24),
      machine("rtx3090-pcie4-epyc", 936, 150, 110, 25, 4, 16),
  };
  return all;
}

// Published GGUF files; bytes of one expert are those of its three matrices.
constexpr std::array kModels = {
    ModelSizes{"Qwen3-30B-A3B Q4_K_M", 48, 128, 8, 2'850'000, 830'000'000},
    ModelSizes{"gpt-oss-120b MXFP4", 36, 128, 4, 13'220'000, 1'600'000'000},
    ModelSizes{"Qwen3-Next-80B-A3B Q4_K_M", 48, 512, 10, 1'910'000, 1'400'000'000},
};

}  // namespace

std::span<const HardwareProfile> known_machines() { return machines(); }

Result<HardwareProfile> find_machine(std::string_view name) {
  std::string names;
  for (const HardwareProfile& p : machines()) {
    if (p.name == name) return p;
    names += (names.empty() ? "" : ", ") + p.name;
  }
  return fail(Error::Kind::kNotFound, "hardware profile '{}' is not known; these are: {}", name, names);
}

std::span<const ModelSizes> known_models() { return kModels; }

}  // namespace experts
}  // namespace spillway
