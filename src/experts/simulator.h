// Replays routes through the planner under the simulated clock: with any settings, cache size and machine.
// What comes out is predicted (the profile is this machine's) or estimated (another's), never measured.
#pragma once

#include "experts/controller.h"
#include "experts/planner.h"
#include "experts/trace.h"

namespace spillway {
namespace experts {

struct SimulationSetup {
  PlannerSettings settings;
  // Of each group's experts, the share that has a slot; or slots by number where given (groups).
  double cache_share = 0.0;
  std::vector<uint32_t> slots;
  std::vector<uint32_t> ring_slots;         // (groups); empty: 8 each
  HardwareProfile machine;                  // how it behaves
  std::optional<HardwareProfile> believed;  // what the planner starts from; the machine's if not given
  // Dense bytes that a token's layers read together, and fixed time of a step: the gaps between the layers'
  // expert parts. The profile's step_us if not given.
  uint64_t dense_bytes = 0;
  std::optional<double> step_us;
  uint64_t expert_bytes = 0;  // of one expert of any group; 0: as in the routes
};

struct SimulationResult {
  Counters cold, warm;
  double us = 0.0;  // of all steps
  uint64_t tokens = 0;
  double late_us = 0.0;  // of the second half of the steps: what settings come to, without the start
  uint64_t late_tokens = 0;
  double median_step_us = 0.0;
  double longest_step_us = 0.0;  // of the second half
  std::vector<double> steps_us;  // (steps)
  std::optional<ControllerReport> report;
  std::vector<std::string> notes;
};

// A recorded run as it was: its settings, sizes and the profile that it started from.
SimulationSetup setup_of(const TraceHead& head);

Result<SimulationResult> simulate(const Routes& routes, const SimulationSetup& setup);

// The same with Belady's rule and bypass, at an admission factor of 1: the most hits that any policy could
// have for this share of misses.
Result<SimulationResult> simulate_belady(const Routes& routes, const SimulationSetup& setup);

}  // namespace experts
}  // namespace spillway
