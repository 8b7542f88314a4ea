// The chat on a terminal: line editing, history, commands that begin with a slash.
#pragma once

#include "cli/conversation.h"

namespace spillway::cli {

// Until /quit or the end of input; the exit code.
Result<int> chat(Conversation& conversation, engine::Engine& engine);

}  // namespace spillway::cli
