// What is known of a machine before the engine has run on it, and how well it is known.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/label.h"
#include "base/result.h"

namespace spillway {
namespace experts {

struct Quantity {
  double value = 0.0;
  Label label = Label::kDefault;
};

// Rates in GB/s (10^9 bytes), times in microseconds. Rates are what is reached, not what a data sheet says.
struct HardwareProfile {
  std::string name;
  std::string source;
  Quantity device_gb_s;  // device memory, reading weights (0.8 of the peak where nothing was measured)
  Quantity dram_gb_s;    // host memory, read by whatever reads it
  Quantity cpu_gb_s;     // the CPU's expert kernel at one token, nothing else running
  Quantity link_gb_s;    // host to device, nothing else running
  // The same two while both run. 0: the link keeps its rate and the CPU gets what is left of dram_gb_s.
  Quantity cpu_contended_gb_s;
  Quantity link_contended_gb_s;
  // Tokens of one expert up to which its time is that of reading it once; from there on it grows in
  // proportion.
  Quantity cpu_tokens;
  Quantity device_tokens;
  Quantity step_us;       // a step, besides reading dense weights
  Quantity layer_us;      // a layer that has to wait for the host's plan
  Quantity cpu_start_us;  // the CPU part of a layer: waking the pool, handing over activations and results
  Quantity copy_us;       // one copy, besides its bytes
  Quantity device_expert_us;  // one expert on the device, besides its bytes

  // Rates and token counts must be positive and finite, times not negative, contended rates not above the
  // lone ones.
  Result<void> check() const;

  // All of them with their names, in a fixed order.
  std::array<std::pair<std::string_view, Quantity*>, 13> quantities();
  std::array<std::pair<std::string_view, const Quantity*>, 13> quantities() const;
};

// The lowest profile that anything runs with when nothing is known; all values kDefault.
HardwareProfile default_profile();

}  // namespace experts
}  // namespace spillway
