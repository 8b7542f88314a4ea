// Rows of a file on their way into the interleaved form that the kernels read (numerics/layout.h).
//
// A block is covered by 16-byte pieces, which sixteen rows transpose in registers: dword f/4 of the block
// goes to byte 16 * f of the record, whatever field it belongs to. Where two halves share a dword (kHalvesAt)
// it is split. Pieces may overlap, so that small fields at the edge need no code of their own; what is left
// is at most one item of 1 or 2 bytes a block. Pieces lie inside the block: nothing behind the last row's end
// is read.
//
// The buffer differs from a record in our own memory in one thing: the words are shifted so that each vector
// lies in one cache line, where an item before them would put them across two (Q4_0: 32 bytes of scales).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/product_formats.h"

namespace spillway::cpu {
namespace {

// Bytes of records made at once: they stay in the first-level cache.
inline constexpr size_t kChunkBytes = 4096;

template <class Format>
struct Buffered {
  static constexpr size_t kShift = (64 - 16 * Format::kPieces[0] % 64) % 64;
  static constexpr size_t kStride = (16 * Format::kBytes + kShift + 63) / 64 * 64;
  static_assert(kStride <= kChunkBytes);
};

// How many words piece `p` of a format brings: 8 where the next one follows on it and the vector has wide
// pieces, 0 where the one before brought it along, else 4.
template <class V, class Format>
constexpr int piece_words(int p) {
  constexpr int kPieces = sizeof(Format::kPieces) / sizeof(int);
  int words = 4;
  for (int i = 0; i <= p; ++i) {
    const bool follows = i + 1 < kPieces && Format::kPieces[i + 1] == Format::kPieces[i] + 16;
    words = words == 8 ? 0 : V::kWidePieces && follows ? 8 : 4;
  }
  return words;
}

template <class V, int kWords>
SW_INLINE void transpose_words(const uint8_t* const* rows, size_t offset, typename V::Int* x) {
  if constexpr (kWords == 8)
    V::transpose_wide(rows, offset, x);
  else if constexpr (kWords == 4)
    V::transpose(rows, offset, x);
}

// Block at byte `offset` of the rows to `record`.
template <class V, class Format>
void interleave_block(const uint8_t* const* rows, size_t offset, uint8_t* record) {
  uint8_t* words = record + Buffered<Format>::kShift;
  constexpr int kPieces = sizeof(Format::kPieces) / sizeof(int);
  for (int lane = 0; lane < 16; lane += V::kLanes)
    unroll<kPieces>([&](auto p) SW_FLAT {
      constexpr int kPiece = Format::kPieces[p], kWords = piece_words<V, Format>(p);
      typename V::Int x[8];
      transpose_words<V, kWords>(rows + lane, offset + kPiece, x);
      unroll<kWords>([&](auto i) SW_FLAT {
        constexpr int kF = kPiece + 4 * i;
        if constexpr (kF == Format::kHalvesAt) {
          V::store_u16(record + 16 * kF + 2 * lane, x[i]);
          V::store_u16(record + 16 * (kF + 2) + 2 * lane, V::template shr<16>(x[i]));
        } else {
          V::store(words + 16 * kF + 4 * lane, x[i]);
        }
      });
    });
  if constexpr (Format::kItem != 0)
    unroll<16>([&](auto r) SW_FLAT {
      __builtin_memcpy(record + 16 * Format::kItemAt + Format::kItem * r, rows[r] + offset + Format::kItemAt,
                       Format::kItem);
    });
}

// Calls kSize bytes into the cache.
template <size_t kSize>
SW_INLINE void fetch(const uint8_t* p) {
  unroll<(kSize + 63) / 64>([&](auto i) SW_FLAT { __builtin_prefetch(p + 64 * i, 0, 3); });
}

// A run of records: each `stride` bytes from the one before, its words `shift` bytes behind their place.
struct Records {
  const uint8_t* first;
  size_t stride, shift;
};

// The 16 rows of a tile: interleaved already, or rows of the file.
struct RowGroup {
  Records records = {};  // of block 0, where interleaved
  const uint8_t* rows[16] = {};
  const uint8_t* next = nullptr;  // where the following group begins, or null: it is fetched on the way
  uint8_t* buffer = nullptr;      // kChunkBytes
  bool interleaved = false;

  // The records of blocks begin .. begin+count-1; `count` may come back smaller.
  template <class V, class Format>
  SW_INLINE Records take(uint32_t begin, uint32_t& count) const {
    if (interleaved) return {records.first + begin * records.stride, records.stride, records.shift};
    return make<V, Format>(begin, count);
  }

  // Where to fetch the following group's block `begin` while this one's is computed: a tile of many tokens
  // keeps the processor too busy to run ahead by itself. Rows of a file are fetched while they are
  // interleaved instead.
  template <class Format>
  const uint8_t* next_records(uint32_t begin) const {
    return interleaved && next != nullptr ? next + size_t{begin} * 16 * Format::kBytes : nullptr;
  }

  // Makes records in the buffer, no more than kChunkBytes.
  template <class V, class Format>
  [[gnu::noinline]] Records make(uint32_t begin, uint32_t& count) const {
    constexpr uint32_t kMost = kChunkBytes / Buffered<Format>::kStride;
    if (count > kMost) count = kMost;
    return interleave<V, Format>(begin, count);
  }

  // Sixteen rows at once are more streams than the processor prefetches. But a group's rows lie one after
  // another, so the following group is called into the cache as one ascending stream, a piece with each block
  // of this one. (Q4_K, one token: 47 % of a streaming read without, 94 % with it.)
  template <class V, class Format>
  Records interleave(uint32_t begin, uint32_t count) const {
    constexpr size_t kBlocks = 16 * size_t{Format::kBytes}, kStride = Buffered<Format>::kStride;
    for (uint32_t b = 0; b < count; ++b) {
      if (next != nullptr) fetch<kBlocks>(next + (begin + b) * kBlocks);
      interleave_block<V, Format>(rows, size_t{begin + b} * Format::kBytes, buffer + b * kStride);
    }
    return {buffer, kStride, Buffered<Format>::kShift};
  }
};

}  // namespace
}  // namespace spillway::cpu
