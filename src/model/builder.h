// What the families share: looking up keys under the architecture's prefix and tensors by name, each checked
// for type and shape, with errors that name the key or tensor, what was found and what is needed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "gguf/metadata.h"
#include "gguf/reader.h"
#include "model/description.h"

namespace spillway::model {

class Builder {
 public:
  // `metadata` and `tensors` must outlive the builder.
  Builder(const gguf::Metadata& metadata, std::span<const gguf::TensorInfo> tensors,
          std::string_view architecture);

  std::string key(std::string_view suffix) const { return fmt::format("{}.{}", architecture_, suffix); }

  // Values of "<architecture>.<suffix>"; `fallback` where the key is absent.
  Result<uint32_t> require_uint(std::string_view suffix, uint32_t min, uint32_t max) const;
  Result<uint32_t> uint_or(std::string_view suffix, uint32_t fallback, uint32_t min, uint32_t max) const;
  Result<float> float_or(std::string_view suffix, float fallback) const;
  Result<bool> bool_or(std::string_view suffix, bool fallback) const;

  bool has(std::string_view tensor) const { return by_name_.contains(tensor); }

  // A two-dimensional tensor of exactly (rows, cols).
  Result<Weight> matrix(const std::string& name, uint32_t rows, uint32_t cols);
  // A vector of exactly n values; must be F32 (norms, biases).
  Result<Weight> vector(const std::string& name, uint32_t n);
  // The same, or an absent Weight where the file has no such tensor.
  Result<Weight> optional_vector(const std::string& name, uint32_t n);
  // `experts` slices of a three-dimensional tensor (experts, rows, cols).
  Result<std::vector<Weight>> expert_matrices(const std::string& name, uint32_t experts, uint32_t rows,
                                              uint32_t cols);

  // Rows of the tensor, for sizes that only the tensor tells (the vocabulary).
  Result<uint32_t> rows_of(const std::string& name) const;

  // Names of tensors that nobody asked for.
  std::vector<std::string> unused() const;

  const gguf::Metadata& metadata() const { return metadata_; }

 private:
  Result<const gguf::TensorInfo*> find(const std::string& name);
  Result<Weight> checked(const gguf::TensorInfo& tensor, uint64_t rows, uint64_t cols, uint64_t slices) const;

  const gguf::Metadata& metadata_;
  std::string architecture_;
  std::unordered_map<std::string_view, const gguf::TensorInfo*> by_name_;
  std::vector<const gguf::TensorInfo*> order_;
  std::unordered_map<const gguf::TensorInfo*, bool> used_;
};

}  // namespace spillway::model
