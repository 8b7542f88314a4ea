// Builds GGUF bytes field by field, so that a test can write what the real writer refuses to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "gguf/reader.h"

namespace spillway::gguf {

class RawFile {
 public:
  RawFile& text(std::string_view value) { return number(uint64_t{value.size()}).raw(value); }
  RawFile& raw(std::string_view value) {
    const auto bytes = std::as_bytes(std::span(value));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  template <class T>
  RawFile& number(T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  RawFile& start(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    return raw("GGUF").number(version).number(tensors).number(keys);
  }
  RawFile& key(std::string_view name, ValueType type) {
    return text(name).number(static_cast<uint32_t>(type));
  }
  RawFile& tensor(std::string_view name, std::vector<uint64_t> dims, uint32_t type, uint64_t offset) {
    text(name).number(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) number(dim);
    return number(type).number(offset);
  }
  RawFile& pad(size_t alignment = 32) {
    while (bytes_.size() % alignment != 0) bytes_.push_back(std::byte{0});
    return *this;
  }
  RawFile& data(size_t n) {
    bytes_.resize(bytes_.size() + n, std::byte{0x5a});
    return *this;
  }

  const std::vector<std::byte>& bytes() const { return bytes_; }
  Result<Header> parse() const { return parse_header(bytes_, bytes_.size()); }

 private:
  std::vector<std::byte> bytes_;
};

// The message of a failure, or "(no error)".
template <class T>
std::string message(const Result<T>& result) {
  return result ? "(no error)" : result.error().message;
}

}  // namespace spillway::gguf

// The result must be an error whose message holds `part`.
#define EXPECT_ERROR(result, part)                                                    \
  do {                                                                                \
    const std::string sw_message = ::spillway::gguf::message(result);                 \
    EXPECT_NE(sw_message.find(part), std::string::npos) << "message: " << sw_message; \
  } while (false)
