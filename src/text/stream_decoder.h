// Token ids to text while they are made: every piece ends at a whole character, and the pieces joined are
// what the finished text is. A byte that can no longer become part of a character is replaced by U+FFFD, one
// for each maximal part of a character (the practice that the Unicode Standard recommends, section 3.9), as
// soon as that is certain.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace spillway {
namespace text {

// The bytes of decode() as valid UTF-8: what the pieces of a StreamDecoder add up to.
std::string to_valid_utf8(std::string_view bytes);

// Not thread safe: one a stream. Requires: the tokenizer outlives it.
class StreamDecoder {
 public:
  struct Options {
    bool skip_special = true;
  };
  explicit StreamDecoder(const Tokenizer& tokenizer) : StreamDecoder(tokenizer, Options()) {}
  StreamDecoder(const Tokenizer& tokenizer, Options options) : tokenizer_(&tokenizer), options_(options) {}

  // The text that `id` completes; empty while a character is incomplete, and for an id that shows nothing.
  std::string push(int32_t id);

  // What is held is given out, replaced where it is no character; the decoder is then as new.
  std::string finish();

  // Bytes waiting for the rest of their character: 0 to 3.
  size_t held_bytes() const { return held_.size(); }

 private:
  const Tokenizer* tokenizer_;
  Options options_;
  std::string held_;
  bool drop_space_ = false;  // a stream follows earlier text (DecodeOptions::continuation)
};

}  // namespace text
}  // namespace spillway
