// Reads little-endian fields from the first bytes of a file, telling apart a file that is too short (an
// error) and a prefix that is too short (more bytes are needed).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/assert.h"
#include "base/result.h"

namespace spillway::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF fields are copied as they lie");

class Cursor {
 public:
  // Requires: prefix.size() <= file_bytes.
  Cursor(std::span<const std::byte> prefix, uint64_t file_bytes) : prefix_(prefix), file_bytes_(file_bytes) {
    SW_ASSERT(prefix.size() <= file_bytes);
  }

  uint64_t position() const { return position_; }
  uint64_t left_in_file() const { return file_bytes_ - position_; }
  uint64_t left_in_prefix() const { return prefix_.size() - position_; }
  uint64_t need_bytes() const { return need_bytes_; }  // set when a take failed for want of prefix only

  // The next n bytes. `what` names them in the error. Views live as long as the prefix.
  Result<std::span<const std::byte>> take(uint64_t n, std::string_view what) {
    if (n > left_in_prefix()) [[unlikely]]
      return too_short(n, what);
    const auto bytes = prefix_.subspan(position_, n);
    position_ += n;
    return bytes;
  }

  template <class T>
  Result<T> number(std::string_view what) {
    if (sizeof(T) > left_in_prefix()) [[unlikely]]
      return too_short(sizeof(T), what);
    T value;
    std::memcpy(&value, prefix_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  // A string: its length as uint64, then its bytes.
  Result<std::string_view> text(std::string_view what) {
    SW_ASSIGN(const uint64_t length, number<uint64_t>(what));
    SW_ASSIGN(const auto bytes, take(length, what));
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

 private:
  std::unexpected<Error> too_short(uint64_t n, std::string_view what) {
    if (n > left_in_file())
      return invalid(
          "the file ends at byte {}, but {} at byte {} needs {} bytes; it is damaged or was not copied in "
          "full",
          file_bytes_, what, position_, n);
    need_bytes_ = position_ + n;
    return invalid("the header goes on past the first {} bytes of the file", prefix_.size());
  }

  std::span<const std::byte> prefix_;
  uint64_t file_bytes_;
  uint64_t position_ = 0;
  uint64_t need_bytes_ = 0;
};

}  // namespace spillway::gguf
