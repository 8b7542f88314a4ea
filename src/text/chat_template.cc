#include "text/chat_template.h"

#include "text/chat_probe.h"

namespace spillway {
namespace text {

struct ChatTemplate::State {
  std::string source;
  TemplateTokens tokens;
  jinja::Program program;
  Probed probed;
};

namespace {

// Ollama and others carry Go templates beside or instead of Jinja. Some of their text is valid Jinja by
// accident.
bool looks_like_go(std::string_view source) {
  for (const auto mark : {"{{ .", "{{- .", "{{.", "{{ if .", "{{- if .", "{{if .", "{{ range .",
                          "{{- range .", "{{ end }}", "{{- end }}"})
    if (source.find(mark) != source.npos) return true;
  return false;
}

Error explained(const Error& error, std::string_view source) {
  Error out = error.in("chat template");
  if (looks_like_go(source)) out.message += "; the text looks like a Go template, which is not Jinja";
  out.message += "; give another with --chat-template-file, or continue plain text with --no-chat";
  return out;
}

bool has_role(const Json& messages, std::string_view role) {
  for (const Json& message : messages)
    if (message["role"] == role) return true;
  return false;
}

bool has_calls(const Json& messages) {
  for (const Json& message : messages)
    if (message.contains("tool_calls")) return true;
  return false;
}

// What the template would drop without a word is refused here.
Result<void> check_shown(const Json& messages, const RenderOptions& options, const Capabilities& can) {
  if (!options.tools.is_null() && !options.tools.is_array()) return invalid("tools must be a list");
  if (options.tools.is_array() && !options.tools.empty() && !can.tools)
    return unsupported(
        "the model's chat template shows no tools: send none, or give a template that does with "
        "--chat-template-file");
  if (has_calls(messages) && !can.tool_calls)
    return unsupported("the model's chat template shows no tool calls: a message has \"tool_calls\"");
  if (has_role(messages, "tool") && !can.tool_results)
    return unsupported("the model's chat template shows no tool results: a message has the role \"tool\"");
  if (has_role(messages, "system") && !can.system_role) {
    return unsupported(
        "the model's chat template has no place for a system message: put its text into the first user "
        "message, or give a template that has one with --chat-template-file");
  }
  return {};
}

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, const TemplateTokens& tokens) {
  auto program = jinja::Program::parse(source);
  if (!program) return std::unexpected(explained(program.error(), source));
  auto probed = probe(*program, source, tokens);
  if (!probed) return std::unexpected(explained(probed.error(), source));
  return ChatTemplate(std::make_shared<const State>(
      State{std::string(source), tokens, std::move(*program), std::move(*probed)}));
}

Result<Prompt> ChatTemplate::render(const Json& messages, const RenderOptions& options) const {
  const Capabilities& can = state_->probed.capabilities;
  SW_ASSIGN(Json fitted, fit_messages(messages, state_->probed.form));
  if (options.system_rule == SystemRule::kFoldIntoUser && !can.system_role) fitted = fold_system(fitted);
  SW_TRY(check_shown(fitted, options, can));
  if (!options.extra.is_null() && !options.extra.is_object())
    return invalid("the template's extra variables must be an object");

  const auto run = [&](const RenderOptions& with) -> Result<std::string> {
    auto text = state_->program.render(template_variables(fitted, with, state_->tokens), with.now);
    if (text) return text;
    if (text.error().kind == Error::Kind::kRefused)
      return std::unexpected(text.error().in("the model's chat template refuses the conversation"));
    return std::unexpected(text.error().in("chat template"));
  };
  Prompt prompt;
  SW_ASSIGN(prompt.text, run(options));
  prompt.starts_with_bos = !state_->tokens.bos.empty() && prompt.text.starts_with(state_->tokens.bos);
  if (!options.add_generation_prompt || !can.generation_prompt) return prompt;

  RenderOptions without = options;
  without.add_generation_prompt = false;
  const auto shorter = run(without);
  const auto suffix = shorter ? added_suffix(*shorter, prompt.text) : std::nullopt;
  if (suffix) prompt.generation_prompt = *suffix;
  if (suffix) {
    prompt.inside_thinking = open_thinking(*suffix);
  } else if (const auto tags = open_thinking(prompt.text)) {
    // No clear suffix: only a tag at the very end counts, so that a message that speaks of tags does not.
    const std::string_view text =
        std::string_view(prompt.text).substr(0, prompt.text.find_last_not_of(" \t\r\n") + 1);
    if (text.ends_with(tags->open)) prompt.inside_thinking = tags;
  }
  return prompt;
}

const Capabilities& ChatTemplate::capabilities() const { return state_->probed.capabilities; }
const std::string& ChatTemplate::source() const { return state_->source; }

}  // namespace text
}  // namespace spillway
