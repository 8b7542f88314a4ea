// Measures a machine in about ten seconds: the logic of `spillway probe`, which is the same for a real and
// for a simulated machine (probe_target.h).
//
// Every time is taken several times after one that does not count, and the median is used, with the middle
// half beside it. Fixed costs and rates come apart by fitting lines over sizes; what happens when copies and
// the CPU's work run at the same time is measured, not derived (facts/policy.md, finding 5: rules made from
// isolated rates chose wrongly by up to eight times).
#pragma once

#include <functional>

#include "tune/probe_target.h"
#include "tune/profile_file.h"

namespace spillway::tune {

struct ProbeOptions {
  double seconds = 10;  // of measuring; slow machines take longer, as everything runs three times at least
  std::vector<TensorType> types;  // of the experts; the first is what the profile's quantities are of
};

// Those that people run, the most common first.
std::vector<TensorType> common_types();

// Told the share that is done; false stops with kCancelled.
using ProbeProgress = std::function<bool(double share)>;

// The quantities and details that were measured; name, machine, date and limits are left to the caller.
// Values that can't be measured here keep their default, with the reason in `reasons`. Requires: one type or
// more.
Result<ProfileFile> probe(ProbeTarget& target, const ProbeOptions& options, const ProbeProgress& progress);

}  // namespace spillway::tune
