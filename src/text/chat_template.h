// A model's own chat template: from messages (JSON, as the OpenAI API gives them) to the prompt's text.
//
// The template is a Jinja2 program inside the model file (key tokenizer.chat_template). It is run as the
// reference implementation runs it (an immutable sandbox, trim_blocks and lstrip_blocks, the loopcontrols
// tags, a tojson that escapes nothing), so that equal input gives equal bytes. What of the language is there:
// text/template/README.md.
//
// What the template can do is found by rendering small conversations at load, not by looking for words in its
// source, and requests are fitted to that: see Capabilities.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spillway {
namespace text {

// Keys stay in the order in which they came: tools are shown to the model in that order. Parse request bodies
// with this type; the plain nlohmann::json sorts keys, and the prompt would differ from what the model was
// trained on.
using Json = nlohmann::ordered_json;

// The two strings around a model's reasoning, e.g. "<think>" and "</think>".
struct ThinkTags {
  std::string open;
  std::string close;
  friend bool operator==(const ThinkTags&, const ThinkTags&) = default;
};

// The model's special tokens as text. Empty where the model has none; a template sees them as bos_token and
// so on.
struct TemplateTokens {
  std::string bos;
  std::string eos;
  std::string pad;
  std::string unk;
};

// What to do with a system message when the template has no place for one (case: Gemma 2).
enum class SystemRule {
  kRefuse,        // an error that says so, and names this setting
  kFoldIntoUser,  // its text, a blank line, then the first user message's text, as one user message
};

struct RenderOptions {
  Json tools;      // null, or an array of {"type": "function", "function": {...}}
  Json documents;  // null, or an array; for templates that take them
  bool add_generation_prompt = true;
  // null, or an object whose members become template variables: {"enable_thinking": false}. They win over
  // bos_token and so on, but may not replace messages, tools, documents or add_generation_prompt.
  Json extra;
  // What strftime_now() tells the template. Without it that function is undefined: most templates have a
  // branch for that, some fail.
  std::optional<std::chrono::local_seconds> now;
  SystemRule system_rule = SystemRule::kRefuse;
};

struct Prompt {
  std::string text;
  // The end of `text` that is there because of add_generation_prompt. Empty if not asked for, or if the
  // template does not treat it as a plain suffix.
  std::string generation_prompt;
  // Set when the prompt ends inside a thinking block: the model's first words are reasoning, and only the
  // closing tag will come. Not set after an empty, already closed block: what comes then is the answer.
  std::optional<ThinkTags> inside_thinking;
  // The text already starts with the BOS token: the tokenizer must not add another.
  bool starts_with_bos = false;
};

// What the template does with parts of a conversation, found by rendering probes at load.
struct Capabilities {
  bool system_role = false;          // a system message's text reaches the prompt
  bool string_content = false;       // content given as a string reaches the prompt
  bool typed_content = false;        // content given as [{"type": "text", "text": ...}] reaches the prompt
  bool needs_alternation = false;    // two user messages in a row are refused
  bool tools = false;                // tool definitions reach the prompt
  bool tool_calls = false;           // an assistant's tool_calls reach the prompt
  bool parallel_tool_calls = false;  // both of two calls in one message do
  bool tool_results = false;         // a message of role "tool" reaches the prompt
  bool object_arguments = false;     // a call's arguments are wanted as an object (else as JSON text)
  bool generation_prompt = false;    // add_generation_prompt changes the output
  bool enable_thinking = false;      // the variable enable_thinking changes the output
  bool opens_thinking = false;  // with default variables, the generation prompt ends inside a thinking block
  std::optional<ThinkTags>
      think_tags;  // the tags that this template's model reasons in, if the template shows any
};

// Immutable after parse; render may be called from several threads at once.
class ChatTemplate {
 public:
  // Errors: kInvalid with line and column where the source is not a Jinja template (a Go template, for
  // example); kUnsupported for include, import, extends and block. Nothing is put in its place: the caller
  // says so and offers
  // --chat-template; raw completion does not need a template.
  static Result<ChatTemplate> parse(std::string_view source, const TemplateTokens& tokens = {});

  // `messages`: an array of {"role", "content", ...}. Before the template sees them,
  //   - content parts are joined to a string (or a string made into a part) where the template wants it so;
  //     a part that is not text is refused;
  //   - a tool call's arguments, JSON text in the API, become an object where the template wants one, so that
  //   they
  //     are encoded once. Text that is not a JSON object stays text.
  // Errors: kRefused if the template itself raises, with its own words; kUnsupported for a role or a part
  // that the template can't show; kInvalid for a fault in the template or in `messages`, with line and
  // column; limits (limits.h, kMaxTemplate...) end a template that would run or grow without end.
  Result<Prompt> render(const Json& messages, const RenderOptions& options = {}) const;

  const Capabilities& capabilities() const;
  const std::string& source() const;

 private:
  struct State;
  explicit ChatTemplate(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace text
}  // namespace spillway
