#include "text/utf8.h"

namespace spillway {
namespace text {
namespace {

uint8_t byte_at(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

}  // namespace

Utf8Step utf8_step(std::string_view text) {
  const uint8_t first = byte_at(text, 0);
  if (first < 0x80) return {Utf8Status::kComplete, 1};
  // Table 3-7: only the second byte's range depends on the first byte.
  size_t length = 0;
  uint8_t low = 0x80, high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return {Utf8Status::kInvalid, 1};
  }
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Utf8Status::kIncomplete, i};
    const uint8_t next = byte_at(text, i);
    if (next < low || next > high) return {Utf8Status::kInvalid, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Status::kComplete, length};
}

size_t utf8_valid_length(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    if (byte_at(text, position) < 0x80) {
      ++position;
      continue;
    }
    const Utf8Step step = utf8_step(text.substr(position));
    if (step.status != Utf8Status::kComplete) break;
    position += step.length;
  }
  return position;
}

uint32_t utf8_code_point(std::string_view text) {
  const uint8_t first = byte_at(text, 0);
  if (first < 0x80) return first;
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  uint32_t code_point = first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) code_point = code_point << 6 | (byte_at(text, i) & 0x3Fu);
  return code_point;
}

void append_utf8(uint32_t code_point, std::string& out) {
  const auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

}  // namespace text
}  // namespace spillway
