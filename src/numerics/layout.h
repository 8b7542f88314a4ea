// Fields of each block format and the interleaved layout of matrices in our own memory (docs/numerics.md,
// "Layout").
//
// A matrix (rows, cols) of n blocks a row becomes ceil(rows/16) groups; a group holds, for each block column,
// one record of 16 * block_bytes. A field of `size` bytes at `offset` of the file's block lies at 16 * offset
// of the record: as 4-byte words where size % 4 == 0 (word 0 of the 16 rows, then word 1, ...), else as items
// of `size` bytes (1 or 2), one per row. Rows past the matrix are zero bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/tensor_type.h"

namespace spillway::numerics {

namespace layout {

inline constexpr uint32_t kGroupRows = 16;

// Byte offsets of the fields in a block of the file.
// clang-format off
namespace q4_0   { inline constexpr uint32_t kD = 0, kQs = 2; }
namespace q4_1   { inline constexpr uint32_t kD = 0, kM = 2, kQs = 4; }
namespace q5_0   { inline constexpr uint32_t kD = 0, kQh = 2, kQs = 6; }
namespace q5_1   { inline constexpr uint32_t kD = 0, kM = 2, kQh = 4, kQs = 8; }
namespace q8_0   { inline constexpr uint32_t kD = 0, kQs = 2; }
namespace iq4_nl { inline constexpr uint32_t kD = 0, kQs = 2; }
namespace mxfp4  { inline constexpr uint32_t kE = 0, kQs = 1; }
namespace q2_k   { inline constexpr uint32_t kScales = 0, kQs = 16, kD = 80, kDmin = 82; }
namespace q3_k   { inline constexpr uint32_t kHmask = 0, kQs = 32, kScales = 96, kD = 108; }
namespace q4_k   { inline constexpr uint32_t kD = 0, kDmin = 2, kScales = 4, kQs = 16; }
namespace q5_k   { inline constexpr uint32_t kD = 0, kDmin = 2, kScales = 4, kQh = 16, kQs = 48; }
namespace q6_k   { inline constexpr uint32_t kQl = 0, kQh = 128, kScales = 192, kD = 208; }
namespace iq4_xs { inline constexpr uint32_t kD = 0, kScalesH = 2, kScalesL = 4, kQs = 8; }
// clang-format on

// Where word `w` (or, for a 1- or 2-byte field, w = 0) of row `r` of the field at `offset` lies in a record.
// Requires: a field of 4-byte words.
constexpr size_t word_at(uint32_t offset, uint32_t w, uint32_t r) {
  return size_t{offset} * kGroupRows + size_t{w} * 4 * kGroupRows + size_t{r} * 4;
}
// The same for a field of one item of `size` bytes, 1 or 2.
constexpr size_t item_at(uint32_t offset, uint32_t size, uint32_t r) {
  return size_t{offset} * kGroupRows + size_t{r} * size;
}

}  // namespace layout

struct Field {
  uint16_t offset;  // in the file's block
  uint16_t size;
  uint16_t item() const { return size % 4 == 0 ? 4 : size; }  // bytes that stay together
};

// The fields of a block, in ascending offset, without gaps. F32, F16 and BF16: one field, the value.
std::span<const Field> block_fields(TensorType type);

// Bytes of a whole matrix in interleaved layout: ceil(rows/16) * 16 rows. Requires: cols % block_length == 0.
uint64_t interleaved_bytes(TensorType type, uint64_t rows, uint64_t cols);

// Bytes from one group to the next.
uint64_t group_bytes(TensorType type, uint64_t cols);

// File rows to groups and back. `file` holds rows * row_bytes(type, cols), `groups` interleaved_bytes.
void interleave(TensorType type, uint64_t rows, uint64_t cols, const std::byte* file, std::byte* groups);
void deinterleave(TensorType type, uint64_t rows, uint64_t cols, const std::byte* groups, std::byte* file);

// One row's block out of a record (16 * block_bytes at `record`).
void extract_block(TensorType type, const std::byte* record, uint32_t row_in_group, std::byte* block);

}  // namespace spillway::numerics
