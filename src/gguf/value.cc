#include <algorithm>

#include "base/assert.h"
#include "gguf/metadata.h"
#include "gguf/names.h"

namespace spillway::gguf {
namespace {

struct TypeRow {
  std::string_view name;
  uint32_t bytes;
};
constexpr TypeRow kTypes[kValueTypes] = {
    {"uint8", 1}, {"int8", 1},   {"uint16", 2}, {"int16", 2},  {"uint32", 4}, {"int32", 4},   {"float32", 4},
    {"bool", 1},  {"string", 0}, {"array", 0},  {"uint64", 8}, {"int64", 8},  {"float64", 8},
};

// The signed value of the low `bytes` bytes.
int64_t sign_extend(uint64_t bits, uint32_t bytes) {
  const uint32_t shift = 64 - 8 * bytes;
  return static_cast<int64_t>(bits << shift) >> shift;
}

bool is_signed(ValueType type) {
  return type == ValueType::kInt8 || type == ValueType::kInt16 || type == ValueType::kInt32 ||
         type == ValueType::kInt64;
}

bool is_unsigned(ValueType type) {
  return type == ValueType::kUint8 || type == ValueType::kUint16 || type == ValueType::kUint32 ||
         type == ValueType::kUint64;
}

std::string array_text(const Array& array, size_t max_items) {
  std::string text = "[";
  const size_t shown = std::min<uint64_t>(array.size(), max_items);
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) text += ", ";
    if (const auto* strings = std::get_if<StringArray>(&array.items)) {
      text += quoted((*strings)[i]);
    } else if (const auto* arrays = std::get_if<std::vector<Array>>(&array.items)) {
      text += array_text((*arrays)[i], max_items);
    } else {
      const uint32_t bytes = value_type_bytes(array.element);
      const std::span<const std::byte> all = std::get<std::vector<std::byte>>(array.items);
      text += Value::from_bytes(array.element, all.subspan(i * bytes, bytes)).to_text();
    }
  }
  if (shown < array.size()) text += fmt::format(", ... {} in all", array.size());
  return text + "]";
}

}  // namespace

std::string_view value_type_name(ValueType type) {
  SW_ASSERT(static_cast<uint32_t>(type) < kValueTypes);
  return kTypes[static_cast<uint32_t>(type)].name;
}

uint32_t value_type_bytes(ValueType type) {
  SW_ASSERT(static_cast<uint32_t>(type) < kValueTypes);
  return kTypes[static_cast<uint32_t>(type)].bytes;
}

uint64_t Array::size() const {
  if (const auto* strings = std::get_if<StringArray>(&items)) return strings->size();
  if (const auto* arrays = std::get_if<std::vector<Array>>(&items)) return arrays->size();
  return std::get<std::vector<std::byte>>(items).size() / value_type_bytes(element);
}

Array Array::of(const std::vector<bool>& values) {
  std::vector<std::byte> bytes;
  bytes.reserve(values.size());
  for (const bool value : values) bytes.push_back(std::byte{value});
  return {ValueType::kBool, std::move(bytes)};
}

Array Array::of(std::span<const std::string> values) {
  StringArray strings;
  for (const std::string& value : values) strings.push_back(value);
  return {ValueType::kString, std::move(strings)};
}

Value Value::from_bytes(ValueType type, std::span<const std::byte> bytes) {
  SW_ASSERT(bytes.size() == value_type_bytes(type) && !bytes.empty());
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  Value value;
  value.type_ = type;
  value.data_ = bits;
  return value;
}

std::string Value::type_name() const {
  const Array* array = as_array();
  std::string text;
  for (uint32_t depth = 0; array; ++depth) {
    text += depth == 0 ? "array of " : "arrays of ";
    if (array->element != ValueType::kArray) return text + std::string(value_type_name(array->element));
    const auto& inner = std::get<std::vector<Array>>(array->items);
    if (inner.empty()) return text + "arrays";
    array = &inner.front();
  }
  return std::string(value_type_name(type_));
}

std::optional<uint64_t> Value::as_uint() const {
  if (is_unsigned(type_)) return bits();
  if (!is_signed(type_)) return std::nullopt;
  const int64_t value = sign_extend(bits(), value_type_bytes(type_));
  if (value < 0) return std::nullopt;
  return static_cast<uint64_t>(value);
}

std::optional<int64_t> Value::as_int() const {
  if (is_signed(type_)) return sign_extend(bits(), value_type_bytes(type_));
  if (!is_unsigned(type_) || bits() > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<int64_t>(bits());
}

std::optional<double> Value::as_float() const {
  if (type_ == ValueType::kFloat32) return std::bit_cast<float>(static_cast<uint32_t>(bits()));
  if (type_ == ValueType::kFloat64) return std::bit_cast<double>(bits());
  return std::nullopt;
}

std::optional<bool> Value::as_bool() const {
  if (type_ != ValueType::kBool) return std::nullopt;
  return bits() != 0;
}

std::string Value::to_text(size_t max_items) const {
  if (const std::string* text = as_string()) return quoted(*text);
  if (const Array* array = as_array()) return array_text(*array, max_items);
  if (const auto value = as_bool()) return *value ? "true" : "false";
  if (const auto value = as_float())
    return type_ == ValueType::kFloat32 ? fmt::format("{}", static_cast<float>(*value))
                                        : fmt::format("{}", *value);
  if (const auto value = as_int()) return fmt::format("{}", *value);
  return fmt::format("{}", bits());
}

}  // namespace spillway::gguf
