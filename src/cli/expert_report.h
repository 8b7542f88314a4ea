// What is in force on the device, and what the experts did, for people and as JSON (docs/expert-cache.md).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/engine.h"

namespace spillway::cli {

// The start-up block: where dense weights, KV, scratch and cache lie, which layers take part, what is not in
// force and why. Several lines; empty without a device.
std::string describe_placement(const engine::MemoryPlan& memory, const engine::Placement& placement,
                               const backend::DeviceInfo& device);
nlohmann::ordered_json placement_json(const engine::MemoryPlan& memory, const engine::Placement& placement,
                                      const backend::DeviceInfo& device);

// One line for the end of a run, several for /stats. Empty where no expert was planned.
std::string expert_line(const engine::ExpertStats& stats);
std::string expert_text(const engine::Engine& engine);
std::string expert_layers_text(const engine::ExpertStats& stats);  // a line for each planned layer
// The counts and times alone, cold and warm apart: several lines that end with a line break. Empty likewise.
std::string counters_text(const engine::ExpertStats& stats);
// --stats-json: stable names, documented in docs/expert-cache.md.
nlohmann::ordered_json expert_stats_json(const engine::Engine& engine);
// Of these: "experts" with the "bytes", "waits" and "time_us" in it, and "cold" and "warm" of the same form.
nlohmann::ordered_json experts_json(const engine::ExpertStats& stats);

}  // namespace spillway::cli
