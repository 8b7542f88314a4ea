// What `tune` found, for a terminal.
#pragma once

#include <string>

#include "tune/tuner.h"

namespace spillway::cli {

// The conclusion, what was run, the best of what was only predicted, the terms of the time model, and notes.
std::string tune_text(const tune::TuneReport& report);

}  // namespace spillway::cli
