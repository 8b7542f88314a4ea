#include "base/tensor_type.h"

#include <array>

#include "base/assert.h"

namespace spillway {
namespace {

using enum TensorType;

// Block bytes are the sum of the fields that numerics/ documents for each type.
constexpr std::array kTypes = {
    TensorTypeInfo{kF32, "F32", 1, 4},         TensorTypeInfo{kF16, "F16", 1, 2},
    TensorTypeInfo{kQ4_0, "Q4_0", 32, 18},     TensorTypeInfo{kQ4_1, "Q4_1", 32, 20},
    TensorTypeInfo{kQ5_0, "Q5_0", 32, 22},     TensorTypeInfo{kQ5_1, "Q5_1", 32, 24},
    TensorTypeInfo{kQ8_0, "Q8_0", 32, 34},     TensorTypeInfo{kQ2_K, "Q2_K", 256, 84},
    TensorTypeInfo{kQ3_K, "Q3_K", 256, 110},   TensorTypeInfo{kQ4_K, "Q4_K", 256, 144},
    TensorTypeInfo{kQ5_K, "Q5_K", 256, 176},   TensorTypeInfo{kQ6_K, "Q6_K", 256, 210},
    TensorTypeInfo{kIQ4_NL, "IQ4_NL", 32, 18}, TensorTypeInfo{kIQ4_XS, "IQ4_XS", 256, 136},
    TensorTypeInfo{kBF16, "BF16", 1, 2},       TensorTypeInfo{kMXFP4, "MXFP4", 32, 17},
};

// Every id of the format, so that a refusal can name the type.
constexpr std::array<std::string_view, 43> kNames = {
    "F32",      "F16",      "Q4_0",    "Q4_1",  "Q4_2",       "Q4_3",       "Q5_0",       "Q5_1",
    "Q8_0",     "Q8_1",     "Q2_K",    "Q3_K",  "Q4_K",       "Q5_K",       "Q6_K",       "Q8_K",
    "IQ2_XXS",  "IQ2_XS",   "IQ3_XXS", "IQ1_S", "IQ4_NL",     "IQ3_S",      "IQ2_S",      "IQ4_XS",
    "I8",       "I16",      "I32",     "I64",   "F64",        "IQ1_M",      "BF16",       "Q4_0_4_4",
    "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",   "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",
    "NVFP4",    "Q1_0",     "Q2_0",
};

}  // namespace

const TensorTypeInfo* find_tensor_type(uint32_t id) {
  for (const TensorTypeInfo& entry : kTypes)
    if (static_cast<uint32_t>(entry.type) == id) return &entry;
  return nullptr;
}

const TensorTypeInfo* find_tensor_type(std::string_view name) {
  for (const TensorTypeInfo& entry : kTypes)
    if (entry.name == name) return &entry;
  return nullptr;
}

const TensorTypeInfo& info(TensorType type) {
  const TensorTypeInfo* found = find_tensor_type(static_cast<uint32_t>(type));
  SW_ASSERT(found != nullptr);
  return *found;
}

std::string_view tensor_type_name(uint32_t id) { return id < kNames.size() ? kNames[id] : "unknown"; }

uint64_t row_bytes(TensorType type, uint64_t length) {
  const TensorTypeInfo& entry = info(type);
  SW_ASSERT(length % entry.block_length == 0);
  return length / entry.block_length * entry.block_bytes;
}

}  // namespace spillway
