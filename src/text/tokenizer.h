// Text to token ids and back.
//
// Which special tokens are found in text (the rule that published files and llama.cpp follow):
//  - user-defined tokens (type 4) always, before anything else: the model's makers treat them as words;
//  - control and unknown tokens (types 3 and 2) only with EncodeOptions::parse_special, so that a user's text
//  can't
//    forge a turn or an end; without it "<|im_end|>" is ten characters like any others;
//  - all other types never: they come out of the merges only.
// Of several that match, the leftmost wins, then the longest.
//
// Bytes that are no valid UTF-8 never fail: each is a piece of its own, encoded by the vocabulary's byte
// token, and decoding gives the same bytes back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/vocabulary.h"

namespace spillway {
namespace text {

struct EncodeOptions {
  bool add_special = true;     // put bos before and eos after, where the vocabulary asks for them
  bool parse_special = false;  // find control tokens in the text
};

struct DecodeOptions {
  bool skip_special = true;   // leave out control and unknown tokens
  bool continuation = false;  // the ids follow earlier text: keep the space that a vocabulary with a space
                              // prefix would otherwise drop at the start of a text
};

struct TokenizerOptions {
  // Use this pre-tokenizer instead of the file's: a person's remedy for a file that names none, or an unknown
  // one.
  std::optional<std::string> pre;
};

// Immutable; encode and decode may run on any number of threads.
class Tokenizer {
 public:
  // Errors: kUnsupported for a pre-tokenizer name that isn't known; the message lists those that are.
  static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary, TokenizerOptions options = {});
  virtual ~Tokenizer() = default;

  // Errors: kInvalid where the text is longer than limits::kMaxTextBytes, or holds a byte or character for
  // which the vocabulary has neither a token, a byte token nor an unknown token (nothing is dropped in
  // silence).
  Result<std::vector<int32_t>> encode(std::string_view text, EncodeOptions options = {}) const;

  // The bytes, which may be invalid UTF-8 (text/stream_decoder.h makes text of them). Errors: kInvalid for an
  // id past the vocabulary.
  Result<std::string> decode(std::span<const int32_t> ids, DecodeOptions options = {}) const;

  // The bytes that a token stands for: its own text for a special token. Empty for an id past the vocabulary.
  // The view lives as long as the tokenizer.
  std::string_view token_bytes(int32_t id) const;

  // The same within a text: without the space that encode put before it where `drop_space` (true at the start
  // of a text with a space prefix) says so; `drop_space` is then right for the next token.
  std::string_view next_bytes(int32_t id, bool& drop_space) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }

  // The vocabulary's warnings and the tokenizer's own: a missing pre-tokenizer name for one.
  const std::vector<std::string>& warnings() const { return warnings_; }

 protected:
  struct Parts;  // what is common to the kinds (tokenizer.cc)
  explicit Tokenizer(Vocabulary vocabulary);

  // Appends the ids of a stretch of text without special tokens. `after_special`: it stands at the start of
  // the text or follows a special token.
  virtual Result<void> encode_text(std::string_view text, bool after_special,
                                   std::vector<int32_t>& ids) const = 0;

  void set_token_bytes(std::vector<std::string> bytes);

  Vocabulary vocabulary_;
  std::vector<std::string> warnings_;

 private:
  std::vector<std::string> token_bytes_;
  std::shared_ptr<const Parts> parts_;
};

// The names that "tokenizer.ggml.pre" may have here, sorted.
std::vector<std::string_view> known_pre_tokenizers();

}  // namespace text
}  // namespace spillway
