// What is to be known of a JSON text before a parser sees it.
#pragma once

#include <cstdint>
#include <string_view>

namespace spillway {

// How deep lists and objects are nested; brackets in strings don't count. Of text that is no JSON, some
// number that is no less than a parser would see. A tree that is a million deep would be copied and deleted
// with as deep a stack: check it against limits::kMaxJsonDepth.
uint32_t json_depth(std::string_view text);

}  // namespace spillway
