#include "text/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

namespace spillway {
namespace text {
namespace {

using Find = std::function<std::optional<uint32_t>(std::string_view)>;

struct Role {
  std::optional<uint32_t> SpecialIds::* id;
  std::initializer_list<std::string_view> texts;  // the first that exists is taken
};

// Families in the order of the texts: Llama 3, ChatML, Phi and gpt-oss, Gemma, GPT-2 and Qwen base, Granite,
// CodeLlama, Kimi-K2, DeepSeek, SmolDocling.
const Role kRoles[] = {
    {&SpecialIds::eot,
     {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>",
      "_<EOT>", "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>"}},
    {&SpecialIds::eom, {"<|eom_id|>"}},
    {&SpecialIds::fim_prefix,
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>",
      "<|code_prefix|>", "<|prefix|>"}},
    {&SpecialIds::fim_suffix,
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>",
      "<|code_suffix|>", "<|suffix|>"}},
    {&SpecialIds::fim_middle,
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>",
      "<|middle|>"}},
    {&SpecialIds::fim_pad, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
    {&SpecialIds::fim_repo, {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
    {&SpecialIds::fim_separator, {"<|file_sep|>"}},
};

constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
};

// gpt-oss marks the parts of an answer with these; they are shown, so that the parts can be told apart.
constexpr std::string_view kShownTexts[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

// A token that ends generations by its text is a control token, whatever type a careless converter gave it;
// but not a word that merges make, as "</s>" is in Qwen's vocabulary.
void make_control(uint32_t id, std::string_view text, SpecialTokens& special) {
  TokenType& type = special.types[id];
  if (type == TokenType::kControl) return;
  if (type == TokenType::kNormal && special.is_made_by_merges(text)) return;
  if (special.file_has_types)
    special.warnings.push_back(
        fmt::format("token {} '{}' has type {} in tokenizer.ggml.token_type, but ends or "
                    "structures generations in every known model; it is treated as control",
                    id, text, static_cast<int>(type)));
  type = TokenType::kControl;
}

void remove(std::vector<uint32_t>& ids, uint32_t id) { std::erase(ids, id); }

// Families in which a text of the list means something else.
void apply_exceptions(const Find& find, SpecialTokens& special) {
  const auto ends = [&](std::string_view text) {
    const auto id = find(text);
    return id && std::ranges::find(special.end_of_generation, *id) != special.end_of_generation.end();
  };
  // gpt-oss and Solar: a message ends with <|end|>, the generation with another token.
  const bool call = ends("<|call|>") || ends("<|calls|>");
  if (call && (ends("<|return|>") || ends("<|flush|>")) && ends("<|end|>")) {
    remove(special.end_of_generation, *find("<|end|>"));
    special.shown_controls.push_back(*find("<|end|>"));
  }
  // Gemma 4: </s> is an ordinary word.
  if (ends("<|tool_response>") && ends("</s>")) {
    remove(special.end_of_generation, *find("</s>"));
    special.types[*find("</s>")] = TokenType::kNormal;
  }
}

}  // namespace

std::optional<uint8_t> byte_of_token(std::string_view token_text) {
  if (token_text.size() != 6 || !token_text.starts_with("<0x") || token_text[5] != '>') return std::nullopt;
  uint8_t value = 0;
  for (const char c : token_text.substr(3, 2)) {
    int digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (digit < 0) return std::nullopt;
    value = static_cast<uint8_t>(value * 16 + digit);
  }
  return value;
}

bool pre_tokenizer_adds_bos(std::string_view pre) {
  static constexpr std::string_view kNames[] = {"llama3",  "llama-v3", "llama-bpe", "falcon3", "falcon-h1",
                                                "pixtral", "midm-2.0", "lfm2",      "tekken",  "chameleon"};
  return std::ranges::find(kNames, pre) != std::end(kNames);
}

void recognise_special_tokens(const Find& find, SpecialTokens special) {
  for (const Role& role : kRoles) {
    if (special.ids.*role.id) continue;
    for (const std::string_view text : role.texts) {
      const auto id = find(text);
      if (!id) continue;
      special.ids.*role.id = id;
      make_control(*id, text, special);
      break;
    }
  }
  for (const auto id : {special.ids.fim_pad, special.ids.fim_repo, special.ids.fim_separator})
    if (id) special.end_of_generation.push_back(*id);
  for (const std::string_view text : kEndTexts) {
    if (const auto id = find(text)) {
      special.end_of_generation.push_back(*id);
      make_control(*id, text, special);
    }
  }
  for (const std::string_view text : kShownTexts) {
    if (const auto id = find(text)) {
      special.shown_controls.push_back(*id);
      special.types[*id] = TokenType::kControl;
    }
  }
  for (const auto id : {special.ids.eos, special.ids.eot, special.ids.eom})
    if (id) special.end_of_generation.push_back(*id);
  apply_exceptions(find, special);
}

}  // namespace text
}  // namespace spillway
