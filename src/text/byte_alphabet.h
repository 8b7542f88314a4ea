// The alphabet in which byte-level vocabularies write bytes: printable Latin-1 characters stand for
// themselves, the other 68 bytes, in order, for U+0100 onwards (GPT-2's encoder; a space is U+0120, a newline
// U+010A).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway {
namespace text {

// The character of each byte, as a code point: all below U+0144.
const std::array<uint16_t, 256>& byte_alphabet();

// The bytes that `token_text` stands for, or nothing where it holds a character outside the alphabet.
std::optional<std::string> bytes_from_alphabet(std::string_view token_text);

}  // namespace text
}  // namespace spillway
