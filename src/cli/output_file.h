// Writing a file that is there whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace spillway::cli {

// Replaces the file; it takes another name until it is whole. "-" is standard output. Refuses what is no
// regular file.
Result<void> write_output_file(const std::string& path, std::string_view text);

}  // namespace spillway::cli
