// Cuts a product into tiles: tokens in packs that stay in the second-level cache, rows in groups of 16. A
// group's weights are read from memory once per pack and meet every tile of it.
#pragma once

#include "backend/cpu/product_tile.h"

namespace spillway::cpu {
namespace {

// Packed activations of one pass: half of a small second-level cache (512 KiB), so that weights have the
// other half.
inline constexpr size_t kPackBytes = 256 << 10;
inline constexpr uint32_t kPackTokens = 96;

// Bytes that a packed token takes at most: 10/8 of its values for blocks of 32, 73/64 for blocks of 256.
constexpr size_t packed_token_bytes(uint32_t cols) { return size_t{cols} / 4 * 5; }

// Tokens of one pass: full tiles of `widest`.
constexpr uint32_t pack_tokens(uint32_t cols, uint32_t widest) {
  const size_t fit = kPackBytes / (packed_token_bytes(cols) + 1);
  const size_t most = fit < kPackTokens ? fit : kPackTokens;
  return most < widest ? widest : static_cast<uint32_t>(most / widest * widest);
}

// A row group's file rows, interleaved: the largest block per value is Q8_0's, 34 bytes of 32 values.
constexpr size_t interleaved_group_bytes(uint32_t cols) {
  return 16 * (size_t{cols} / 32 * 34) + kFileChunkBytes;
}

constexpr size_t product_scratch_bytes(uint32_t cols, uint32_t widest) {
  return pack_tokens(cols, widest) * packed_token_bytes(cols) + interleaved_group_bytes(cols) + 64;
}

template <class V, class Format>
struct Product {
  static constexpr int kWidthCount = sizeof(V::kWidths) / sizeof(int);
  static constexpr int kWidest = V::kWidths[0];

  // The narrowest tile that holds n tokens.
  static int width_index(uint32_t n) {
    int i = 0;
    while (i + 1 < kWidthCount && static_cast<uint32_t>(V::kWidths[i + 1]) >= n) ++i;
    return i;
  }

  static void run_tile(int index, const TileTask& task) {
    unroll<kWidthCount>([&](auto i) SW_FLAT {
      if (index == i) Tile<V, Format, V::kWidths[i]>::run(task);
    });
  }

  static void run(const Matrix& w, uint32_t group_begin, uint32_t group_end, const Activations& x,
                  TokenSet tokens, float* out, size_t out_stride, Scratch scratch) {
    constexpr SumForm kForm = sum_form<V, Format>();
    const uint32_t blocks = w.cols / Format::kLength;
    const size_t row_bytes = size_t{blocks} * Format::kBytes;
    const auto* data = reinterpret_cast<const uint8_t*>(w.data);
    const uint32_t pass = pack_tokens(w.cols, kWidest);
    auto* packed = reinterpret_cast<int32_t*>(scratch.data);
    auto* buffer =
        reinterpret_cast<uint8_t*>(scratch.data) + (pass * packed_token_bytes(w.cols) + 63) / 64 * 64;
    const size_t token_words =
        size_t{blocks} * static_cast<size_t>(Packer<V>::block_words(Format::kLength, kForm));

    for (uint32_t first = 0; first < tokens.n; first += pass) {
      const uint32_t count = tokens.n - first < pass ? tokens.n - first : pass;
      for (uint32_t t = 0; t < count; t += kWidest) {
        const uint32_t n = count - t < kWidest ? count - t : kWidest;
        Packer<V>::pack(x, tokens, first + t, n, V::kWidths[width_index(n)], kForm, packed + t * token_words);
      }
      for (uint32_t g = group_begin; g < group_end; ++g) {
        const uint32_t row = g * kGroupRows;
        RowGroup group;
        TileTask task;
        task.weights = &group;
        task.blocks = blocks;
        task.rows = static_cast<int>(w.rows - row < kGroupRows ? w.rows - row : kGroupRows);
        if (w.layout == Layout::kInterleaved) {
          group.interleaved = data + size_t{g} * kGroupRows * row_bytes;
        } else {
          group.buffer = buffer;
          group.interleave_block = interleave_block<V, Format>;
          for (uint32_t r = 0; r < kGroupRows; ++r) {  // rows that don't exist repeat the last one
            const uint32_t real =
                r < static_cast<uint32_t>(task.rows) ? r : static_cast<uint32_t>(task.rows) - 1;
            group.rows[r] = data + (size_t{row} + real) * row_bytes;
          }
          if (count > kWidest) {  // several tiles: interleave the whole group once
            for (uint32_t b = 0; b < blocks; ++b)
              interleave_block<V, Format>(group.rows, size_t{b} * Format::kBytes,
                                          buffer + size_t{b} * kGroupRows * Format::kBytes);
            group.interleaved = buffer;
          }
        }
        for (uint32_t t = 0; t < count; t += kWidest) {
          const uint32_t n = count - t < kWidest ? count - t : kWidest;
          float* rows_out[kWidest];
          for (uint32_t i = 0; i < n; ++i) rows_out[i] = out + (size_t{first} + t + i) * out_stride + row;
          task.activations = packed + t * token_words;
          task.out = rows_out;
          task.tokens = static_cast<int>(n);
          run_tile(width_index(n), task);
        }
      }
    }
  }
};

}  // namespace
}  // namespace spillway::cpu
