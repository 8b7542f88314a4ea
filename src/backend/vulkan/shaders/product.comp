// Rows of a weight matrix times activation rows (numerics/product.h). A thread owns a row of a group and one
// segment of its sum; the segments of a row are then added as the written tree. Up to TILE tokens share each
// unpacked block.
//
// Tokens come in order (a dense weight), or by tiles of (row, rank) pairs that chose the same expert (see
// group.comp), whose weights begin at the address in the tile.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "numerics.glsl"
#include "formats.glsl"

layout(constant_id = 0) const uint TILE = 1;  // 1 or 8

layout(local_size_x = 16, local_size_y = SEGMENTS) in;

layout(push_constant) uniform Parameters {
  Words weights;   // of a dense product
  Words tiles;     // else: n_tiles, 3 unused words, then per tile: address (2 words), first pair, pairs
  Words pairs;     // pair numbers by tile
  Words q;         // (x rows, cols / 4)
  Floats d;        // (x rows, cols / BLOCK_LENGTH)
  Ints sums;       // (x rows, cols / 16 or cols / 32)
  FloatsOut to;    // (tokens or pairs, out_stride)
  Floats bias;     // (rows), where has_bias
  uint rows;
  uint cols;
  uint tokens;     // of a dense product
  uint x_stride;   // of Floats `d` as F32 activations
  uint out_stride;
  uint tiled;
  uint pair_divisor;   // x row of a pair: pair / pair_divisor
  uint weight_word;    // where the matrix begins behind the tile's address, in words
  uint column_stride;  // F32, F16, BF16: 16, or 1 for a single row
  uint has_bias;
} p;

#define THREADS (16 * SEGMENTS)
shared float main_sums[8 * THREADS];
#if !defined(FLOAT_TYPE) && MINIMA
shared float min_sums[8 * THREADS];
#endif

float add2(float a, float b) {
  precise float sum = a + b;
  return sum;
}

// Segment s of token t and row r lies at (t * SEGMENTS + s) * 16 + r.
#define SUM_AT(sums, t, s, r) sums[((t) * SEGMENTS + (s)) * 16u + (r)]
#if SEGMENTS == 8
#define TREE(sums, t, r)                                                                        \
  add2(add2(add2(SUM_AT(sums, t, 0, r), SUM_AT(sums, t, 1, r)),                                 \
            add2(SUM_AT(sums, t, 2, r), SUM_AT(sums, t, 3, r))),                                \
       add2(add2(SUM_AT(sums, t, 4, r), SUM_AT(sums, t, 5, r)),                                 \
            add2(SUM_AT(sums, t, 6, r), SUM_AT(sums, t, 7, r))))
#else
#define TREE(sums, t, r)                                      \
  add2(add2(SUM_AT(sums, t, 0, r), SUM_AT(sums, t, 1, r)),    \
       add2(SUM_AT(sums, t, 2, r), SUM_AT(sums, t, 3, r)))
#endif

