// The vocabulary of a model: what a GGUF file says about its tokens, checked once, and the questions that
// everybody asks of it. Key names and meanings follow the GGUF specification ("tokenizer.ggml.*"); which
// token texts end a generation, and which special tokens are recognised by their text when the file names no
// id, follows llama.cpp, as published files rely on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace spillway {
namespace text {

// "tokenizer.ggml.token_type". A value outside 1..6 in a file is read as kNormal.
enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // never made from text unless EncodeOptions::parse_special; not shown by default
  kUserDefined = 4,  // always matched in text, before anything else; shown
  kUnused = 5,
  kByte = 6,  // "<0xXX>": one byte
};

// The ids of tokens with a role. Absent where the file names none.
struct SpecialIds {
  std::optional<uint32_t> bos, eos, eot, eom, unk, sep, pad;
  std::optional<uint32_t> fim_prefix, fim_suffix, fim_middle, fim_pad, fim_repo, fim_separator;
};

// The "tokenizer.ggml.*" keys as they stand in a file; the caller fills it. Nothing here is trusted.
struct VocabularyData {
  std::string kind;                // .model: "gpt2" (byte-level BPE), "llama" (SentencePiece BPE), "gemma4"
  std::optional<std::string> pre;  // .pre: name of the pre-tokenizer; matters for "gpt2" only
  std::vector<std::string> tokens;
  std::vector<float> scores;        // empty, or at least one per token; required for "llama"
  std::vector<int32_t> types;       // empty, or at least one per token
  std::vector<std::string> merges;  // "left right", best first; required for "gpt2" and "gemma4"
  SpecialIds ids;
  std::vector<uint32_t>
      end_of_generation;  // further ids that end a generation (".eos_token_ids" and the like)
  std::optional<bool> add_bos, add_eos, add_space_prefix,
      remove_extra_whitespaces;  // absent: the kind's default
};

// A merge as two token texts. The views point into the Vocabulary.
struct Merge {
  std::string_view left, right;
};

// Immutable; may be read from any number of threads.
class Vocabulary {
 public:
  // Errors: kInvalid names the key ("tokenizer.ggml.merges[17]"), the value found and what is needed;
  // kUnsupported names a kind that this program has no encoder for.
  static Result<Vocabulary> create(VocabularyData data);

  enum class Kind { kByteLevelBpe, kSentencePieceBpe, kSentencePieceRanks };
  Kind kind() const { return kind_; }
  const std::optional<std::string>& pre() const { return data_.pre; }

  uint32_t size() const { return static_cast<uint32_t>(data_.tokens.size()); }

  // Requires: id < size() for each of these.
  std::string_view text(uint32_t id) const {
    return data_.tokens[id];
  }  // as in the file, not the bytes it stands for
  TokenType type(uint32_t id) const { return types_[id]; }
  float score(uint32_t id) const { return data_.scores.empty() ? 0.0f : data_.scores[id]; }
  bool is_control(uint32_t id) const {
    return types_[id] == TokenType::kControl || types_[id] == TokenType::kUnknown;
  }
  // Whether readers of the output should not see it: a control token, but for those that mark the parts of an
  // answer
  // ("<|channel|>"), which whoever splits the answer needs to see.
  bool is_hidden(uint32_t id) const { return is_control(id) && !is_shown_control(id); }

  // False for an id past the vocabulary (a padding row of the model).
  bool is_end_of_generation(int64_t id) const;
  // Ascending.
  const std::vector<uint32_t>& end_of_generation() const { return end_of_generation_; }

  // The id whose text in the file is `token_text`; the lowest one should several share it.
  std::optional<uint32_t> find(std::string_view token_text) const;

  // Where a token was recognised by its text, the id is filled in.
  const SpecialIds& ids() const { return data_.ids; }
  const std::vector<Merge>& merges() const { return merges_; }

  // Defaults applied. bos() and eos() exist where the flag is true.
  bool add_bos() const { return add_bos_; }
  bool add_eos() const { return add_eos_; }
  bool add_space_prefix() const { return add_space_prefix_; }
  bool remove_extra_whitespaces() const { return data_.remove_extra_whitespaces.value_or(false); }

  // What was odd and let pass, for a person. Shown at load.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  Vocabulary() = default;
  Result<void> check_lengths() const;
  Result<void> check_ids() const;
  Result<void> read_types();
  Result<void> read_merges();
  void index_tokens();
  void set_sentence_piece_defaults();
  void find_special_tokens();
  bool is_shown_control(uint32_t id) const;
  Result<void> set_flags();

  VocabularyData data_;
  Kind kind_ = Kind::kByteLevelBpe;
  std::vector<TokenType> types_;
  std::vector<Merge> merges_;
  std::unordered_map<std::string_view, uint32_t> index_;
  std::vector<uint32_t> end_of_generation_;  // ascending
  std::vector<uint32_t> shown_controls_;     // ascending
  bool add_bos_ = false, add_eos_ = false, add_space_prefix_ = false;
  std::vector<std::string> warnings_;

 public:
  // The views point into heap storage that moves along; a copy would leave them behind.
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;
};

}  // namespace text
}  // namespace spillway
