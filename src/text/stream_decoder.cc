#include "text/stream_decoder.h"

#include "text/utf8.h"

namespace spillway {
namespace text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Moves everything from `bytes` to `text` but for the start of a character at the end.
void take_characters(std::string& bytes, std::string& text) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const size_t valid = utf8_valid_length(rest);
    text += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    const Utf8Step step = utf8_step(rest);
    if (step.status == Utf8Status::kIncomplete) break;
    text += kReplacement;
    rest.remove_prefix(step.length);
  }
  bytes.erase(0, bytes.size() - rest.size());
}

}  // namespace

std::string to_valid_utf8(std::string_view bytes) {
  std::string rest(bytes), text;
  take_characters(rest, text);
  if (!rest.empty()) text += kReplacement;
  return text;
}

std::string StreamDecoder::push(int32_t id) {
  const Vocabulary& vocabulary = tokenizer_->vocabulary();
  const std::string_view bytes = tokenizer_->next_bytes(id, drop_space_);
  if (bytes.empty()) return {};
  if (options_.skip_special && vocabulary.is_hidden(static_cast<uint32_t>(id))) return {};
  held_ += bytes;
  std::string text;
  take_characters(held_, text);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text = to_valid_utf8(held_);
  held_.clear();
  drop_space_ = false;
  return text;
}

}  // namespace text
}  // namespace spillway
