// BPE over characters, as SentencePiece does it: a space is written U+2581, a text starts with one (where the
// vocabulary asks for it), and a character that is no token becomes its bytes ("<0xE2>"), or the unknown
// token where the vocabulary has no byte tokens (one for a run of such characters, as SentencePiece has it).
//
// Two ways of saying which pair joins first: scores of the tokens ("llama": of all neighbours whose joined
// text is a token, the one with the highest score), or a list of merges ("gemma4").
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "text/merge_table.h"
#include "text/tokenizer.h"

namespace spillway {
namespace text {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary);

 protected:
  Result<void> encode_text(std::string_view text, bool after_special,
                           std::vector<int32_t>& ids) const override;

 private:
  explicit SentencePieceTokenizer(Vocabulary vocabulary);
  bool is_piece(uint32_t id) const;
  void index_pieces();
  void index_scores();
  void index_merges();
  uint32_t symbol_of(std::string_view text);
  Result<void> encode_word(std::string_view word, std::vector<int32_t>& ids) const;
  Result<void> append_bytes(std::string_view bytes, bool& in_unknown, std::vector<int32_t>& ids) const;
  size_t word_end(std::string_view text) const;

  MergeTable merges_;
  std::unordered_map<std::string_view, uint32_t>
      symbols_;                         // tokens that text can become, and single characters
  std::deque<std::string> parts_;       // texts of the symbols past the vocabulary
  std::array<int32_t, 256> byte_id_{};  // -1: no byte token
  // Characters after which a U+2581 may join: everywhere else before a U+2581 the text can be cut without
  // changing a token, which keeps the heap small.
  std::unordered_set<std::string_view> joins_space_;
};

}  // namespace text
}  // namespace spillway
