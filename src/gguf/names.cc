#include "gguf/names.h"

#include <cstdint>

#include "base/limits.h"

namespace spillway::gguf {
namespace {

// Bytes of the UTF-8 character at text[i] (RFC 3629: no overlong forms, no surrogates, up to U+10FFFF), 0 if
// invalid.
size_t character_bytes(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return k < text.size() ? static_cast<uint8_t>(text[k]) : 0u; };
  const uint32_t lead = byte(i);
  if (lead < 0x80) return 1;
  const size_t n = lead >= 0xc2 && lead <= 0xdf   ? 2
                   : lead >= 0xe0 && lead <= 0xef ? 3
                   : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                  : 0;
  for (size_t k = 1; k < n; ++k)
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
  const uint32_t second = byte(i + 1);
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0)) return 0;
  if ((lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90)) return 0;
  return n;
}

bool is_control(std::string_view text, size_t i, size_t n) {
  const uint8_t lead = static_cast<uint8_t>(text[i]);
  if (n == 1) return lead < 0x20 || lead == 0x7f;
  return n == 2 && lead == 0xc2 && static_cast<uint8_t>(text[i + 1]) < 0xa0;  // U+0080 to U+009F
}

}  // namespace

std::string quoted(std::string_view text) {
  constexpr size_t kShownBytes = 80;
  std::string out = "'";
  size_t i = 0;
  while (i < text.size() && i < kShownBytes) {
    const size_t n = character_bytes(text, i);
    if (n == 0 || is_control(text, i, n)) {
      for (size_t k = 0; k < (n == 0 ? 1 : n); ++k)
        out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[i + k]));
      i += n == 0 ? 1 : n;
    } else {
      out += text.substr(i, n);
      i += n;
    }
  }
  return out + (i < text.size() ? "...'" : "'");
}

Result<void> check_name(std::string_view name, std::string_view what) {
  if (name.empty()) return invalid("{} is empty; it needs at least one character", what);
  if (name.size() > limits::kMaxNameBytes)
    return invalid("{} ({}) has {} bytes; at most {} are allowed", what, quoted(name), name.size(),
                   limits::kMaxNameBytes);
  for (size_t i = 0; i < name.size();) {
    const size_t n = character_bytes(name, i);
    if (n == 0)
      return invalid("{} ({}) is not valid UTF-8 at byte {}; the file is damaged", what, quoted(name), i);
    if (is_control(name, i, n))
      return invalid("{} ({}) has a control character at byte {}; the file is damaged", what, quoted(name),
                     i);
    i += n;
  }
  return {};
}

}  // namespace spillway::gguf
