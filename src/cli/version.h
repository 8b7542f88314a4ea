#pragma once

#include <string>

namespace spillway::cli {

// Version, compiler, build type, and the kernels that this processor can run.
std::string version_text();

}  // namespace spillway::cli
