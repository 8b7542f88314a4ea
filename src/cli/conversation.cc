#include "cli/conversation.h"

#include <chrono>

#include "engine/prefix.h"
#include "text/chat_prompt.h"
#include "text/utf8.h"

namespace spillway::cli {

Conversation::Conversation(engine::Engine& engine, const text::Tokenizer& tokenizer,
                           const text::ChatTemplate& chat_template, sample::SamplerParams sampling,
                           GenerateOptions options)
    : engine_(engine),
      tokenizer_(tokenizer),
      template_(chat_template),
      sampling_(std::move(sampling)),
      options_(std::move(options)),
      sequence_(engine.open_sequence()) {}

Conversation::~Conversation() { engine_.close_sequence(sequence_); }

void Conversation::set_system(std::string text) { system_ = std::move(text); }

void Conversation::reset() { messages_ = text::Json::array(); }

Result<Answer> Conversation::ask(const std::string& message,
                                 const std::function<bool(const std::string&)>& emit) {
  for (const auto& [what, given] :
       {std::pair<const char*, const std::string*>("prompt", &message), {"system message", &system_}})
    if (const size_t valid = text::utf8_valid_length(*given); valid != given->size())
      return invalid(
          "the {} is no valid UTF-8 text (byte {} is 0x{:02X}), and a chat template takes nothing else; "
          "--no-chat "
          "continues any bytes",
          what, valid, static_cast<uint8_t>((*given)[valid]));
  messages_.push_back({{"role", "user"}, {"content", message}});
  auto result = answer(emit);
  if (!result) {
    messages_.erase(messages_.size() - 1);
    return result;
  }
  messages_.push_back(
      {{"role", "assistant"},
       {"content", text::without_reasoning(result->text, template_.capabilities().think_tags)}});
  ++sampling_.seed;  // the next answer draws other numbers, the same ones in a repeated session
  return result;
}

Result<Answer> Conversation::answer(const std::function<bool(const std::string&)>& emit) {
  text::Json messages = text::Json::array();
  if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
  for (const text::Json& message : messages_) messages.push_back(message);

  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  text::RenderOptions render{.extra = variables_, .now = std::chrono::local_seconds(now.time_since_epoch())};
  SW_ASSIGN(const text::ChatPrompt prompt, text::make_chat_prompt(template_, tokenizer_, messages, render));
  inside_thinking_ = prompt.inside_thinking;
  engine::keep_common_prefix(engine_, sequence_, history_, prompt.tokens);
  return generate(engine_, sequence_, tokenizer_, prompt.tokens, sampling_, options_, history_, emit);
}

}  // namespace spillway::cli
