#include "text/tokenizer.h"

#include <utility>

#include "base/limits.h"
#include "text/byte_bpe.h"
#include "text/sentence_piece.h"
#include "text/special_matcher.h"

namespace spillway {
namespace text {
namespace {

SpecialMatcher matcher_for(const Vocabulary& vocabulary, bool with_control) {
  std::vector<std::pair<std::string_view, uint32_t>> texts;
  for (uint32_t id = 0; id < vocabulary.size(); ++id)
    if (vocabulary.type(id) == TokenType::kUserDefined || (with_control && vocabulary.is_control(id)))
      texts.emplace_back(vocabulary.text(id), id);
  return SpecialMatcher(std::move(texts));
}

}  // namespace

struct Tokenizer::Parts {
  SpecialMatcher always, with_control;
};

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(Vocabulary vocabulary, TokenizerOptions options) {
  if (vocabulary.kind() == Vocabulary::Kind::kByteLevelBpe)
    return ByteBpeTokenizer::create(std::move(vocabulary), std::move(options));
  return SentencePieceTokenizer::create(std::move(vocabulary));
}

Tokenizer::Tokenizer(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)),
      warnings_(vocabulary_.warnings()),
      parts_(std::make_shared<Parts>(matcher_for(vocabulary_, false), matcher_for(vocabulary_, true))) {}

void Tokenizer::set_token_bytes(std::vector<std::string> bytes) { token_bytes_ = std::move(bytes); }

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > limits::kMaxTextBytes)
    return invalid("the text has {} bytes; at most {} can be encoded at once", text.size(),
                   limits::kMaxTextBytes);
  const SpecialMatcher& matcher = options.parse_special ? parts_->with_control : parts_->always;
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4 + 2);
  if (options.add_special && vocabulary_.add_bos())
    ids.push_back(static_cast<int32_t>(*vocabulary_.ids().bos));
  bool after_special = true;
  size_t done = 0;
  while (done < text.size()) {
    const auto match = matcher.find(text, done);
    const size_t stretch_end = match ? match->position : text.size();
    if (stretch_end > done) SW_TRY(encode_text(text.substr(done, stretch_end - done), after_special, ids));
    done = stretch_end;
    after_special = false;
    if (!match) break;
    ids.push_back(static_cast<int32_t>(match->id));
    done += match->length;
    after_special = true;
  }
  if (options.add_special && vocabulary_.add_eos())
    ids.push_back(static_cast<int32_t>(*vocabulary_.ids().eos));
  return ids;
}

Result<std::string> Tokenizer::decode(std::span<const int32_t> ids, DecodeOptions options) const {
  std::string text;
  bool drop_space = vocabulary_.add_space_prefix() && !options.continuation;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<uint32_t>(ids[i]) >= vocabulary_.size())
      return invalid("token {} of {} has id {}; the vocabulary has {} tokens", i, ids.size(), ids[i],
                     vocabulary_.size());
    const std::string_view bytes = next_bytes(ids[i], drop_space);
    if (options.skip_special && vocabulary_.is_hidden(static_cast<uint32_t>(ids[i]))) continue;
    text += bytes;
  }
  return text;
}

std::string_view Tokenizer::next_bytes(int32_t id, bool& drop_space) const {
  std::string_view bytes = token_bytes(id);
  const auto index = static_cast<uint32_t>(id);
  if (bytes.empty() && index >= vocabulary_.size()) return {};
  if (vocabulary_.is_control(index) || vocabulary_.type(index) == TokenType::kUserDefined) {
    drop_space = vocabulary_.add_space_prefix();  // encode put one after it
    return bytes;
  }
  if (drop_space && bytes.starts_with(' ')) bytes.remove_prefix(1);
  drop_space = false;
  return bytes;
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= token_bytes_.size()) return {};
  return token_bytes_[static_cast<size_t>(id)];
}

}  // namespace text
}  // namespace spillway
