// File rows to groups of 16 interleaved rows (Kernels::interleave), 16 bytes of 16 rows at a time.
#pragma once

#include <cstring>

#include "backend/cpu/kernels.h"
#include "numerics/layout.h"

namespace spillway::cpu {
namespace {

// Halves: two columns come as one word of each row, and go to two runs of 16 halves.
inline void split_words(const uint8_t* words, size_t n, uint8_t* out) {
  for (size_t w = 0; w < n; ++w)
    for (size_t r = 0; r < kGroupRows; ++r) {
      std::memcpy(out + (4 * w + 0) * kGroupRows + 2 * r, words + 4 * (kGroupRows * w + r), 2);
      std::memcpy(out + (4 * w + 2) * kGroupRows + 2 * r, words + 4 * (kGroupRows * w + r) + 2, 2);
    }
}

// One item of `kSize` bytes of each row.
template <size_t kSize>
inline void interleave_item(const uint8_t* const* rows, size_t offset, uint8_t* out) {
  for (size_t r = 0; r < kGroupRows; ++r) std::memcpy(out + kSize * r, rows[r] + offset, kSize);
}

// 16 bytes of each of 16 rows, transposed as words: word w of row r goes to out + 64*w + 4*r.
template <class V>
void interleave_piece(const uint8_t* const* rows, size_t offset, uint8_t* out) {
  for (int lane = 0; lane < 16; lane += V::kLanes) {
    typename V::Int x[4];
    V::transpose(rows + lane, offset, x);
    for (int w = 0; w < 4; ++w) V::store(out + 64 * w + 4 * lane, x[w]);
  }
}

// A field of one block: whole pieces of 16 bytes by the vector unit, the words left over one by one. Where
// the block goes on for long enough, a last piece takes bytes of the next field with it, which then comes and
// overwrites them.
template <class V>
void interleave_field(const uint8_t* const* rows, size_t offset, size_t size, size_t left, uint8_t* out) {
  if (size == 1) return interleave_item<1>(rows, offset, out);
  if (size == 2) return interleave_item<2>(rows, offset, out);
  size_t at = 0;
  for (; at < size && at + 16 <= left; at += 16)
    interleave_piece<V>(rows, offset + at, out + at * kGroupRows);
  for (; at < size; at += 4) interleave_item<4>(rows, offset + at, out + at * kGroupRows);
}

// One group of 16 rows that exist.
template <class V>
void interleave_group(TensorType type, size_t bytes, const uint8_t* const* rows, uint8_t* out) {
  const size_t block_bytes = info(type).block_bytes;
  if (block_bytes == 4)
    return interleave_field<V>(rows, 0, bytes, bytes, out);  // F32: the row is one run of words
  if (block_bytes == 2 && bytes % 4 == 0) {                  // F16, BF16
    alignas(64) uint8_t words[16 * kGroupRows];
    size_t at = 0;
    for (; at + 16 <= bytes; at += 16) {
      interleave_piece<V>(rows, at, words);
      split_words(words, 4, out + at * kGroupRows);
    }
    for (; at < bytes; at += 2) interleave_item<2>(rows, at, out + at * kGroupRows);
    return;
  }
  const auto fields = numerics::block_fields(type);
  for (size_t block = 0; block < bytes; block += block_bytes)
    for (const numerics::Field field : fields)
      interleave_field<V>(rows, block + field.offset, field.size, block_bytes - field.offset,
                          out + (block + field.offset) * kGroupRows);
}

template <class V>
void interleave(TensorType type, uint64_t rows, uint64_t cols, const std::byte* file, std::byte* groups) {
  const size_t bytes = row_bytes(type, cols);
  const uint64_t whole = rows / kGroupRows;
  const uint8_t* row[kGroupRows];
  for (uint64_t g = 0; g < whole; ++g) {
    for (size_t r = 0; r < kGroupRows; ++r)
      row[r] = reinterpret_cast<const uint8_t*>(file) + (g * kGroupRows + r) * bytes;
    interleave_group<V>(type, bytes, row, reinterpret_cast<uint8_t*>(groups) + g * kGroupRows * bytes);
  }
  if (const uint64_t rest = rows - whole * kGroupRows; rest > 0)  // padded with zero rows
    numerics::interleave(type, rest, cols, file + whole * kGroupRows * bytes,
                         groups + whole * kGroupRows * bytes);
}

}  // namespace
}  // namespace spillway::cpu
