// Writing a file that is there whole or not at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spillway::cli {

// Replaces the file; it takes another name until it is whole. "-" is standard output. Refuses what is no
// regular file.
Result<void> write_output_file(const std::string& path, std::string_view text);

// Whether both name the same file, there or not; empty names and "-" name none.
bool same_file(const std::string& a, const std::string& b);

// Before a long run: an error where `path` is one of the files that are read (none of them is replaced), is
// no regular file, or its folder is not there. Nothing where the path is empty or "-".
Result<void> check_output_file(const std::string& path, const std::vector<std::string>& inputs);

}  // namespace spillway::cli
