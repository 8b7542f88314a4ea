#include "text/template/utf8.h"

#include <algorithm>
#include <iterator>

namespace spillway {
namespace jinja {
namespace {

struct Range {
  char32_t first, last;
};
struct Mapping {
  char32_t first, last;
  int stride;
  int delta;
};
struct Expansion {
  char32_t from;
  const char* to;
};

#include "text/template/unicode_tables.inc"

template <class T, size_t N>
const T* entry_of(const T (&table)[N], char32_t c) {
  const T* at = std::upper_bound(std::begin(table), std::end(table), c,
                                 [](char32_t value, const T& entry) { return value < entry.first; });
  if (at == std::begin(table)) return nullptr;
  --at;
  return c <= at->last ? at : nullptr;
}

template <size_t N, size_t M>
void append_mapped(std::string& out, char32_t c, const Mapping (&table)[N],
                   const Expansion (&expansions)[M]) {
  if (c >= 0x80) {
    for (const Expansion& e : expansions)
      if (e.from == c) {
        out += e.to;
        return;
      }
  }
  const Mapping* at = entry_of(table, c);
  if (at && (c - at->first) % at->stride == 0) c = static_cast<char32_t>(static_cast<int>(c) + at->delta);
  utf8_append(out, c);
}

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }

// Sigma is written ς at the end of a word: a cased letter before it and none after it, marks passed over.
bool sigma_is_final(std::string_view text, size_t before, size_t after) {
  bool letter_before = false;
  for (size_t end = before; end > 0;) {
    size_t start = utf8_before(text, end);
    end = start;
    const char32_t c = utf8_next(text, start);
    if (entry_of(kCaseIgnorable, c)) continue;
    letter_before = is_cased(c);
    break;
  }
  if (!letter_before) return false;
  while (after < text.size()) {
    const char32_t c = utf8_next(text, after);
    if (entry_of(kCaseIgnorable, c)) continue;
    return !is_cased(c);
  }
  return true;
}

void append_lower(std::string& out, std::string_view text, size_t start, size_t after, char32_t c) {
  if (c == 0x3A3) {
    utf8_append(out, sigma_is_final(text, start, after) ? 0x3C2 : 0x3C3);
  } else {
    append_mapped(out, c, kToLower, kToLowerExpansions);
  }
}

}  // namespace

bool utf8_valid(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80   ? 1
                          : lead < 0xC2 ? 0
                          : lead < 0xE0 ? 2
                          : lead < 0xF0 ? 3
                          : lead < 0xF5 ? 4
                                        : 0;
    if (length == 0 || i + length > text.size()) return false;
    char32_t c = length == 1 ? lead : lead & (0x7F >> length);
    for (size_t k = 1; k < length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      if ((byte & 0xC0) != 0x80) return false;
      c = (c << 6) | (byte & 0x3F);
    }
    if ((length == 3 && c < 0x800) || (length == 4 && (c < 0x10000 || c > 0x10FFFF)) ||
        (c >= 0xD800 && c < 0xE000))
      return false;
    i += length;
  }
  return true;
}

size_t utf8_length(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

size_t utf8_offset(std::string_view text, size_t index) {
  size_t at = 0;
  while (at < text.size()) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) {
      if (index == 0) return at;
      --index;
    }
    ++at;
  }
  return at;
}

char32_t utf8_next(std::string_view text, size_t& offset) {
  const auto lead = static_cast<unsigned char>(text[offset++]);
  if (lead < 0x80) return lead;
  const int more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  char32_t c = lead & (0x3F >> more);
  for (int k = 0; k < more && offset < text.size(); ++k)
    c = (c << 6) | (static_cast<unsigned char>(text[offset++]) & 0x3F);
  return c;
}

size_t utf8_before(std::string_view text, size_t end) {
  do --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

void utf8_append(std::string& out, char32_t c) {
  const auto byte = [&](char32_t b) { out.push_back(static_cast<char>(b)); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xC0 | (c >> 6)), byte(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    byte(0xE0 | (c >> 12)), byte(0x80 | ((c >> 6) & 0x3F)), byte(0x80 | (c & 0x3F));
  } else {
    byte(0xF0 | (c >> 18)), byte(0x80 | ((c >> 12) & 0x3F)), byte(0x80 | ((c >> 6) & 0x3F)),
        byte(0x80 | (c & 0x3F));
  }
}

bool is_space(char32_t c) { return entry_of(kSpace, c); }
bool is_alpha(char32_t c) { return entry_of(kAlpha, c); }
bool is_decimal(char32_t c) { return entry_of(kDecimal, c); }
bool is_digit(char32_t c) { return entry_of(kDigit, c); }
bool is_numeric(char32_t c) { return entry_of(kNumeric, c); }
bool is_upper(char32_t c) { return entry_of(kUpper, c); }
bool is_lower(char32_t c) { return entry_of(kLower, c); }
bool is_title(char32_t c) { return entry_of(kTitle, c); }
bool is_printable(char32_t c) { return !entry_of(kUnprintable, c); }

std::string to_upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) append_mapped(out, utf8_next(text, i), kToUpper, kToUpperExpansions);
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = utf8_next(text, i);
    append_lower(out, text, start, i, c);
  }
  return out;
}

std::string to_title(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool inside = false;  // the previous character was a cased letter
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = utf8_next(text, i);
    if (inside) {
      append_lower(out, text, start, i, c);
    } else {
      append_mapped(out, c, kToTitle, kToTitleExpansions);
    }
    inside = is_cased(c);
  }
  return out;
}

std::string to_capitalized(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = utf8_next(text, i);
    if (start == 0) {
      append_mapped(out, c, kToTitle, kToTitleExpansions);
    } else {
      append_lower(out, text, start, i, c);
    }
  }
  return out;
}

std::string to_swapcase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = utf8_next(text, i);
    if (is_upper(c)) {
      append_lower(out, text, start, i, c);
    } else if (is_lower(c)) {
      append_mapped(out, c, kToUpper, kToUpperExpansions);
    } else {
      utf8_append(out, c);
    }
  }
  return out;
}

}  // namespace jinja
}  // namespace spillway
