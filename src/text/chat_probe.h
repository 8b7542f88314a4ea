// Finds out what a chat template does by showing it small conversations with words that it can't contain.
#pragma once

#include "text/chat_messages.h"
#include "text/template/program.h"

namespace spillway {
namespace text {

struct Probed {
  Capabilities capabilities;
  MessageForm form;
};

// The variables of one rendering, as the reference implementation names them.
Json template_variables(const Json& messages, const RenderOptions& options, const TemplateTokens& tokens);

// Errors: the template's own, when it renders not even the simplest conversation.
Result<Probed> probe(const jinja::Program& program, std::string_view source, const TemplateTokens& tokens);

// If `text` (a prompt, or the part of it that the generation prompt added) ends inside a thinking block: its
// tags.
std::optional<ThinkTags> open_thinking(std::string_view text);
// The part of `with` that add_generation_prompt added to `without`; nothing if it is no plain suffix.
std::optional<std::string> added_suffix(std::string_view without, std::string_view with);

}  // namespace text
}  // namespace spillway
