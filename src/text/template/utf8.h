// UTF-8 by code points, and what Python's str knows of characters (unicode_tables.inc, Unicode 14).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway {
namespace jinja {

bool utf8_valid(std::string_view text);
// Code points. Requires for this and all below: valid UTF-8.
size_t utf8_length(std::string_view text);
// Byte offset of code point `index`, or text.size() past the end.
size_t utf8_offset(std::string_view text, size_t index);
// Decodes the code point at `offset` and moves `offset` past it. Requires: offset < text.size().
char32_t utf8_next(std::string_view text, size_t& offset);
// Start of the code point that ends at `end`. Requires: end > 0.
size_t utf8_before(std::string_view text, size_t end);
void utf8_append(std::string& out, char32_t c);

bool is_space(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
inline bool is_alnum(char32_t c) { return is_alpha(c) || is_numeric(c) || is_digit(c) || is_decimal(c); }
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);
bool is_printable(char32_t c);

// str.upper() and so on, with the letters that become several (ß) and Greek's final sigma.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);
std::string to_capitalized(std::string_view text);
std::string to_swapcase(std::string_view text);

}  // namespace jinja
}  // namespace spillway
