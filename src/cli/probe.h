// Measuring this machine for commands that need to know it.
#pragma once

#include "tune/probe_machine.h"

namespace spillway::cli {

// With a progress bar; about `seconds`. kCancelled where the person interrupted it.
Result<tune::ProfileFile> measure_machine(tune::MachineTarget& target, double seconds);

}  // namespace spillway::cli
