// A hardware profile as a file: what `probe` writes and `plan`, `tune` and `trace replay` read.
//
//   {"schema": 1, "kind": "hardware profile", "name": "...", "source": "...",
//    "quantities": {"link_gb_s": {"value": 24.1, "label": "measured"}, ...}}
//
// The quantities are those of experts/profile.h by their names there; a missing one keeps its default, and
// that label.
#pragma once

#include <string>
#include <string_view>

#include "experts/profile.h"

namespace spillway::tune {

inline constexpr uint32_t kProfileSchema = 1;

// Any bytes give a profile that passes check(), or an error that names the place.
Result<experts::HardwareProfile> parse_profile(std::string_view json);
std::string to_json(const experts::HardwareProfile& profile);

}  // namespace spillway::tune
