// Where the demo model lies: beside the sources it was built from, or installed.
#pragma once

#include <string>

#include "base/result.h"

namespace spillway::cli {

// An error of kind kNotFound names the places that were looked at.
Result<std::string> find_demo_model();

}  // namespace spillway::cli
