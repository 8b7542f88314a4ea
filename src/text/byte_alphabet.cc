#include "text/byte_alphabet.h"

#include "text/utf8.h"

namespace spillway {
namespace text {
namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr uint16_t kNoByte = 0xFFFF;

struct Alphabet {
  std::array<uint16_t, 256> character{};
  std::array<uint16_t, 0x144> byte{};

  constexpr Alphabet() {
    byte.fill(kNoByte);
    uint16_t next = 0x100;
    for (uint16_t b = 0; b < 256; ++b) {
      character[b] = stands_for_itself(b) ? b : next++;
      byte[character[b]] = b;
    }
  }
};
constexpr Alphabet kAlphabet;
static_assert(kAlphabet.character[' '] == 0x120 && kAlphabet.character[0xAD] == 0x143);

}  // namespace

const std::array<uint16_t, 256>& byte_alphabet() { return kAlphabet.character; }

std::optional<std::string> bytes_from_alphabet(std::string_view token_text) {
  std::string bytes;
  while (!token_text.empty()) {
    const Utf8Step step = utf8_step(token_text);
    if (step.status != Utf8Status::kComplete) return std::nullopt;
    const uint32_t character = utf8_code_point(token_text);
    if (character >= kAlphabet.byte.size() || kAlphabet.byte[character] == kNoByte) return std::nullopt;
    bytes.push_back(static_cast<char>(kAlphabet.byte[character]));
    token_text.remove_prefix(step.length);
  }
  return bytes;
}

}  // namespace text
}  // namespace spillway
