#include "text/chat_prompt.h"

namespace spillway {
namespace text {

Result<ChatPrompt> make_chat_prompt(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                    const Json& messages, const RenderOptions& options) {
  SW_ASSIGN(const Prompt prompt, chat_template.render(messages, options));
  ChatPrompt made{.inside_thinking = prompt.inside_thinking};
  SW_ASSIGN(made.tokens,
            tokenizer.encode(prompt.text, {.add_special = !prompt.starts_with_bos, .parse_special = true}));
  if (made.tokens.empty()) return invalid("the chat template made an empty prompt");
  return made;
}

std::string without_reasoning(const std::string& answer, const std::optional<ThinkTags>& tags) {
  if (!tags) return answer;
  const size_t close = answer.rfind(tags->close);
  if (close == std::string::npos) return answer;
  const size_t start = answer.find_first_not_of(" \n", close + tags->close.size());
  return start == std::string::npos ? std::string() : answer.substr(start);
}

}  // namespace text
}  // namespace spillway
