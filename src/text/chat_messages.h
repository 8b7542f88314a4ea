// Fits a request's messages to what a chat template takes. Pure functions of JSON.
#pragma once

#include "text/chat_template.h"

namespace spillway {
namespace text {

// How a template wants parts of a message, beyond what Capabilities tells the outside.
struct MessageForm {
  bool wrap_strings = false;          // content as parts only
  bool join_parts = true;             // content as a string only
  bool object_arguments = true;       // a tool call's arguments as an object
  bool null_content_of_calls = true;  // a message with tool calls and no text has null content, not ""
  bool developer_role = false;        // knows the role "developer"; else it becomes "system"
};

// Errors: kInvalid for what is no list of messages, kUnsupported for a part that is not text.
Result<Json> fit_messages(const Json& messages, const MessageForm& form);

// Messages whose leading system messages are folded into the first user message (SystemRule::kFoldIntoUser).
// Requires: fitted messages with string or part contents.
Json fold_system(const Json& messages);

// Text of a content that is a string, null or parts.
std::string content_text(const Json& content);

}  // namespace text
}  // namespace spillway
