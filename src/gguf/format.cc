#include "gguf/format.h"

#include "base/checked.h"
#include "base/limits.h"
#include "base/tensor_type.h"
#include "gguf/names.h"

namespace spillway::gguf {
namespace {

// Types that the format has and Spillway doesn't compute with; block sizes as in ggml's type table (gguf-py
// lists them too). 4, 5, 31 to 33 and 36 to 38 were removed from the format.
struct OtherType {
  uint32_t id;
  BlockSize size;
};
constexpr OtherType kOtherTypes[] = {
    {9, {32, 36}},     // Q8_1
    {15, {256, 292}},  // Q8_K
    {16, {256, 66}},   // IQ2_XXS
    {17, {256, 74}},   // IQ2_XS
    {18, {256, 98}},   // IQ3_XXS
    {19, {256, 50}},   // IQ1_S
    {21, {256, 110}},  // IQ3_S
    {22, {256, 82}},   // IQ2_S
    {24, {1, 1}},      // I8
    {25, {1, 2}},      // I16
    {26, {1, 4}},      // I32
    {27, {1, 8}},      // I64
    {28, {1, 8}},      // F64
    {29, {256, 56}},   // IQ1_M
    {34, {256, 54}},   // TQ1_0
    {35, {256, 66}},   // TQ2_0
    {40, {64, 36}},    // NVFP4
    {41, {128, 18}},   // Q1_0
    {42, {64, 18}},    // Q2_0
};

std::string type_text(uint32_t id) {
  const std::string_view name = tensor_type_name(id);
  return name == "unknown" ? fmt::format("type {}", id) : std::string(name);
}

}  // namespace

std::optional<BlockSize> block_size(uint32_t type_id) {
  if (const TensorTypeInfo* known = find_tensor_type(type_id))
    return BlockSize{known->block_length, known->block_bytes};
  for (const OtherType& entry : kOtherTypes)
    if (entry.id == type_id) return entry.size;
  return std::nullopt;
}

std::string describe(const TensorInfo& tensor) {
  std::string text =
      fmt::format("{} ({}, {}", quoted(tensor.name), type_text(tensor.type_id), tensor.dims[0]);
  for (uint32_t i = 1; i < tensor.n_dims; ++i) text += fmt::format("x{}", tensor.dims[i]);
  return text + ")";
}

Result<uint64_t> alignment_of(const Metadata& metadata) {
  SW_ASSIGN(const auto found, metadata.find_uint(kAlignmentKey, UINT64_MAX));
  const uint64_t alignment = found.value_or(kDefaultAlignment);
  if (alignment == 0 || alignment % 8 != 0 || alignment > limits::kMaxAlignment)
    return invalid("key '{}' is {}; it needs to be a multiple of 8 from 8 to {} (a power of two or not)",
                   kAlignmentKey, alignment, limits::kMaxAlignment);
  return alignment;
}

Result<void> set_size(TensorInfo& tensor) {
  if (tensor.n_dims > limits::kMaxDims)
    return invalid("it has {} dimensions; at most {} are allowed", tensor.n_dims, limits::kMaxDims);
  std::optional<uint64_t> values = 1;
  for (uint32_t i = 0; i < tensor.n_dims; ++i) {
    if (tensor.dims[i] == 0) return invalid("dimension {} is 0; it needs to be at least 1", i);
    if (values) values = checked_mul(*values, tensor.dims[i]);
  }
  // What the size is computed from has to fit a signed 64-bit number with room for a block's bytes; files
  // don't.
  if (!values || *values > static_cast<uint64_t>(INT64_MAX))
    return invalid("its dimensions {}x{}x{}x{} hold more values than any file can", tensor.dims[0],
                   tensor.dims[1], tensor.dims[2], tensor.dims[3]);

  const std::optional<BlockSize> block = block_size(tensor.type_id);
  tensor.size_known = block.has_value();
  tensor.bytes = 0;
  if (!block) return {};
  if (tensor.dims[0] % block->values != 0)
    return invalid("its rows have {} values, no multiple of the {} that a block of {} holds", tensor.dims[0],
                   block->values, type_text(tensor.type_id));
  const auto bytes = checked_mul(*values / block->values, block->bytes);
  if (!bytes)
    return invalid("its {} values of {} need more bytes than any file can hold", *values,
                   type_text(tensor.type_id));
  tensor.bytes = *bytes;
  return {};
}

}  // namespace spillway::gguf
