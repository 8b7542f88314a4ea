#include "base/checked.h"
#include "base/limits.h"
#include "gguf/cursor.h"
#include "gguf/format.h"

namespace spillway::gguf {
namespace {

Result<ValueType> read_type(Cursor& cursor) {
  SW_ASSIGN(const uint32_t id, cursor.number<uint32_t>("a value type"));
  if (id >= kValueTypes)
    return invalid(
        "value type {} is not known; types go from 0 to {}: the file is damaged, or newer than this program",
        id, kValueTypes - 1);
  return static_cast<ValueType>(id);
}

Result<void> check_bools(std::span<const std::byte> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] > std::byte{1})
      return invalid("a bool is {}; it needs to be 0 or 1", static_cast<uint32_t>(bytes[i]));
  return {};
}

// Least bytes that one element takes in the file: a string has a length, an array a type and a length.
uint32_t least_bytes(ValueType type) {
  if (type == ValueType::kString) return 8;
  if (type == ValueType::kArray) return 12;
  return value_type_bytes(type);
}

Result<Array> read_array(Cursor& cursor, uint32_t depth);

Result<StringArray> read_strings(Cursor& cursor, uint64_t count) {
  StringArray strings;
  // The count is only a claim until the bytes are there: reserve by what the prefix can hold.
  strings.reserve(std::min(count, cursor.left_in_prefix() / 8), 0);
  for (uint64_t i = 0; i < count; ++i) {
    SW_ASSIGN(const std::string_view text, cursor.text("a string of an array"));
    strings.push_back(text);
  }
  return strings;
}

Result<std::vector<Array>> read_arrays(Cursor& cursor, uint64_t count, uint32_t depth) {
  std::vector<Array> arrays;
  for (uint64_t i = 0; i < count; ++i) {
    SW_ASSIGN(Array array, read_array(cursor, depth + 1));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

Result<Array> read_array(Cursor& cursor, uint32_t depth) {
  if (depth >= limits::kMaxArrayDepth)
    return invalid("arrays are nested deeper than {} levels; the file is damaged", limits::kMaxArrayDepth);
  Array array;
  SW_ASSIGN(array.element, read_type(cursor));
  SW_ASSIGN(const uint64_t count, cursor.number<uint64_t>("an array length"));
  const auto least = checked_mul(count, least_bytes(array.element));
  if (!least || *least > cursor.left_in_file())
    return invalid(
        "an array claims {} elements of {}, which need more than the {} bytes that are left in the file",
        count, value_type_name(array.element), cursor.left_in_file());
  if (count > limits::kMaxArrayLength)
    return unsupported("an array has {} elements; at most {} are supported", count, limits::kMaxArrayLength);

  if (array.element == ValueType::kString) {
    SW_ASSIGN(array.items, read_strings(cursor, count));
  } else if (array.element == ValueType::kArray) {
    SW_ASSIGN(array.items, read_arrays(cursor, count, depth));
  } else {
    SW_ASSIGN(const auto bytes, cursor.take(*least, "an array"));
    if (array.element == ValueType::kBool) SW_TRY(check_bools(bytes));
    array.items = std::vector<std::byte>(bytes.begin(), bytes.end());
  }
  return array;
}

}  // namespace

Result<Value> read_value(Cursor& cursor) {
  SW_ASSIGN(const ValueType type, read_type(cursor));
  if (type == ValueType::kArray) {
    SW_ASSIGN(Array array, read_array(cursor, 0));
    return Value(std::move(array));
  }
  if (type == ValueType::kString) {
    SW_ASSIGN(const std::string_view text, cursor.text("a string"));
    return Value(text);
  }
  SW_ASSIGN(const auto bytes, cursor.take(value_type_bytes(type), "a value"));
  if (type == ValueType::kBool) SW_TRY(check_bools(bytes));
  return Value::from_bytes(type, bytes);
}

}  // namespace spillway::gguf
