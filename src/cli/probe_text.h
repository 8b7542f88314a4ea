// A measured hardware profile for people.
#pragma once

#include <string>

#include "tune/profile_file.h"

namespace spillway::cli {

// Several lines that end with a line break.
std::string probe_text(const tune::ProfileFile& file);

}  // namespace spillway::cli
