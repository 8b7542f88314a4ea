// Hand-made vocabularies for tests.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace spillway {
namespace text {

// Byte-level: tokens 0..255 are the bytes in order, then one token for each merge ("left right" in the byte
// alphabet, a space being U+0120 "Ġ"), in order.
inline VocabularyData byte_level(std::string pre, std::initializer_list<const char*> merges) {
  VocabularyData data;
  data.kind = "gpt2";
  data.pre = std::move(pre);
  for (const uint16_t character : byte_alphabet()) {
    std::string token;
    append_utf8(character, token);
    data.tokens.push_back(token);
  }
  for (const std::string merge : merges) {
    data.merges.push_back(merge);
    const size_t space = merge.find(' ', 1);
    data.tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  if (data.merges.empty()) {                     // a vocabulary needs one: two bytes that no test uses
    data.merges.push_back("\xC4\x80 \xC4\x80");  // U+0100 twice: two zero bytes
    data.tokens.push_back("\xC4\x80\xC4\x80");
  }
  data.types.assign(data.tokens.size(), 1);
  return data;
}

inline uint32_t add_token(VocabularyData& data, std::string text, TokenType type, float score = 0) {
  data.tokens.push_back(std::move(text));
  data.types.push_back(static_cast<int32_t>(type));
  if (!data.scores.empty()) data.scores.push_back(score);
  return static_cast<uint32_t>(data.tokens.size() - 1);
}

// SentencePiece: <unk> 0, <s> 1, </s> 2, the 256 byte tokens from 3, then `pieces` from 259 with falling
// scores.
inline VocabularyData sentence_piece(std::initializer_list<const char*> pieces) {
  VocabularyData data;
  data.kind = "llama";
  data.tokens = {"<unk>", "<s>", "</s>"};
  data.types = {2, 3, 3};
  data.scores = {0, 0, 0};
  data.ids = {.bos = 1, .eos = 2, .unk = 0};
  data.add_bos = false;
  for (int byte = 0; byte < 256; ++byte) add_token(data, fmt::format("<0x{:02X}>", byte), TokenType::kByte);
  float score = 0;
  for (const char* piece : pieces) add_token(data, piece, TokenType::kNormal, score--);
  return data;
}

inline std::unique_ptr<Tokenizer> make_tokenizer(VocabularyData data, TokenizerOptions options = {}) {
  auto vocabulary = Vocabulary::create(std::move(data));
  if (!vocabulary) {
    ADD_FAILURE() << vocabulary.error().message;
    return nullptr;
  }
  auto tokenizer = Tokenizer::create(std::move(*vocabulary), std::move(options));
  if (!tokenizer) {
    ADD_FAILURE() << tokenizer.error().message;
    return nullptr;
  }
  return std::move(*tokenizer);
}

// The pieces of an encoding, joined by "|".
inline std::string pieces_of(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  const auto ids = tokenizer.encode(text, options);
  if (!ids) return ids.error().message;
  std::string pieces;
  for (const int32_t id : *ids) {
    if (!pieces.empty()) pieces += '|';
    pieces += tokenizer.token_bytes(id);
  }
  return pieces;
}

}  // namespace text
}  // namespace spillway
