// A conversation with a model: messages in, rendered by the chat template, tokens kept in the KV cache so
// that only what is new is computed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/generate.h"
#include "cli/model_text.h"
#include "engine/engine.h"
#include "sample/sampler.h"

namespace spillway::cli {

enum class Thinking { kDefault, kOn, kOff };

class Conversation {
 public:
  // The references must outlive the conversation.
  Conversation(engine::Engine& engine, const text::Tokenizer& tokenizer,
               const text::ChatTemplate& chat_template, sample::SamplerParams sampling,
               GenerateOptions options);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  void set_system(std::string text);
  void reset();  // forgets the messages, keeps the system text
  sample::SamplerParams& sampling() { return sampling_; }
  GenerateOptions& options() { return options_; }

  // Template variables, for example {"enable_thinking": false}.
  text::Json& template_variables() { return variables_; }

  // Adds the user's message and the model's answer. On an error (also a template's refusal) the message is
  // taken back.
  Result<Answer> ask(const std::string& message, const std::function<bool(const std::string&)>& emit);

  // What the conversation so far takes of the context.
  uint32_t tokens_in_context() const { return engine_.length(sequence_); }
  const std::optional<text::ThinkTags>& inside_thinking() const { return inside_thinking_; }

 private:
  Result<Answer> answer(const std::function<bool(const std::string&)>& emit);

  engine::Engine& engine_;
  const text::Tokenizer& tokenizer_;
  const text::ChatTemplate& template_;
  sample::SamplerParams sampling_;
  GenerateOptions options_;
  text::Json variables_;
  std::string system_;
  text::Json messages_ = text::Json::array();
  engine::SequenceId sequence_;
  std::vector<int32_t> history_;  // the tokens that the sequence holds
  std::optional<text::ThinkTags> inside_thinking_;
};

}  // namespace spillway::cli
