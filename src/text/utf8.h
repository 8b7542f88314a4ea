// UTF-8, byte by byte, as the Unicode Standard defines it (table 3-7): no overlong forms, no surrogates,
// nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spillway {
namespace text {

enum class Utf8Status {
  kComplete,    // `length` bytes are a character
  kIncomplete,  // the text ends inside what may become a character: `length` bytes, all that is left
  kInvalid,  // `length` bytes (at least 1) can't be part of any: a maximal part, or a byte that starts none
};

struct Utf8Step {
  Utf8Status status;
  size_t length;
};

// What stands at the start of `text`. Requires: text is not empty.
Utf8Step utf8_step(std::string_view text);

// Length of the longest start of `text` that is valid and whole.
size_t utf8_valid_length(std::string_view text);

// The code point of the whole character at the start of `text`. Requires: utf8_step(text) is kComplete.
uint32_t utf8_code_point(std::string_view text);

void append_utf8(uint32_t code_point, std::string& out);

}  // namespace text
}  // namespace spillway