void main() {
  const uint r = gl_LocalInvocationID.x;
  const uint segment = gl_LocalInvocationID.y;

  Words weights = p.weights;
  uint weight_word = 0u, first = gl_WorkGroupID.y * TILE, count;
  if (p.tiled != 0u) {
    if (gl_WorkGroupID.y >= p.tiles.w[0]) return;
    const uint at = 4u + 4u * gl_WorkGroupID.y;
    weights = Words(uvec2(p.tiles.w[at], p.tiles.w[at + 1u]));
    weight_word = p.weight_word;
    first = p.tiles.w[at + 2u];
    count = p.tiles.w[at + 3u];
  } else {
    count = min(p.tokens - first, TILE);
  }
  uint x_row[8];  // past `count`, those of the last token again: computed and dropped
  [[unroll]] for (uint t = 0u; t < TILE; ++t) {
    const uint token = first + min(t, count - 1u);
    x_row[t] = p.tiled != 0u ? p.pairs.w[token] / p.pair_divisor : token;
  }

#ifdef FLOAT_TYPE
  const uint n_blocks = p.cols;
  const uint group_words = p.cols * p.column_stride * BLOCK_BYTES / 4u;
#else
  const uint n_blocks = p.cols / BLOCK_LENGTH;
  const uint group_words = n_blocks * RECORD_WORDS;
#endif
  const uint per_segment = (n_blocks + SEGMENTS - 1u) / SEGMENTS;
  const uint begin = min(segment * per_segment, n_blocks);
  const uint end = min(begin + per_segment, n_blocks);

  const uint groups = (p.rows + 15u) / 16u;
  for (uint group = gl_WorkGroupID.x; group < groups; group += gl_NumWorkGroups.x) {
    const uint group_base = weight_word + group * group_words;
    precise float main_sum[8];
    [[unroll]] for (uint t = 0u; t < TILE; ++t) main_sum[t] = 0.0;

#ifdef FLOAT_TYPE
    if (r < p.column_stride) {
      for (uint c = begin; c < end; ++c) {
        const float w = weight_value(weights, group_base, c, p.column_stride, r);
        [[unroll]] for (uint t = 0u; t < TILE; ++t) {
          precise float sum = main_sum[t] + w * flush(p.d.f[x_row[t] * p.x_stride + c]);
          main_sum[t] = sum;
        }
      }
    }
#else
#if MINIMA
    precise float min_sum[8];
    [[unroll]] for (uint t = 0u; t < TILE; ++t) min_sum[t] = 0.0;
#endif
    for (uint b = begin; b < end; ++b) {
      const uint base = group_base + b * RECORD_WORDS;
      int isum[8];
      [[unroll]] for (uint t = 0u; t < TILE; ++t) isum[t] = 0;
#if MINIMA
      int msum[8];
      [[unroll]] for (uint t = 0u; t < TILE; ++t) msum[t] = 0;
#endif
      for (uint j = 0u; j < SUB_BLOCKS; ++j) {
        uint codes[SUB_LENGTH / 4];
        [[unroll]] for (uint w = 0u; w < SUB_LENGTH / 4; ++w)
          codes[w] = codes4(weights, base, r, j * (SUB_LENGTH / 4) + w);
        const int scale = sub_scale(weights, base, r, j);
#if MINIMA
        const int minimum = sub_minimum(weights, base, r, j);
#endif
        [[unroll]] for (uint t = 0u; t < TILE; ++t) {
          const uint q_at = (x_row[t] * p.cols + b * BLOCK_LENGTH + j * SUB_LENGTH) / 4u;
          int inner = 0;
          [[unroll]] for (uint w = 0u; w < SUB_LENGTH / 4; ++w) inner += dot4(codes[w], p.q.w[q_at + w]);
#if BIAS != 0 || MINIMA
#if BLOCK_LENGTH == 256
          const uint sum_at = (x_row[t] * p.cols + b * BLOCK_LENGTH + j * SUB_LENGTH) / 16u;
          int q_sum = p.sums.i[sum_at];
#if SUB_LENGTH == 32
          q_sum += p.sums.i[sum_at + 1u];
#endif
#else
          const int q_sum = p.sums.i[x_row[t] * n_blocks + b];
#endif
#endif
          #if BIAS != 0
          inner -= BIAS * q_sum;
#endif
          isum[t] += scale * inner;
#if MINIMA
          msum[t] += minimum * q_sum;
#endif
        }
      }
      const float d = block_scale(weights, base, r);
#if MINIMA
      const float dm = block_minimum(weights, base, r);
#endif
      [[unroll]] for (uint t = 0u; t < TILE; ++t) {
        const float dx = p.d.f[x_row[t] * n_blocks + b];
        precise float sum = main_sum[t] + (d * dx) * float(isum[t]);
        main_sum[t] = sum;
#if MINIMA
        precise float low = min_sum[t] + (dm * dx) * float(msum[t]);
        min_sum[t] = low;
#endif
      }
    }
#endif

    [[unroll]] for (uint t = 0u; t < TILE; ++t) {
      SUM_AT(main_sums, t, segment, r) = main_sum[t];
#if !defined(FLOAT_TYPE) && MINIMA
      SUM_AT(min_sums, t, segment, r) = min_sum[t];
#endif
    }
    barrier();
    const uint row = group * 16u + r;
    for (uint t = segment; t < count; t += SEGMENTS) {
      precise float y = TREE(main_sums, t, r);
#if !defined(FLOAT_TYPE) && MINIMA
      y = y + TREE(min_sums, t, r);
#endif
      if (row < p.rows) {
        if (p.has_bias != 0u) y = y + p.bias.f[row];
        // The row numbers again from memory: an index that varies by thread would put the array there too.
        const uint token = first + t;
        p.to.f[(p.tiled != 0u ? p.pairs.w[token] : token) * p.out_stride + row] = y;
      }
    }
    barrier();
  }
}
