#include "gguf/metadata.h"

#include <cmath>
#include <limits>

#include "gguf/names.h"

namespace spillway::gguf {
namespace {

// "key 'x' is a string; it needs to be an integer from 0 to 5"
std::unexpected<Error> wrong_type(std::string_view key, const Value& value, std::string_view needed) {
  return invalid("key {} has type {}; it needs {}", quoted(key), value.type_name(), needed);
}

std::unexpected<Error> missing(std::string_view key) {
  return fail(Error::Kind::kNotFound, "key {} is missing, and the model can't be used without it",
              quoted(key));
}

bool is_integer(ValueType type) {
  return type != ValueType::kFloat32 && type != ValueType::kFloat64 && type != ValueType::kBool &&
         type != ValueType::kString && type != ValueType::kArray;
}

// Element i of a packed array.
Value element(const Array& array, uint64_t i) {
  const uint32_t bytes = value_type_bytes(array.element);
  const std::span<const std::byte> all = std::get<std::vector<std::byte>>(array.items);
  return Value::from_bytes(array.element, all.subspan(i * bytes, bytes));
}

template <class T>
Result<T> required(std::string_view key, Result<std::optional<T>> found) {
  if (!found) return std::unexpected(std::move(found).error());
  if (!*found) return missing(key);
  return **std::move(found);
}

}  // namespace

const Value* Metadata::find(std::string_view key) const {
  const auto at = index_.find(key);
  return at == index_.end() ? nullptr : &entries_[at->second].value;
}

void Metadata::set(std::string_view key, Value value) {
  const auto at = index_.find(key);
  if (at != index_.end()) {
    entries_[at->second].value = std::move(value);
    return;
  }
  index_.emplace(std::string(key), entries_.size());
  entries_.push_back({std::string(key), std::move(value)});
}

void Metadata::erase(std::string_view key) {
  const auto at = index_.find(key);
  if (at == index_.end()) return;
  const size_t position = at->second;
  index_.erase(at);
  entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(position));
  for (auto& [name, place] : index_)
    if (place > position) --place;
}

Result<std::optional<uint64_t>> Metadata::find_uint(std::string_view key, uint64_t max) const {
  const Value* value = find(key);
  if (!value) return std::nullopt;
  if (!is_integer(value->type())) return wrong_type(key, *value, fmt::format("an integer from 0 to {}", max));
  const auto number = value->as_uint();
  if (!number || *number > max)
    return invalid("key {} is {}; it needs to be from 0 to {}", quoted(key), value->to_text(), max);
  return *number;
}

Result<uint64_t> Metadata::require_uint(std::string_view key, uint64_t max) const {
  return required(key, find_uint(key, max));
}

Result<std::optional<double>> Metadata::find_float(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return std::nullopt;
  std::optional<double> number = value->as_float();
  if (!number && is_integer(value->type()))
    number = value->as_int() ? static_cast<double>(*value->as_int()) : static_cast<double>(value->bits());
  if (!number) return wrong_type(key, *value, "a number (float32)");
  if (!std::isfinite(*number)) return invalid("key {} is {}; it needs a finite number", quoted(key), *number);
  return *number;
}

Result<double> Metadata::require_float(std::string_view key) const { return required(key, find_float(key)); }

Result<std::optional<bool>> Metadata::find_bool(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return std::nullopt;
  const auto flag = value->as_bool();
  if (!flag) return wrong_type(key, *value, "a bool");
  return *flag;
}

Result<std::optional<std::string_view>> Metadata::find_string(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return std::nullopt;
  const std::string* text = value->as_string();
  if (!text) return wrong_type(key, *value, "a string");
  return std::string_view(*text);
}

Result<std::string_view> Metadata::require_string(std::string_view key) const {
  return required(key, find_string(key));
}

Result<const StringArray*> Metadata::find_string_array(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return nullptr;
  const Array* array = value->as_array();
  if (!array || array->element != ValueType::kString) return wrong_type(key, *value, "an array of string");
  return &std::get<StringArray>(array->items);
}

Result<const StringArray*> Metadata::require_string_array(std::string_view key) const {
  SW_ASSIGN(const StringArray* strings, find_string_array(key));
  if (!strings) return missing(key);
  return strings;
}

Result<std::optional<std::vector<float>>> Metadata::find_float_array(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return std::nullopt;
  const Array* array = value->as_array();
  if (!array || array->element != ValueType::kFloat32) return wrong_type(key, *value, "an array of float32");
  std::vector<float> numbers(array->size());
  if (!numbers.empty())
    std::memcpy(numbers.data(), std::get<std::vector<std::byte>>(array->items).data(),
                numbers.size() * sizeof(float));
  return numbers;
}

Result<std::optional<std::vector<int32_t>>> Metadata::find_int_array(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return std::nullopt;
  const Array* array = value->as_array();
  if (!array || !is_integer(array->element) || value_type_bytes(array->element) < 4)
    return wrong_type(key, *value, "an array of int32");
  std::vector<int32_t> numbers(array->size());
  for (uint64_t i = 0; i < numbers.size(); ++i) {
    const Value item = element(*array, i);
    const auto number = item.as_int();
    if (!number || *number < std::numeric_limits<int32_t>::min() ||
        *number > std::numeric_limits<int32_t>::max())
      return invalid("key {} holds {} at index {}; each value needs to fit int32", quoted(key),
                     item.to_text(), i);
    numbers[i] = static_cast<int32_t>(*number);
  }
  return numbers;
}

Result<std::optional<std::vector<bool>>> Metadata::find_bool_array(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return std::nullopt;
  const Array* array = value->as_array();
  if (!array || array->element != ValueType::kBool) return wrong_type(key, *value, "an array of bool");
  std::vector<bool> flags(array->size());
  const auto& bytes = std::get<std::vector<std::byte>>(array->items);
  for (size_t i = 0; i < flags.size(); ++i) flags[i] = bytes[i] != std::byte{0};
  return flags;
}

Result<std::optional<std::vector<uint64_t>>> Metadata::find_uint_or_array(std::string_view key,
                                                                          uint64_t count,
                                                                          uint64_t max) const {
  const Value* value = find(key);
  if (!value) return std::nullopt;
  const Array* array = value->as_array();
  if (!array) {
    SW_ASSIGN(const std::optional<uint64_t> number, find_uint(key, max));
    return std::vector<uint64_t>(count, *number);
  }
  if (!is_integer(array->element))
    return wrong_type(key, *value, fmt::format("an integer from 0 to {} or an array of them", max));
  if (array->size() != count)
    return invalid("key {} holds {} values; it needs {}, one per layer", quoted(key), array->size(), count);
  std::vector<uint64_t> numbers(count);
  for (uint64_t i = 0; i < count; ++i) {
    const Value item = element(*array, i);
    const auto number = item.as_uint();
    if (!number || *number > max)
      return invalid("key {} holds {} at index {}; each value needs to be from 0 to {}", quoted(key),
                     item.to_text(), i, max);
    numbers[i] = *number;
  }
  return numbers;
}

}  // namespace spillway::gguf
