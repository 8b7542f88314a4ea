// From the messages of a conversation to the tokens of its next prompt, and back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace spillway {
namespace text {

struct ChatPrompt {
  std::vector<int32_t> tokens;  // never empty
  std::optional<ThinkTags> inside_thinking;
};

Result<ChatPrompt> make_chat_prompt(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                    const Json& messages, const RenderOptions& options);

// What a chat template must not show again of an answer: its reasoning, up to the closing tag.
std::string without_reasoning(const std::string& answer, const std::optional<ThinkTags>& tags);

}  // namespace text
}  // namespace spillway
