// Cuts a product into tiles: tokens in packs that stay in the second-level cache, rows in groups of 16. A
// group's weights are read from memory once per pack and meet every tile of it.
#pragma once

#include "backend/cpu/product_tile.h"

namespace spillway::cpu {
namespace {

// Packed activations of one pass: they and a group of weights fit in a second-level cache of 512 KiB. 132
// tokens are eleven full tiles; more make the pass over the weights no cheaper.
inline constexpr size_t kPackBytes = 384 << 10;
inline constexpr uint32_t kPackTokens = 132;

// Bytes that a packed token takes at most: 10/8 of its values for blocks of 32, 73/64 for blocks of 256.
constexpr size_t packed_token_bytes(uint32_t cols) { return size_t{cols} / 4 * 5; }

// Tokens of one pass: full tiles of `widest`.
constexpr uint32_t pack_tokens(uint32_t cols, uint32_t widest) {
  const size_t fit = kPackBytes / (packed_token_bytes(cols) + 1);
  const size_t most = fit < kPackTokens ? fit : kPackTokens;
  return most < widest ? widest : static_cast<uint32_t>(most / widest * widest);
}

// A row group's file rows, interleaved: Q8_0 takes most, 576 bytes for 16 x 32 values.
constexpr size_t interleaved_group_bytes(uint32_t cols) { return size_t{cols} / 32 * 576 + kChunkBytes; }

constexpr size_t product_scratch_bytes(uint32_t cols, uint32_t widest) {
  return pack_tokens(cols, widest) * packed_token_bytes(cols) + interleaved_group_bytes(cols) + 64;
}

template <class V, class Format>
struct Product {
  static constexpr int kWidthCount = sizeof(V::kWidths) / sizeof(int);
  static constexpr int kWidest = V::kWidths[0];

  // Tokens of one tile, with its place in the packed activations.
  struct Cut {
    int index;  // of V::kWidths
    uint32_t first, count;
  };

  // The narrowest tile that holds n tokens; or the next narrower one, where two of it do.
  static int width_index(uint32_t n) {
    int i = 0;
    while (i + 1 < kWidthCount && 2 * static_cast<uint32_t>(V::kWidths[i + 1]) >= n) ++i;
    return i;
  }

  static int cut(uint32_t tokens, Cut* cuts) {
    int n = 0;
    for (uint32_t first = 0; first < tokens; ++n) {
      const int index = width_index(tokens - first);
      const auto width = static_cast<uint32_t>(V::kWidths[index]);
      cuts[n] = {index, first, tokens - first < width ? tokens - first : width};
      first += cuts[n].count;
    }
    return n;
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
    const size_t row_words = size_t{blocks} * packed_block_words(Format::kLength, kForm);

    for (uint32_t first = 0; first < tokens.n; first += pass) {
      const uint32_t count = tokens.n - first < pass ? tokens.n - first : pass;
      Cut cuts[kPackTokens / kWidest + 4];
      const int n_cuts = cut(count, cuts);
      int32_t* end = packed;
      int32_t* activations[kPackTokens / kWidest + 4];
      for (int c = 0; c < n_cuts; ++c) {
        const int width = V::kWidths[cuts[c].index];
        activations[c] = end;
        Packer<Format::kLength, kForm>::pack(x, tokens, first + cuts[c].first, cuts[c].count, width, end);
        end += row_words * static_cast<size_t>(width);
      }
      for (uint32_t g = group_begin; g < group_end; ++g) {
        const uint32_t row = g * kGroupRows;
        RowGroup group;
        TileTask task;
        task.weights = &group;
        task.blocks = blocks;
        task.rows = static_cast<int>(w.rows - row < kGroupRows ? w.rows - row : kGroupRows);
        if (g + 1 < group_end) group.next = data + (size_t{row} + kGroupRows) * row_bytes;
        if (w.layout == Layout::kInterleaved) {
          group.interleaved = true;
          group.records = {data + size_t{g} * kGroupRows * row_bytes, size_t{kGroupRows} * Format::kBytes, 0};
        } else {
          group.buffer = buffer;
          for (uint32_t r = 0; r < kGroupRows; ++r) {  // rows that don't exist repeat the last one
            const uint32_t real =
                r < static_cast<uint32_t>(task.rows) ? r : static_cast<uint32_t>(task.rows) - 1;
            group.rows[r] = data + (size_t{row} + real) * row_bytes;
          }
          if (n_cuts > 1) {  // several tiles: the whole group once
            group.records = group.template interleave<V, Format>(0, blocks);
            group.interleaved = true;
            group.next = nullptr;
          }
        }
        for (int c = 0; c < n_cuts; ++c) {
          float* rows_out[kWidest];
          for (uint32_t i = 0; i < cuts[c].count; ++i)
            rows_out[i] = out + (size_t{first} + cuts[c].first + i) * out_stride + row;
          task.activations = activations[c];
          task.out = rows_out;
          task.tokens = static_cast<int>(cuts[c].count);
          run_tile(cuts[c].index, task);
          group.next = nullptr;  // fetched
        }
      }
    }
  }
};

}  // namespace
}  // namespace spillway::cpu
