#include "model/builder.h"

#include <algorithm>

#include "base/limits.h"

namespace spillway::model {
namespace {

// Dimensions as GGUF counts them, innermost first: "[1024, 128256]".
std::string dims_text(const gguf::TensorInfo& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims, ", "));
}

}  // namespace

Builder::Builder(const gguf::Metadata& metadata, std::span<const gguf::TensorInfo> tensors,
                 std::string_view architecture)
    : metadata_(metadata), architecture_(architecture) {
  by_name_.reserve(tensors.size());
  for (const gguf::TensorInfo& tensor : tensors) {
    by_name_.emplace(tensor.name, &tensor);
    order_.push_back(&tensor);
  }
}

Result<uint32_t> Builder::require_uint(std::string_view suffix, uint32_t min, uint32_t max) const {
  SW_ASSIGN(const uint64_t value, metadata_.require_uint(key(suffix), max));
  if (value < min) return invalid("key '{}' is {}, must be at least {}", key(suffix), value, min);
  return static_cast<uint32_t>(value);
}

Result<uint32_t> Builder::uint_or(std::string_view suffix, uint32_t fallback, uint32_t min,
                                  uint32_t max) const {
  SW_ASSIGN(const auto value, metadata_.find_uint(key(suffix), max));
  if (!value) return fallback;
  if (*value < min) return invalid("key '{}' is {}, must be at least {}", key(suffix), *value, min);
  return static_cast<uint32_t>(*value);
}

Result<float> Builder::float_or(std::string_view suffix, float fallback) const {
  SW_ASSIGN(const auto value, metadata_.find_float(key(suffix)));
  return value ? static_cast<float>(*value) : fallback;
}

Result<bool> Builder::bool_or(std::string_view suffix, bool fallback) const {
  SW_ASSIGN(const auto value, metadata_.find_bool(key(suffix)));
  return value.value_or(fallback);
}

Result<const gguf::TensorInfo*> Builder::find(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end())
    return invalid("tensor '{}' is missing; the file is incomplete or of another family", name);
  used_[found->second] = true;
  return found->second;
}

Result<Weight> Builder::checked(const gguf::TensorInfo& tensor, uint64_t rows, uint64_t cols,
                                uint64_t slices) const {
  const TensorTypeInfo* type = find_tensor_type(tensor.type_id);
  if (type == nullptr)
    return unsupported(
        "tensor '{}' has type {} ({}), which this program cannot compute with; requantize the model, "
        "for example to Q4_K or Q8_0",
        tensor.name, tensor_type_name(tensor.type_id), tensor.type_id);
  const uint64_t want[3] = {cols, rows, slices};
  for (uint32_t i = 0; i < gguf::TensorInfo{}.dims.size(); ++i) {
    const uint64_t found = i < tensor.n_dims ? tensor.dims[i] : 1;
    const uint64_t needed = i < 3 ? want[i] : 1;
    if (found != needed)
      return invalid("tensor '{}' has dimensions {}, needed are [{}, {}{}]", tensor.name, dims_text(tensor),
                     cols, rows, slices > 1 ? fmt::format(", {}", slices) : "");
  }
  if (cols % type->block_length != 0)
    return invalid("tensor '{}': rows of {} values do not divide into {} blocks of {}", tensor.name, cols,
                   type->name, type->block_length);
  return Weight{.tensor = tensor.name,
                .type = type->type,
                .rows = static_cast<uint32_t>(rows),
                .cols = static_cast<uint32_t>(cols),
                .shard = tensor.shard,
                .offset = tensor.offset};
}

Result<Weight> Builder::matrix(const std::string& name, uint32_t rows, uint32_t cols) {
  SW_ASSIGN(const gguf::TensorInfo* tensor, find(name));
  return checked(*tensor, rows, cols, 1);
}

Result<Weight> Builder::vector(const std::string& name, uint32_t n) {
  SW_ASSIGN(const gguf::TensorInfo* tensor, find(name));
  SW_ASSIGN(Weight weight, checked(*tensor, 1, n, 1));
  if (weight.type != TensorType::kF32)
    return unsupported("tensor '{}' has type {}, needed is F32 (norms and biases are kept in F32)", name,
                       info(weight.type).name);
  return weight;
}

Result<Weight> Builder::optional_vector(const std::string& name, uint32_t n) {
  if (!has(name)) return Weight{};
  return vector(name, n);
}

Result<std::vector<Weight>> Builder::expert_matrices(const std::string& name, uint32_t experts, uint32_t rows,
                                                     uint32_t cols) {
  SW_ASSIGN(const gguf::TensorInfo* tensor, find(name));
  SW_ASSIGN(const Weight first, checked(*tensor, rows, cols, experts));
  std::vector<Weight> slices(experts, first);
  for (uint32_t e = 0; e < experts; ++e) {
    slices[e].expert = e;
    slices[e].offset += e * first.bytes();
  }
  return slices;
}

Result<uint32_t> Builder::rows_of(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return invalid("tensor '{}' is missing", name);
  const gguf::TensorInfo& tensor = *found->second;
  if (tensor.n_dims != 2) return invalid("tensor '{}' has {} dimensions, needed are 2", name, tensor.n_dims);
  if (tensor.dims[1] > limits::kMaxVocabulary)
    return invalid("tensor '{}' has {} rows, the limit is {}", name, tensor.dims[1], limits::kMaxVocabulary);
  return static_cast<uint32_t>(tensor.dims[1]);
}

std::vector<std::string> Builder::unused() const {
  std::vector<std::string> names;
  for (const gguf::TensorInfo* tensor : order_)
    if (!used_.contains(tensor)) names.push_back(tensor->name);
  return names;
}

}  // namespace spillway::model
