// Names that come from a file, made fit for a message, a terminal or JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace spillway::gguf {

// 'text', with control bytes and invalid UTF-8 escaped (\x1b) and cut after 80 bytes.
std::string quoted(std::string_view text);

// An error unless `name` is 1 to limits::kMaxNameBytes bytes of valid UTF-8 without control characters.
// `what` names the kind of thing: "a key", "a tensor name".
Result<void> check_name(std::string_view name, std::string_view what);

}  // namespace spillway::gguf
