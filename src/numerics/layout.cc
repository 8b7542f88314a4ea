#include "numerics/layout.h"

#include <cstring>

#include "base/assert.h"
#include "base/checked.h"

namespace spillway::numerics {
namespace {

using enum TensorType;
using layout::kGroupRows;

constexpr Field kF32Fields[] = {{0, 4}};
constexpr Field kF16Fields[] = {{0, 2}};
constexpr Field kQ4_0Fields[] = {{0, 2}, {2, 16}};
constexpr Field kQ4_1Fields[] = {{0, 2}, {2, 2}, {4, 16}};
constexpr Field kQ5_0Fields[] = {{0, 2}, {2, 4}, {6, 16}};
constexpr Field kQ5_1Fields[] = {{0, 2}, {2, 2}, {4, 4}, {8, 16}};
constexpr Field kQ8_0Fields[] = {{0, 2}, {2, 32}};
constexpr Field kMXFP4Fields[] = {{0, 1}, {1, 16}};
constexpr Field kQ2_KFields[] = {{0, 16}, {16, 64}, {80, 2}, {82, 2}};
constexpr Field kQ3_KFields[] = {{0, 32}, {32, 64}, {96, 12}, {108, 2}};
constexpr Field kQ4_KFields[] = {{0, 2}, {2, 2}, {4, 12}, {16, 128}};
constexpr Field kQ5_KFields[] = {{0, 2}, {2, 2}, {4, 12}, {16, 32}, {48, 128}};
constexpr Field kQ6_KFields[] = {{0, 128}, {128, 64}, {192, 16}, {208, 2}};
constexpr Field kIQ4_XSFields[] = {{0, 2}, {2, 2}, {4, 4}, {8, 128}};

// Calls move(item offset in the block, its offset in the record, bytes) for each item of one row.
template <class Move>
void for_each_item(std::span<const Field> fields, uint32_t row, Move move) {
  for (const Field& field : fields) {
    const uint32_t item = field.item();
    for (uint32_t at = 0; at < field.size; at += item)
      move(field.offset + at, (size_t{field.offset} + at) * kGroupRows + size_t{row} * item, item);
  }
}

}  // namespace

std::span<const Field> block_fields(TensorType type) {
  switch (type) {
    case kF32:
      return kF32Fields;
    case kF16:
    case kBF16:
      return kF16Fields;
    case kQ4_0:
    case kIQ4_NL:
      return kQ4_0Fields;
    case kQ4_1:
      return kQ4_1Fields;
    case kQ5_0:
      return kQ5_0Fields;
    case kQ5_1:
      return kQ5_1Fields;
    case kQ8_0:
      return kQ8_0Fields;
    case kMXFP4:
      return kMXFP4Fields;
    case kQ2_K:
      return kQ2_KFields;
    case kQ3_K:
      return kQ3_KFields;
    case kQ4_K:
      return kQ4_KFields;
    case kQ5_K:
      return kQ5_KFields;
    case kQ6_K:
      return kQ6_KFields;
    case kIQ4_XS:
      return kIQ4_XSFields;
  }
  SW_ASSERT(!"a tensor type");
  return {};
}

uint64_t group_bytes(TensorType type, uint64_t cols) { return row_bytes(type, cols) * kGroupRows; }

uint64_t interleaved_bytes(TensorType type, uint64_t rows, uint64_t cols) {
  return ceil_div(rows, kGroupRows) * group_bytes(type, cols);
}

void interleave(TensorType type, uint64_t rows, uint64_t cols, const std::byte* file, std::byte* groups) {
  const auto fields = block_fields(type);
  const size_t block_bytes = info(type).block_bytes;
  const size_t bytes = row_bytes(type, cols);
  for (uint64_t r = 0; r < ceil_div(rows, kGroupRows) * kGroupRows; ++r) {
    std::byte* group = groups + r / kGroupRows * bytes * kGroupRows;
    const auto lane = static_cast<uint32_t>(r % kGroupRows);
    for (size_t b = 0; b < bytes / block_bytes; ++b) {
      std::byte* record = group + b * block_bytes * kGroupRows;
      const std::byte* block = r < rows ? file + r * bytes + b * block_bytes : nullptr;
      for_each_item(fields, lane, [&](size_t in_block, size_t in_record, size_t size) {
        if (block != nullptr)
          std::memcpy(record + in_record, block + in_block, size);
        else
          std::memset(record + in_record, 0, size);
      });
    }
  }
}

void deinterleave(TensorType type, uint64_t rows, uint64_t cols, const std::byte* groups, std::byte* file) {
  const size_t block_bytes = info(type).block_bytes;
  const size_t bytes = row_bytes(type, cols);
  for (uint64_t r = 0; r < rows; ++r) {
    const std::byte* group = groups + r / kGroupRows * bytes * kGroupRows;
    for (size_t b = 0; b < bytes / block_bytes; ++b)
      extract_block(type, group + b * block_bytes * kGroupRows, static_cast<uint32_t>(r % kGroupRows),
                    file + r * bytes + b * block_bytes);
  }
}

void extract_block(TensorType type, const std::byte* record, uint32_t row_in_group, std::byte* block) {
  for_each_item(block_fields(type), row_in_group, [&](size_t in_block, size_t in_record, size_t size) {
    std::memcpy(block + in_block, record + in_record, size);
  });
}

}  // namespace spillway::numerics
