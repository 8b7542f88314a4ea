// Byte-level BPE: text is cut by the family's pre-tokenizer, each piece starts as its bytes, and neighbours
// join in the order of the merges. Every byte is a token, so any text can be encoded.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/merge_table.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace spillway {
namespace text {

class ByteBpeTokenizer final : public Tokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary, TokenizerOptions options);

 protected:
  Result<void> encode_text(std::string_view text, bool after_special,
                           std::vector<int32_t>& ids) const override;

 private:
  ByteBpeTokenizer(Vocabulary vocabulary, PreTokenizer pre_tokenizer);
  void index_bytes();
  void index_merges();
  Result<void> encode_valid(std::string_view text, std::vector<int32_t>& ids) const;
  Result<void> encode_piece(std::string_view piece, std::vector<int32_t>& ids) const;
  Result<void> append_symbol(uint32_t symbol, std::vector<int32_t>& ids) const;

  PreTokenizer pre_tokenizer_;
  MergeTable merges_;
  std::unordered_map<std::string_view, uint32_t>
      by_bytes_;  // of tokens that text can become; views into token_bytes
  std::array<uint32_t, 256> byte_symbol_{};
  std::vector<std::string> parts_;  // bytes of the symbols past the vocabulary

  // Whether the merges turn a token's own bytes into that token: most words are tokens, and this spares them
  // the merging. Found out when it is first asked; every thread comes to the same answer.
  enum Reached : uint8_t { kNotTried, kYes, kNo };
  mutable std::vector<std::atomic<uint8_t>> reached_;
};

}  // namespace text
}  // namespace spillway
