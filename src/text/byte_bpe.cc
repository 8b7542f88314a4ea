#include "text/byte_bpe.h"

#include <utility>

#include "text/byte_alphabet.h"
#include "text/special_tokens.h"
#include "text/utf8.h"

namespace spillway {
namespace text {
namespace {

constexpr std::string_view kPreWhenMissing = "default";

// As token texts stand in the file: special tokens as plain text, the others in the byte alphabet.
std::vector<std::string> bytes_of_tokens(const Vocabulary& vocabulary) {
  std::vector<std::string> bytes(vocabulary.size());
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    const TokenType type = vocabulary.type(id);
    if (type == TokenType::kByte) {
      bytes[id] = static_cast<char>(*byte_of_token(text));
    } else if (type == TokenType::kNormal || type == TokenType::kUnused) {
      bytes[id] = bytes_from_alphabet(text).value_or(std::string(text));
    } else {
      bytes[id] = text;
    }
  }
  return bytes;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> ByteBpeTokenizer::create(Vocabulary vocabulary, TokenizerOptions options) {
  std::string name(kPreWhenMissing);
  const bool missing = !options.pre && !vocabulary.pre();
  if (options.pre)
    name = *options.pre;
  else if (vocabulary.pre())
    name = *vocabulary.pre();
  SW_ASSIGN(PreTokenizer pre_tokenizer, PreTokenizer::create(name));
  auto tokenizer = std::unique_ptr<ByteBpeTokenizer>(
      new ByteBpeTokenizer(std::move(vocabulary), std::move(pre_tokenizer)));
  if (missing)
    tokenizer->warnings_.push_back(fmt::format(
        "tokenizer.ggml.pre is missing: text is cut by the rules '{}', which are probably not those that the "
        "model was "
        "trained with, and answers may be much worse. Name the right rules, or convert the model again",
        kPreWhenMissing));
  return tokenizer;
}

ByteBpeTokenizer::ByteBpeTokenizer(Vocabulary vocabulary, PreTokenizer pre_tokenizer)
    : Tokenizer(std::move(vocabulary)),
      pre_tokenizer_(std::move(pre_tokenizer)),
      merges_(vocabulary_.merges().size()),
      reached_(vocabulary_.size()) {
  set_token_bytes(bytes_of_tokens(vocabulary_));
  index_bytes();
  index_merges();
}

void ByteBpeTokenizer::index_bytes() {
  by_bytes_.reserve(vocabulary_.size());
  for (uint32_t id = 0; id < vocabulary_.size(); ++id) {
    const TokenType type = vocabulary_.type(id);
    if (type == TokenType::kNormal || type == TokenType::kByte)
      by_bytes_.emplace(token_bytes(static_cast<int32_t>(id)), id);
  }
}

// Symbols are found by the text that they have in the file, as merges are written in it. A part of a merge
// that is no token gets a number past the vocabulary; so does a special token of the same text: it stands for
// that text and not for the bytes behind it ("\u00F5", user-defined in DeepSeek-Coder's files, is not the
// byte 0xF5), and merging must not make a control token out of a user's text.
void ByteBpeTokenizer::index_merges() {
  std::unordered_map<std::string, uint32_t> extra;
  const auto is_plain = [this](uint32_t id) {
    return vocabulary_.type(id) == TokenType::kNormal || vocabulary_.type(id) == TokenType::kUnused;
  };
  const auto symbol = [&](std::string_view text) {
    if (const auto id = vocabulary_.find(text); id && is_plain(*id)) return *id;
    const auto [entry, is_new] =
        extra.emplace(text, vocabulary_.size() + static_cast<uint32_t>(parts_.size()));
    if (is_new) parts_.push_back(bytes_from_alphabet(text).value_or(std::string(text)));
    return entry->second;
  };
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    append_utf8(byte_alphabet()[static_cast<size_t>(byte)], text);
    byte_symbol_[static_cast<size_t>(byte)] = symbol(text);
  }
  const size_t missing_bytes = parts_.size();
  uint32_t rank = 0;
  std::string joined;
  for (const Merge& merge : vocabulary_.merges()) {
    joined.assign(merge.left).append(merge.right);
    merges_.add(symbol(merge.left), symbol(merge.right), {rank++, symbol(joined)});
  }
  if (const size_t parts = parts_.size() - missing_bytes; parts > 0)
    warnings_.push_back(
        fmt::format("tokenizer.ggml.merges names {} texts that are not in tokenizer.ggml.tokens (one: "
                    "'{}'); where merging ends at one, its bytes are encoded one by one",
                    parts, parts_.back()));
}

Result<void> ByteBpeTokenizer::encode_text(std::string_view text, bool /*after_special*/,
                                           std::vector<int32_t>& ids) const {
  while (!text.empty()) {
    const size_t valid = utf8_valid_length(text);
    SW_TRY(encode_valid(text.substr(0, valid), ids));
    text.remove_prefix(valid);
    if (text.empty()) break;
    SW_TRY(append_symbol(byte_symbol_[static_cast<uint8_t>(text[0])], ids));
    text.remove_prefix(1);
  }
  return {};
}

Result<void> ByteBpeTokenizer::encode_valid(std::string_view text, std::vector<int32_t>& ids) const {
  std::vector<uint32_t> ends;
  SW_TRY(pre_tokenizer_.split(text, ends));
  uint32_t start = 0;
  for (const uint32_t end : ends) {
    SW_TRY(encode_piece(text.substr(start, end - start), ids));
    start = end;
  }
  return {};
}

Result<void> ByteBpeTokenizer::encode_piece(std::string_view piece, std::vector<int32_t>& ids) const {
  const auto found = by_bytes_.find(piece);
  if (found != by_bytes_.end() &&
      (pre_tokenizer_.ignore_merges() || reached_[found->second].load(std::memory_order_relaxed) == kYes)) {
    ids.push_back(static_cast<int32_t>(found->second));
    return {};
  }
  thread_local std::vector<uint32_t> symbols;
  symbols.clear();
  for (const char byte : piece) symbols.push_back(byte_symbol_[static_cast<uint8_t>(byte)]);
  merges_.merge(symbols);
  if (found != by_bytes_.end())
    reached_[found->second].store(symbols.size() == 1 && symbols[0] == found->second ? kYes : kNo,
                                  std::memory_order_relaxed);
  for (const uint32_t symbol : symbols) SW_TRY(append_symbol(symbol, ids));
  return {};
}

Result<void> ByteBpeTokenizer::append_symbol(uint32_t symbol, std::vector<int32_t>& ids) const {
  if (symbol < vocabulary_.size()) {
    ids.push_back(static_cast<int32_t>(symbol));
    return {};
  }
  for (const char byte : parts_[symbol - vocabulary_.size()]) {
    const uint32_t single = byte_symbol_[static_cast<uint8_t>(byte)];
    if (single < vocabulary_.size()) {
      ids.push_back(static_cast<int32_t>(single));
    } else if (vocabulary_.ids().unk) {
      ids.push_back(static_cast<int32_t>(*vocabulary_.ids().unk));
    } else {
      return invalid(
          "the text holds the byte 0x{:02X}, for which the vocabulary has neither a token nor an unknown "
          "token",
          static_cast<uint8_t>(byte));
    }
  }
  return {};
}

}  // namespace text
}  // namespace spillway
