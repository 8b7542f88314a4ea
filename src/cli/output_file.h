// Writing a file that is there whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace spillway::cli {

// Replaces the file; it takes another name until it is whole. "-" is standard output. Refuses what is no
// regular file.
Result<void> write_output_file(const std::string& path, std::string_view text);

// Before a long run: an error where `path` is `model` (a model is not replaced), or its folder is not there.
// Nothing where the path is empty or "-".
Result<void> check_output_file(const std::string& path, const std::string& model);

}  // namespace spillway::cli
