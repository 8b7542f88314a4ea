// What special tokens are called in published vocabularies. Files name some of the ids and leave others to be
// recognised by their text; the lists and the exceptions are those that llama.cpp applies
// (src/llama-vocab.cpp), because files are made and tried with it. Two rules differ: a word that merges make
// keeps its type ("</s>" in Qwen's vocabulary, which llama.cpp would find in text as a control token); and
// llama.cpp turns the tokens that mark the parts of a gpt-oss answer into user-defined ones so that they are
// shown, which lets a user's text forge them. Here they stay control tokens and are shown.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace spillway {
namespace text {

// The byte that a token text of the form "<0xXX>" stands for.
std::optional<uint8_t> byte_of_token(std::string_view token_text);

// Whether a file with this pre-tokenizer that doesn't say "add_bos_token" wants one.
bool pre_tokenizer_adds_bos(std::string_view pre);

// The parts of a vocabulary that recognition completes.
struct SpecialTokens {
  SpecialIds& ids;
  std::vector<TokenType>& types;
  std::vector<uint32_t>& end_of_generation;  // appended to
  std::vector<uint32_t>& shown_controls;     // appended to
  std::vector<std::string>& warnings;
  std::function<bool(std::string_view)> is_made_by_merges;
  bool file_has_types = true;
};

// Fills in ids that are absent, and adds what ends a generation: eos, eot, eom, the padding, repository and
// separator tokens of fill-in-the-middle, and tokens with a well-known text, whose type becomes control
// unless merges make them (then they are words).
void recognise_special_tokens(const std::function<std::optional<uint32_t>(std::string_view)>& find,
                              SpecialTokens special);

}  // namespace text
}  // namespace spillway
