// "1,2,3" and the like.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spillway::cli {

// Numbers separated by commas, spaces or line ends; brackets around them are fine. An error names the word at
// fault.
Result<std::vector<int32_t>> parse_token_list(std::string_view text);

}  // namespace spillway::cli
