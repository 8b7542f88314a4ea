#include "text/sentence_piece.h"

#include <algorithm>
#include <utility>

#include "text/special_tokens.h"
#include "text/utf8.h"

namespace spillway {
namespace text {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581, for " "

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t position = 0;
  while ((position = text.find(from, position)) != std::string::npos) {
    text.replace(position, from.size(), to);
    position += to.size();
  }
}

std::vector<std::string> bytes_of_tokens(const Vocabulary& vocabulary) {
  std::vector<std::string> bytes(vocabulary.size());
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    bytes[id] = vocabulary.text(id);
    if (vocabulary.type(id) == TokenType::kByte) {
      bytes[id] = static_cast<char>(*byte_of_token(vocabulary.text(id)));
    } else if (vocabulary.type(id) == TokenType::kNormal || vocabulary.type(id) == TokenType::kUnused) {
      replace_all(bytes[id], kSpace, " ");
    }
  }
  return bytes;
}

// A byte that is no valid UTF-8 is a character of its own here, so that it joins nothing and comes out as a
// byte.
size_t character_length(std::string_view text) {
  const Utf8Step step = utf8_step(text);
  return step.status == Utf8Status::kComplete ? step.length : 1;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> SentencePieceTokenizer::create(Vocabulary vocabulary) {
  return std::unique_ptr<Tokenizer>(new SentencePieceTokenizer(std::move(vocabulary)));
}

SentencePieceTokenizer::SentencePieceTokenizer(Vocabulary vocabulary)
    : Tokenizer(std::move(vocabulary)), merges_(vocabulary_.size() * 2) {
  set_token_bytes(bytes_of_tokens(vocabulary_));
  index_pieces();
  vocabulary_.kind() == Vocabulary::Kind::kSentencePieceBpe ? index_scores() : index_merges();
}

bool SentencePieceTokenizer::is_piece(uint32_t id) const {
  const TokenType type = vocabulary_.type(id);
  return (type == TokenType::kNormal || type == TokenType::kUserDefined || type == TokenType::kUnused) &&
         !vocabulary_.text(id).empty();
}

void SentencePieceTokenizer::index_pieces() {
  byte_id_.fill(-1);
  symbols_.reserve(vocabulary_.size() * 2);
  for (uint32_t id = 0; id < vocabulary_.size(); ++id) {
    if (is_piece(id)) symbols_.emplace(vocabulary_.text(id), id);
    if (vocabulary_.type(id) == TokenType::kByte)
      byte_id_[*byte_of_token(vocabulary_.text(id))] = static_cast<int32_t>(id);
  }
  if (std::ranges::all_of(byte_id_, [](int32_t id) { return id < 0; })) {
    // Files whose converter wrote no types, or typed the byte tokens as normal ones.
    for (int byte = 0; byte < 256; ++byte)
      if (const auto id = vocabulary_.find(fmt::format("<0x{:02X}>", byte)))
        byte_id_[static_cast<size_t>(byte)] = static_cast<int32_t>(*id);
  }
  for (uint32_t id = 0; id < vocabulary_.size(); ++id) {
    if (!is_piece(id)) continue;
    const std::string_view text = vocabulary_.text(id);
    for (size_t at = text.find(kSpace, 1); at != std::string_view::npos; at = text.find(kSpace, at + 1)) {
      size_t before = at - 1;
      while (before > 0 && (static_cast<uint8_t>(text[before]) & 0xC0) == 0x80) --before;
      joins_space_.insert(text.substr(before, at - before));
    }
  }
}

uint32_t SentencePieceTokenizer::symbol_of(std::string_view text) {
  if (const auto found = symbols_.find(text); found != symbols_.end()) return found->second;
  const auto symbol = vocabulary_.size() + static_cast<uint32_t>(parts_.size());
  parts_.emplace_back(text);
  symbols_.emplace(parts_.back(), symbol);
  return symbol;
}

// All ways of making a token out of two symbols, with the token's place in the order of scores as the rank:
// tokens of equal score share one, so that the leftmost pair wins between them.
void SentencePieceTokenizer::index_scores() {
  std::vector<uint32_t> by_score;
  for (uint32_t id = 0; id < vocabulary_.size(); ++id)
    if (is_piece(id) && vocabulary_.find(vocabulary_.text(id)) == id) by_score.push_back(id);
  std::ranges::stable_sort(by_score, std::greater<>(), [&](uint32_t id) { return vocabulary_.score(id); });
  // Merging starts from characters: those inside tokens are symbols, tokens or not.
  for (const uint32_t id : by_score) {
    std::string_view text = vocabulary_.text(id);
    while (!text.empty()) {
      const size_t length = character_length(text);
      symbol_of(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  uint32_t rank = 0;
  for (size_t i = 0; i < by_score.size(); ++i) {
    const uint32_t id = by_score[i];
    if (i > 0 && vocabulary_.score(id) < vocabulary_.score(by_score[i - 1])) ++rank;
    const std::string_view text = vocabulary_.text(id);
    for (size_t cut = character_length(text); cut < text.size(); cut += character_length(text.substr(cut))) {
      const auto left = symbols_.find(text.substr(0, cut)), right = symbols_.find(text.substr(cut));
      if (left != symbols_.end() && right != symbols_.end())
        merges_.add(left->second, right->second, {rank, symbols_.find(text)->second});
    }
  }
}

void SentencePieceTokenizer::index_merges() {
  uint32_t rank = 0;
  std::string joined;
  for (const Merge& merge : vocabulary_.merges()) {
    joined.assign(merge.left).append(merge.right);
    const uint32_t left = symbol_of(merge.left), right = symbol_of(merge.right);
    merges_.add(left, right, {rank++, symbol_of(joined)});
  }
}

Result<void> SentencePieceTokenizer::encode_text(std::string_view text, bool after_special,
                                                 std::vector<int32_t>& ids) const {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 4 + 8);
  if (vocabulary_.add_space_prefix() && after_special) escaped += kSpace;
  for (const char c : text) {
    if (c == ' ')
      escaped += kSpace;
    else
      escaped += c;
  }
  std::string_view rest = escaped;
  while (!rest.empty()) {
    const size_t length = word_end(rest);
    SW_TRY(encode_word(rest.substr(0, length), ids));
    rest.remove_prefix(length);
  }
  return {};
}

// The end of the first stretch that no merge reaches out of: before a U+2581 that its neighbour never joins.
// Merges by rank never cross a newline either (the family's rule), and a run of newlines is a stretch of its
// own.
size_t SentencePieceTokenizer::word_end(std::string_view text) const {
  const bool by_rank = vocabulary_.kind() == Vocabulary::Kind::kSentencePieceRanks;
  const bool starts_with_newline = text[0] == '\n';
  size_t previous = 0;
  size_t position = character_length(text);
  while (position < text.size()) {
    if (by_rank && (text[position] == '\n') != starts_with_newline) return position;
    if (text.substr(position).starts_with(kSpace) &&
        !joins_space_.contains(text.substr(previous, position - previous)))
      return position;
    previous = position;
    position += character_length(text.substr(position));
  }
  return position;
}

Result<void> SentencePieceTokenizer::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
  // Characters that are part of no token stay out of the merging: kUnknown joins nothing.
  constexpr uint32_t kUnknown = (uint32_t{1} << 31) - 1;
  const bool by_rank = vocabulary_.kind() == Vocabulary::Kind::kSentencePieceRanks;
  if (by_rank && word[0] == '\n') {
    if (const auto found = symbols_.find(word);
        found != symbols_.end() && found->second < vocabulary_.size()) {
      ids.push_back(static_cast<int32_t>(found->second));
      return {};
    }
  }
  thread_local std::vector<uint32_t> symbols;
  symbols.clear();
  for (size_t at = 0; at < word.size();) {
    const size_t length = character_length(word.substr(at));
    const auto found = symbols_.find(word.substr(at, length));
    symbols.push_back(found == symbols_.end() ? kUnknown : found->second);
    at += length;
  }
  merges_.merge(symbols);
  bool in_unknown = false;
  size_t at = 0;
  for (const uint32_t symbol : symbols) {
    if (symbol < vocabulary_.size()) {
      at += vocabulary_.text(symbol).size();
      ids.push_back(static_cast<int32_t>(symbol));
      in_unknown = false;
      continue;
    }
    const size_t length =
        symbol == kUnknown ? character_length(word.substr(at)) : parts_[symbol - vocabulary_.size()].size();
    SW_TRY(append_bytes(word.substr(at, length), in_unknown, ids));
    at += length;
  }
  return {};
}

Result<void> SentencePieceTokenizer::append_bytes(std::string_view bytes, bool& in_unknown,
                                                  std::vector<int32_t>& ids) const {
  const bool all_have_tokens =
      std::ranges::all_of(bytes, [&](char byte) { return byte_id_[static_cast<uint8_t>(byte)] >= 0; });
  if (all_have_tokens) {
    for (const char byte : bytes) ids.push_back(byte_id_[static_cast<uint8_t>(byte)]);
    in_unknown = false;
    return {};
  }
  if (!vocabulary_.ids().unk)
    return invalid(
        "the text holds the character '{}', for which the vocabulary has neither a token, byte tokens nor an "
        "unknown token",
        bytes);
  if (!in_unknown) ids.push_back(static_cast<int32_t>(*vocabulary_.ids().unk));
  in_unknown = true;
  return {};
}

}  // namespace text
}  // namespace spillway
