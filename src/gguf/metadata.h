// The key-value part of a GGUF file: an ordered map of names to typed values, with checked getters. What a
// model needs is asked for by key, and an answer of the wrong type, size or range is an error that names the
// key, what was found and what is needed.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace spillway::gguf {

// The format's type ids.
enum class ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
inline constexpr uint32_t kValueTypes = 13;

std::string_view value_type_name(ValueType type);  // "uint32"

// Bytes of one value in the file; 0 for strings and arrays, which have no fixed size.
uint32_t value_type_bytes(ValueType type);

namespace detail {
template <class T>
constexpr std::optional<ValueType> scalar_type() {
  if constexpr (std::same_as<T, bool>) return ValueType::kBool;
  if constexpr (std::same_as<T, uint8_t>) return ValueType::kUint8;
  if constexpr (std::same_as<T, int8_t>) return ValueType::kInt8;
  if constexpr (std::same_as<T, uint16_t>) return ValueType::kUint16;
  if constexpr (std::same_as<T, int16_t>) return ValueType::kInt16;
  if constexpr (std::same_as<T, uint32_t>) return ValueType::kUint32;
  if constexpr (std::same_as<T, int32_t>) return ValueType::kInt32;
  if constexpr (std::same_as<T, uint64_t>) return ValueType::kUint64;
  if constexpr (std::same_as<T, int64_t>) return ValueType::kInt64;
  if constexpr (std::same_as<T, float>) return ValueType::kFloat32;
  if constexpr (std::same_as<T, double>) return ValueType::kFloat64;
  return std::nullopt;
}
}  // namespace detail

// A C++ type that is one of the format's scalars.
template <class T>
concept Scalar = detail::scalar_type<T>().has_value();

// Many strings in one buffer: a vocabulary has up to 300,000 of them.
class StringArray {
 public:
  size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  // Requires: i < size(). Lives as long as the array is neither changed nor destroyed; a move keeps it.
  std::string_view operator[](size_t i) const {
    const uint64_t begin = i == 0 ? 0 : ends_[i - 1];
    return {bytes_.data() + begin, static_cast<size_t>(ends_[i] - begin)};
  }
  void push_back(std::string_view text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    ends_.push_back(bytes_.size());
  }
  void reserve(size_t strings, size_t bytes) { ends_.reserve(strings), bytes_.reserve(bytes); }
  bool operator==(const StringArray&) const = default;

 private:
  std::vector<char> bytes_;
  std::vector<uint64_t> ends_;
};

// An array value. Scalars are packed as in the file (little-endian, no gaps).
struct Array {
  ValueType element = ValueType::kUint8;
  std::variant<std::vector<std::byte>, StringArray, std::vector<Array>> items;

  uint64_t size() const;
  bool operator==(const Array&) const = default;

  template <Scalar T>
    requires(!std::same_as<T, bool>)
  static Array of(std::span<const T> values) {
    const std::span<const std::byte> bytes = std::as_bytes(values);
    return {*detail::scalar_type<T>(), std::vector<std::byte>(bytes.begin(), bytes.end())};
  }
  template <Scalar T>
    requires(!std::same_as<T, bool>)
  static Array of(const std::vector<T>& values) {
    return of(std::span<const T>(values));
  }
  static Array of(const std::vector<bool>& values);
  static Array of(std::span<const std::string> values);
  static Array of(const std::vector<std::string>& values) { return of(std::span<const std::string>(values)); }
  static Array of(std::vector<Array> values) { return {ValueType::kArray, std::move(values)}; }
};

// One value with its type.
class Value {
 public:
  // Implicit, so that `metadata.set("qwen3moe.block_count", uint32_t{48})` reads as it should. The C++ type
  // decides the type in the file.
  template <Scalar T>
  Value(T value) : type_(*detail::scalar_type<T>()) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(value));
    data_ = bits;
  }
  Value(std::string text) : type_(ValueType::kString), data_(std::move(text)) {}
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(Array array) : type_(ValueType::kArray), data_(std::move(array)) {}

  // A scalar of `type` from its bytes in the file. Requires: bytes.size() == value_type_bytes(type) > 0.
  static Value from_bytes(ValueType type, std::span<const std::byte> bytes);

  ValueType type() const { return type_; }
  std::string type_name() const;  // "uint32", "array of string"

  // The value where it is of that kind, else nothing.
  std::optional<uint64_t> as_uint() const;  // any integer type, >= 0
  std::optional<int64_t> as_int() const;    // any integer type that fits
  std::optional<double> as_float() const;   // float32 and float64
  std::optional<bool> as_bool() const;
  const std::string* as_string() const { return std::get_if<std::string>(&data_); }
  const Array* as_array() const { return std::get_if<Array>(&data_); }

  // The value's bits, zero-extended. Requires: a scalar.
  uint64_t bits() const { return std::get<uint64_t>(data_); }

  // For people and logs: long strings and arrays are cut.
  std::string to_text(size_t max_items = 8) const;

  bool operator==(const Value&) const = default;

 private:
  Value() = default;
  ValueType type_ = ValueType::kUint8;
  std::variant<uint64_t, std::string, Array> data_;
};

// Keys in the order of the file. Views and pointers that the getters return live until the map is changed or
// destroyed; a move keeps them.
//
// Getters: `find_*` give nothing (or null) where the key is absent, `require_*` an error of kind kNotFound;
// both give an error of kind kInvalid where the key is there with a wrong type, a wrong size or out of range.
class Metadata {
 public:
  struct Entry {
    std::string key;
    Value value;
    bool operator==(const Entry&) const = default;
  };

  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  const Value* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  // Adds the key at the end, or replaces its value in place.
  void set(std::string_view key, Value value);
  void erase(std::string_view key);

  // Integers: every width and both signs are taken, if 0 <= value <= max.
  Result<std::optional<uint64_t>> find_uint(std::string_view key, uint64_t max) const;
  Result<uint64_t> require_uint(std::string_view key, uint64_t max) const;

  // Finite numbers. float32 and float64; integers too, since 10000 can only mean 10000.0.
  Result<std::optional<double>> find_float(std::string_view key) const;
  Result<double> require_float(std::string_view key) const;

  // Type bool only.
  Result<std::optional<bool>> find_bool(std::string_view key) const;

  Result<std::optional<std::string_view>> find_string(std::string_view key) const;
  Result<std::string_view> require_string(std::string_view key) const;

  // Arrays. The element type is checked before anything is read.
  Result<const StringArray*> find_string_array(std::string_view key) const;
  Result<const StringArray*> require_string_array(std::string_view key) const;
  // float32 elements only (NaN and infinities pass: scores may hold them).
  Result<std::optional<std::vector<float>>> find_float_array(std::string_view key) const;
  // int32, uint32, int64 or uint64 elements, each within int32.
  Result<std::optional<std::vector<int32_t>>> find_int_array(std::string_view key) const;
  // bool elements only.
  Result<std::optional<std::vector<bool>>> find_bool_array(std::string_view key) const;

  // A number that some models give once and others per layer: exactly `count` values, a single one repeated.
  Result<std::optional<std::vector<uint64_t>>> find_uint_or_array(std::string_view key, uint64_t count,
                                                                  uint64_t max) const;

  bool operator==(const Metadata& other) const { return entries_ == other.entries_; }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> index_;
};

}  // namespace spillway::gguf
