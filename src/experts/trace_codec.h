// The bytes of a trace: unsigned numbers in 7-bit groups, least significant first (LEB128), doubles as their
// 8 bytes, little-endian, texts as length and bytes.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spillway {
namespace experts {

static_assert(std::endian::native == std::endian::little, "doubles are copied as they lie");

inline constexpr std::string_view kTraceMagic = "SPWT";

class TraceEncoder {
 public:
  explicit TraceEncoder(std::vector<std::byte>& bytes) : bytes_(bytes) {}
  void number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::byte>(value | 0x80));
    bytes_.push_back(static_cast<std::byte>(value));
  }
  void real(double value) {
    const auto raw = std::bit_cast<std::array<std::byte, sizeof(double)>>(value);
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  void text(std::string_view value) {
    number(value.size());
    const auto raw = std::as_bytes(std::span(value));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }

 private:
  std::vector<std::byte>& bytes_;
};

class TraceDecoder {
 public:
  explicit TraceDecoder(std::span<const std::byte> bytes) : bytes_(bytes) {}
  size_t position() const { return position_; }
  bool at_end() const { return position_ == bytes_.size(); }
  bool ran_out() const { return ran_out_; }  // the last error was for want of bytes

  // A number of at most `most`. `what` names it in errors.
  Result<uint64_t> number(uint64_t most, std::string_view what) {
    uint64_t value = 0;
    const size_t start = position_;
    for (uint32_t shift = 0;; shift += 7) {
      if (at_end()) return too_short(what);
      const auto byte = static_cast<uint64_t>(bytes_[position_++]);
      // The tenth byte holds the 64th bit alone.
      if (shift == 63 && byte > 1) return invalid("trace: {} at byte {} has more than 64 bits", what, start);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    if (value > most)
      return invalid("trace: {} at byte {} is {}; at most {} is allowed", what, start, value, most);
    return value;
  }
  Result<double> real(std::string_view what) {
    if (bytes_.size() - position_ < sizeof(double)) return too_short(what);
    double value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(double));
    if (!(value >= -1e300 && value <= 1e300))
      return invalid("trace: {} at byte {} is {}; a number is needed", what, position_, value);
    position_ += sizeof(double);
    return value;
  }
  Result<std::string> text(uint64_t most, std::string_view what) {
    SW_ASSIGN(const uint64_t length, number(most, what));
    if (bytes_.size() - position_ < length) return too_short(what);
    std::string value(reinterpret_cast<const char*>(bytes_.data() + position_), length);
    position_ += length;
    return value;
  }

 private:
  std::unexpected<Error> too_short(std::string_view what) {
    ran_out_ = true;
    return invalid("trace: it ends at byte {}, in {}", bytes_.size(), what);
  }

  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  bool ran_out_ = false;
};

}  // namespace experts
}  // namespace spillway
