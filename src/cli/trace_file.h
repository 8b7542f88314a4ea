// A record that `trace record` wrote, as commands read it.
#pragma once

#include <string>

#include "base/result.h"
#include "experts/trace.h"

namespace spillway::cli {

// The whole file, or what there is of one that breaks off: that is said.
Result<experts::Trace> read_trace(const std::string& path);

}  // namespace spillway::cli
