// Attention and the KV store over 16 lanes (docs/numerics.md, "Attention").
//
// Scores: a lane owns a position, since keys lie as [position/16][d][position%16]; values: a lane owns an
// output value. Up to four queries form a tile that loads each key and value once. Queries go in batches, and
// all tiles of a batch run over one chunk of 128 positions before the next chunk, so that the chunk stays in
// the cache; for more than one tile, halves are widened once, into scratch (75 GMAC/s against 60 with a
// widening in every tile).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels.h"
#include "numerics/attention.h"

namespace spillway::cpu {
namespace {

constexpr uint32_t kChunk = numerics::kAttentionChunk;
constexpr uint32_t kChunkGroups = kChunk / 16;
constexpr uint32_t kChunkPages = kChunk / kPagePositions;
constexpr uint32_t kTileQueries = 4;
constexpr uint32_t kBatchQueries = 64;  // 64 scaled queries of 128 values are 32 KiB

// Widest power of two that keeps `tile` times it in registers.
constexpr uint32_t side_by_side(uint32_t tile) {
  uint32_t n = 8;
  while (n > 1 && n * tile > kAccumulators) n /= 2;
  return n;
}

SW_INLINE F32x16 load_stored(const float* p) { return load(p); }
SW_INLINE F32x16 load_stored(const uint16_t* p) { return load_f16(p); }
SW_INLINE F32x16 load_stored_n(const float* p, uint32_t n) { return load_n(p, n); }
SW_INLINE F32x16 load_stored_n(const uint16_t* p, uint32_t n) { return load_f16_n(p, n); }

// One head's part of one chunk. Groups and pages without a key in use repeat one that has, so that they can
// be read.
template <class KeyElement, class ValueElement>
struct Chunk {
  using Key = KeyElement;
  using Value = ValueElement;
  const Key* keys[kChunkGroups];     // each [d][16]
  const Value* values[kChunkPages];  // each [position % 32][value_length]
};

// The same, and where the next chunk lies (or this one again where there is none): it is prefetched.
template <class Key, class Value>
struct ChunkAndNext : Chunk<Key, Value> {
  const Key* next_keys[kChunkGroups];
  const Value* next_values[kChunkPages];
};

constexpr uint32_t kLineBytes = 64;

// A query of the batch: what is known of it between chunks. `out` gathers the sum of weighted values.
struct QueryState {
  const float* scaled;  // (key_length)
  float* out;
  uint32_t first_key, end_key;
  float m, l;
  bool any;
};

// A query's part in the current tile; begin..end are positions within the chunk.
struct TileQuery {
  QueryState* state;
  float* p;    // (128) scores, then weights
  float* sum;  // (value_length) weighted values of the chunk
  uint32_t begin, end;
  float mc, lc;
};

// Scores of groups first..last-1 (and of those that share a step with them) into p.
template <uint32_t kTile, class Data>
void score_groups(const Data& chunk, uint32_t key_length, uint32_t first, uint32_t last,
                  const TileQuery* tile) {
  constexpr uint32_t kAtOnce = side_by_side(kTile);
  constexpr uint32_t kPerLine = kLineBytes / 16 / sizeof(typename Data::Key);
  for (uint32_t g = first / kAtOnce * kAtOnce; g < last; g += kAtOnce) {
    F32x16 acc[kTile][kAtOnce];
#pragma GCC unroll 4
    for (uint32_t t = 0; t < kTile; ++t)
#pragma GCC unroll 8
      for (uint32_t k = 0; k < kAtOnce; ++k) acc[t][k] = zero();
    const float* q[kTile];
    for (uint32_t t = 0; t < kTile; ++t) q[t] = tile[t].state->scaled;
    const typename Data::Key* keys[kAtOnce];
    for (uint32_t k = 0; k < kAtOnce; ++k) keys[k] = chunk.keys[g + k];
    for (uint32_t d = 0; d < key_length; ++d) {
      F32x16 query[kTile];
#pragma GCC unroll 4
      for (uint32_t t = 0; t < kTile; ++t) query[t] = splat(q[t][d]);
#pragma GCC unroll 8
      for (uint32_t k = 0; k < kAtOnce; ++k) {
        const F32x16 key = load_stored(keys[k] + size_t{d} * 16);
        if constexpr (requires { chunk.next_keys; })
          if (d % kPerLine == 0) __builtin_prefetch(chunk.next_keys[g + k] + size_t{d} * 16, 0, 2);
#pragma GCC unroll 4
        for (uint32_t t = 0; t < kTile; ++t) acc[t][k] = acc[t][k] + query[t] * key;
      }
    }
#pragma GCC unroll 4
    for (uint32_t t = 0; t < kTile; ++t)
#pragma GCC unroll 8
      for (uint32_t k = 0; k < kAtOnce; ++k) store(tile[t].p + (g + k) * 16, acc[t][k]);
  }
}

// Scores to weights: maximum, exp, sum. Weights of masked positions are not written.
SW_INLINE void weigh(TileQuery& t) {
  const uint32_t first = t.begin / 16, last = (t.end + 15) / 16;
  const auto mask_of = [&](uint32_t g) {
    const uint32_t from = g == first ? t.begin % 16 : 0;
    const uint32_t to = t.end - g * 16 < 16 ? t.end - g * 16 : 16;
    return first_lanes(to) & !first_lanes(from);
  };
  const F32x16 lowest = splat(-__builtin_inff());
  F32x16 m = lowest;
  for (uint32_t g = first; g < last; ++g) m = max_select(select(mask_of(g), load(t.p + g * 16), lowest), m);
  t.mc = fold_max(m);
  const F32x16 top = splat(t.mc);
  F32x16 lanes = zero();
  for (uint32_t g = first; g < last; ++g) {
    const F32x16 p = keep(mask_of(g), exp(load(t.p + g * 16) - top));
    lanes = lanes + p;
    store(t.p + g * 16, p);
  }
  t.lc = fold_sum(lanes);
}

// sum += p * value over positions begin..end-1 for the kRegisters*16 (or, where kTail, the first n) values
// from v.
template <uint32_t kTile, uint32_t kRegisters, bool kTail, class Data>
SW_INLINE void add_values(const Data& chunk, uint32_t value_length, uint32_t v, uint32_t n, uint32_t begin,
                          uint32_t end, const TileQuery* tile) {
  F32x16 acc[kTile][kRegisters];
  const float* p[kTile];
#pragma GCC unroll 4
  for (uint32_t t = 0; t < kTile; ++t) {
    p[t] = tile[t].p;
#pragma GCC unroll 8
    for (uint32_t k = 0; k < kRegisters; ++k)
      acc[t][k] = kTail ? load_n(tile[t].sum + v, n) : load(tile[t].sum + v + k * 16);
  }
  for (uint32_t i = begin; i < end;) {
    const uint32_t page = i / kPagePositions;
    const uint32_t stop = (page + 1) * kPagePositions < end ? (page + 1) * kPagePositions : end;
    const size_t at = size_t{i % kPagePositions} * value_length + v;
    const auto* value = chunk.values[page] + at;
    [[maybe_unused]] const auto* next = value;
    if constexpr (requires { chunk.next_values; }) next = chunk.next_values[page] + at;
    for (; i < stop; ++i, value += value_length, next += value_length) {
      if constexpr (requires { chunk.next_values; }) {
        constexpr uint32_t kPerLine = kLineBytes / 16 / sizeof(*value);
#pragma GCC unroll 8
        for (uint32_t k = 0; k < kRegisters; k += kPerLine) __builtin_prefetch(next + k * 16, 0, 2);
      }
      F32x16 weight[kTile];
#pragma GCC unroll 4
      for (uint32_t t = 0; t < kTile; ++t) weight[t] = splat(p[t][i]);
#pragma GCC unroll 8
      for (uint32_t k = 0; k < kRegisters; ++k) {
        const F32x16 x = kTail ? load_stored_n(value, n) : load_stored(value + k * 16);
#pragma GCC unroll 4
        for (uint32_t t = 0; t < kTile; ++t) acc[t][k] = acc[t][k] + weight[t] * x;
      }
    }
  }
#pragma GCC unroll 4
  for (uint32_t t = 0; t < kTile; ++t)
#pragma GCC unroll 8
    for (uint32_t k = 0; k < kRegisters; ++k) {
      if constexpr (kTail)
        store_n(tile[t].sum + v, acc[t][k], n);
      else
        store(tile[t].sum + v + k * 16, acc[t][k]);
    }
}

template <uint32_t kTile, class Data>
void weighted_values(const Data& chunk, uint32_t value_length, uint32_t begin, uint32_t end,
                     const TileQuery* tile) {
  if (begin >= end) return;
  constexpr uint32_t kAtOnce = side_by_side(kTile);
  uint32_t v = 0;
  for (; value_length - v >= kAtOnce * 16; v += kAtOnce * 16)
    add_values<kTile, kAtOnce, false>(chunk, value_length, v, 0, begin, end, tile);
  if constexpr (kAtOnce == 8)
    for (; value_length - v >= 64; v += 64)
      add_values<kTile, 4, false>(chunk, value_length, v, 0, begin, end, tile);
  for (; value_length - v >= 16; v += 16)
    add_values<kTile, 1, false>(chunk, value_length, v, 0, begin, end, tile);
  if (v < value_length)
    add_values<kTile, 1, true>(chunk, value_length, v, value_length - v, begin, end, tile);
}

// y = flush(y * a + x * b), n values.
SW_INLINE void blend(float* y, F32x16 a, const float* x, F32x16 b, uint32_t count) {
  for_lanes(
      count, [=](uint32_t i) { store(y + i, flush(load(y + i) * a + flush(load(x + i)) * b)); },
      [=](uint32_t i, uint32_t n) {
        store_n(y + i, flush(load_n(y + i, n) * a + flush(load_n(x + i, n)) * b), n);
      });
}

// Takes a chunk's result into a query's state.
SW_INLINE void combine(const TileQuery& t, uint32_t value_length) {
  QueryState& s = *t.state;
  if (!s.any) {
    s.any = true;
    s.m = t.mc;
    s.l = t.lc;
    return quantize_f32(t.sum, value_length, s.out);  // flush(sum)
  }
  const float top = t.mc > s.m ? t.mc : s.m;
  const F32x16 a = exp(splat(s.m - top)), b = exp(splat(t.mc - top));
  s.l = s.l * first(a) + t.lc * first(b);
  s.m = top;
  blend(s.out, a, t.sum, b, value_length);
}

// Floats from halves.
SW_INLINE void widen(const uint16_t* from, size_t count, float* to) {
  size_t i = 0;
  for (; count - i >= 16; i += 16) store(to + i, load_f16(from + i));
  const auto rest = static_cast<uint32_t>(count - i);
  if (rest > 0) store_n(to + i, load_f16_n(from + i, rest), rest);
}

// Where `count` elements lie as floats: widened into `floats`, or as they are.
SW_INLINE const float* as_floats(const uint16_t* from, size_t count, float* floats) {
  widen(from, count, floats);
  return floats;
}
SW_INLINE const float* as_floats(const float* from, size_t, float*) { return from; }

// The chunk as floats, as far as positions begin..end-1 need it; halves go to `floats`.
template <class Key, class Value>
SW_INLINE Chunk<float, float> widen_chunk(const Chunk<Key, Value>& chunk, const KvView& kv, uint32_t begin,
                                          uint32_t end, float* floats) {
  Chunk<float, float> wide;
  const size_t group = size_t{kv.key_length} * 16, page = size_t{kv.value_length} * kPagePositions;
  const uint32_t first = begin / 16, last = (end - 1) / 16;
  for (uint32_t g = first; g <= last; ++g) wide.keys[g] = as_floats(chunk.keys[g], group, floats + g * group);
  for (uint32_t g = 0; g < kChunkGroups; ++g)
    if (g < first || g > last) wide.keys[g] = wide.keys[g < first ? first : last];
  floats += group * kChunkGroups;
  for (uint32_t p = begin / kPagePositions; p <= (end - 1) / kPagePositions; ++p) {
    const uint32_t rows =
        end - p * kPagePositions < kPagePositions ? end - p * kPagePositions : kPagePositions;
    wide.values[p] = as_floats(chunk.values[p], size_t{rows} * kv.value_length, floats + p * page);
  }
  return wide;
}

template <uint32_t kTile, class Data>
void run_tile(const Data& chunk, const KvView& kv, TileQuery* tile) {
  uint32_t first = kChunk, last = 0;         // any of them
  uint32_t all_begin = 0, all_end = kChunk;  // all of them
  for (uint32_t t = 0; t < kTile; ++t) {
    first = tile[t].begin < first ? tile[t].begin : first;
    last = tile[t].end > last ? tile[t].end : last;
    all_begin = tile[t].begin > all_begin ? tile[t].begin : all_begin;
    all_end = tile[t].end < all_end ? tile[t].end : all_end;
    for_lanes(
        kv.value_length, [&](uint32_t i) { store(tile[t].sum + i, zero()); },
        [&](uint32_t i, uint32_t n) { store_n(tile[t].sum + i, zero(), n); });
  }
  score_groups<kTile>(chunk, kv.key_length, first / 16, (last + 15) / 16, tile);
  for (uint32_t t = 0; t < kTile; ++t) weigh(tile[t]);
  // A key that only some of the queries see is added for those alone: its value might be an infinity, and 0
  // times that is not 0. The order of each query's keys stays ascending.
  const uint32_t common_begin = all_begin < all_end ? all_begin : last;
  const uint32_t common_end = all_begin < all_end ? all_end : last;
  for (uint32_t t = 0; kTile > 1 && t < kTile; ++t) {
    const uint32_t end = tile[t].end < common_begin ? tile[t].end : common_begin;
    weighted_values<1>(chunk, kv.value_length, tile[t].begin, end, tile + t);
  }
  weighted_values<kTile>(chunk, kv.value_length, common_begin, common_end, tile);
  for (uint32_t t = 0; kTile > 1 && t < kTile; ++t)
    weighted_values<1>(chunk, kv.value_length, common_end, tile[t].end, tile + t);
  for (uint32_t t = 0; t < kTile; ++t) combine(tile[t], kv.value_length);
}

template <class Data>
void run_tiles(const Data& chunk, const KvView& kv, TileQuery* queries, uint32_t n, float* space) {
  const size_t padded_value = (size_t{kv.value_length} + 15) / 16 * 16;
  for (uint32_t i = 0; i < n;) {
    const uint32_t tile = n - i >= 4 ? 4 : n - i >= 2 ? 2 : 1;
    for (uint32_t t = 0; t < tile; ++t) {
      queries[i + t].p = space + t * kChunk;
      queries[i + t].sum = space + kTileQueries * kChunk + t * padded_value;
    }
    if (tile == 4) run_tile<4>(chunk, kv, queries + i);
    if (tile == 2) run_tile<2>(chunk, kv, queries + i);
    if (tile == 1) run_tile<1>(chunk, kv, queries + i);
    i += tile;
  }
}

// Scratch: the scaled queries of a batch, scores and sums of a tile, a chunk as floats.
inline size_t attention_scratch_bytes(uint32_t head_length) {
  const size_t padded = (size_t{head_length} + 15) / 16 * 16;
  return (kBatchQueries * padded + kTileQueries * (kChunk + padded) + 2 * kChunk * padded) * sizeof(float);
}

template <class Key, class Value>
void attend_batch(const KvView& kv, uint32_t kv_head, const AttentionQuery* queries, uint32_t n,
                  AttentionParams params, float* scratch) {
  const size_t padded_key = (size_t{kv.key_length} + 15) / 16 * 16;
  const size_t padded_value = (size_t{kv.value_length} + 15) / 16 * 16;
  float* tile_space = scratch + n * padded_key;
  float* wide = tile_space + kTileQueries * (kChunk + padded_value);
  QueryState states[kBatchQueries];
  uint32_t first_key = UINT32_MAX, end_key = 0;
  const F32x16 scale = splat(params.scale);
  for (uint32_t i = 0; i < n; ++i) {
    const AttentionQuery& query = queries[i];
    float* scaled = scratch + i * padded_key;
    for_lanes(
        kv.key_length, [&](uint32_t d) { store(scaled + d, flush(load(query.q + d) * scale)); },
        [&](uint32_t d, uint32_t left) { store(scaled + d, flush(load_n(query.q + d, left) * scale)); });
    states[i] = {scaled, query.out, query.first_key, query.end_key, 0.0f, 0.0f, false};
    if (query.first_key >= query.end_key) continue;
    first_key = query.first_key < first_key ? query.first_key : first_key;
    end_key = query.end_key > end_key ? query.end_key : end_key;
  }

  const size_t key_head = size_t{kv_head} * kPagePositions * kv.key_length;
  const size_t value_head = size_t{kv_head} * kPagePositions * kv.value_length;
  for (uint32_t origin = first_key / kChunk * kChunk; origin < end_key; origin += kChunk) {
    // Queries that have a key in this chunk, and the groups that any of them needs.
    TileQuery active[kBatchQueries];
    uint32_t n_active = 0, first = kChunk, last = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t from = states[i].first_key > origin ? states[i].first_key - origin : 0;
      const uint32_t to = states[i].end_key <= origin           ? 0
                          : states[i].end_key - origin < kChunk ? states[i].end_key - origin
                                                                : kChunk;
      if (from >= to) continue;
      active[n_active++] = {states + i, nullptr, nullptr, from, to, 0.0f, 0.0f};
      first = from < first ? from : first;
      last = to > last ? to : last;
    }
    if (n_active == 0) continue;

    const auto keys_at = [&](uint32_t position) {
      return static_cast<const Key*>(kv.key_pages[position / kPagePositions]) + key_head +
             size_t{position % kPagePositions} * kv.key_length;
    };
    const auto values_at = [&](uint32_t position) {
      return static_cast<const Value*>(kv.value_pages[position / kPagePositions]) + value_head;
    };
    ChunkAndNext<Key, Value> chunk;
    for (uint32_t g = 0; g < kChunkGroups; ++g) {
      const uint32_t used = g<first / 16 ? first / 16 : g>(last - 1) / 16 ? (last - 1) / 16 : g;
      chunk.keys[g] = keys_at(origin + used * 16);
      const uint32_t next = origin + kChunk + g * 16;
      chunk.next_keys[g] = next < end_key ? keys_at(next) : chunk.keys[g];
    }
    for (uint32_t p = first / kPagePositions; p <= (last - 1) / kPagePositions; ++p) {
      chunk.values[p] = values_at(origin + p * kPagePositions);
      const uint32_t next = origin + kChunk + p * kPagePositions;
      chunk.next_values[p] = next < end_key ? values_at(next) : chunk.values[p];
    }
    if (n_active > kTileQueries)
      run_tiles(widen_chunk<Key, Value>(chunk, kv, first, last, wide), kv, active, n_active, tile_space);
    else
      run_tiles(chunk, kv, active, n_active, tile_space);
  }

