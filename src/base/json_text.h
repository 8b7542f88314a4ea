// What is to be known of a JSON text before a parser sees it.
#pragma once

#include <string_view>

#include "base/result.h"

namespace spillway {

// That its lists and objects are not nested deeper than limits::kMaxJsonDepth, since a tree that is a million
// deep would be copied and deleted with as deep a stack; and that no object has more than
// limits::kMaxJsonMembers keys, since one that keeps their order looks each up among all. Brackets and commas
// in strings don't count. Text that is no JSON passes where a parser would see no more than this.
Result<void> check_json_size(std::string_view text);

}  // namespace spillway
