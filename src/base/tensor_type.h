// The element types of GGUF tensors: ids, names and block sizes. Ids and sizes are those of the GGUF format
// (ggml's type enumeration); what the bytes mean is in numerics/.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway {

enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ4_NL = 20,
  kIQ4_XS = 23,
  kBF16 = 30,
  kMXFP4 = 39,
};

struct TensorTypeInfo {
  TensorType type;
  std::string_view name;  // as people write it: "Q4_K"
  uint32_t block_length;  // values per block
  uint32_t block_bytes;   // bytes per block
};

// What is known of `id` as it stands in a file, or null for a type that this program does not compute with.
const TensorTypeInfo* find_tensor_type(uint32_t id);
const TensorTypeInfo* find_tensor_type(std::string_view name);

// Requires: `type` is one of the enumerators.
const TensorTypeInfo& info(TensorType type);

// The format's name for any id that a GGUF file may carry, computed with or not ("IQ2_XXS"), or "unknown".
std::string_view tensor_type_name(uint32_t id);

// Bytes of a row of `length` values. Requires: length % block_length == 0.
uint64_t row_bytes(TensorType type, uint64_t length);

}  // namespace spillway