  for (uint32_t i = 0; i < n; ++i) {
    QueryState& s = states[i];
    F32x16 a = splat(1.0f);
    if (s.any && params.sink != nullptr) {
      const float sink = *params.sink;
      const float top = sink > s.m ? sink : s.m;
      a = exp(splat(s.m - top));
      s.l = s.l * first(a) + first(exp(splat(sink - top)));
    }
    const F32x16 r = reciprocal(splat(s.l));
    const auto finish = [=](F32x16 v) {
      if (params.sink != nullptr) v = flush(v * a);
      return v * r;
    };
    for_lanes(
        kv.value_length, [&](uint32_t d) { store(s.out + d, s.any ? finish(load(s.out + d)) : zero()); },
        [&](uint32_t d, uint32_t left) {
          store_n(s.out + d, s.any ? finish(load_n(s.out + d, left)) : zero(), left);
        });
  }
}

// Calls body with a key and a value of the types that the cache holds.
template <class Body>
SW_INLINE void by_types(const KvView& kv, Body&& body) {
  const bool short_key = kv.types.key == KvType::kF16, short_value = kv.types.value == KvType::kF16;
  if (short_key && short_value) return body(uint16_t{}, uint16_t{});
  if (short_key) return body(uint16_t{}, float{});
  if (short_value) return body(float{}, uint16_t{});
  body(float{}, float{});
}

void attention(const KvView& kv, uint32_t kv_head, std::span<const AttentionQuery> queries,
               AttentionParams params, Scratch scratch) {
  auto* space = reinterpret_cast<float*>(scratch.data);
  const AttentionQuery* all = queries.data();
  const auto count = static_cast<uint32_t>(queries.size());
  for (uint32_t i = 0; i < count; i += kBatchQueries) {
    const uint32_t n = count - i < kBatchQueries ? count - i : kBatchQueries;
    by_types(kv, [&]<class Key, class Value>(Key, Value) {
      attend_batch<Key, Value>(kv, kv_head, all + i, n, params, space);
    });
  }
}

// ---- the store ----

SW_INLINE void store_element(float* p, const F32x16& x, uint32_t n, size_t stride) {
  float lanes[16];
  store(lanes, flush(x));
  for (uint32_t i = 0; i < n; ++i) p[i * stride] = lanes[i];
}
SW_INLINE void store_element(uint16_t* p, const F32x16& x, uint32_t n, size_t stride) {
  uint16_t lanes[16];
  store_f16(lanes, x);
  for (uint32_t i = 0; i < n; ++i) p[i * stride] = lanes[i];
}

template <class Key, class Value>
void store_kv_as(const KvView& kv, uint32_t position, const float* key, const float* value) {
  const uint32_t in_page = position % kPagePositions;
  auto* keys = static_cast<Key*>(kv.key_pages[position / kPagePositions]);
  auto* values = static_cast<Value*>(kv.value_pages[position / kPagePositions]);
  keys += size_t{in_page / 16} * kv.key_length * 16 + in_page % 16;
  values += size_t{in_page} * kv.value_length;
  for (uint32_t h = 0; h < kv.kv_heads; ++h) {
    for_lanes(
        kv.key_length, [&](uint32_t d) { store_element(keys + d * 16, load(key + d), 16, 16); },
        [&](uint32_t d, uint32_t n) { store_element(keys + d * 16, load_n(key + d, n), n, 16); });
    for_lanes(
        kv.value_length, [&](uint32_t d) { store_element(values + d, load(value + d), 16, 1); },
        [&](uint32_t d, uint32_t n) { store_element(values + d, load_n(value + d, n), n, 1); });
    keys += size_t{kPagePositions} * kv.key_length;
    values += size_t{kPagePositions} * kv.value_length;
    key += kv.key_length;
    value += kv.value_length;
  }
}

void store_kv(const KvView& kv, uint32_t position, const float* key, const float* value) {
  by_types(kv,
           [&]<class Key, class Value>(Key, Value) { store_kv_as<Key, Value>(kv, position, key, value); });
}

}  // namespace
}  // namespace spillway::cpu
