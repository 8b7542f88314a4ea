// Gathers the (row, rank) pairs whose expert has a slot into tiles of pairs that share an expert, so that the
// product unpacks each block once for up to `tile` tokens. One workgroup; the order of pairs within an expert
// varies from run to run, and no result depends on it.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "numerics.glsl"

#define THREADS 256
layout(local_size_x = THREADS) in;

layout(push_constant) uniform Parameters {
  Words ids;             // (n_pairs)
  Words slots;           // (n_experts): slot of each expert, or kNone
  Words slot_addresses;  // 2 words a slot
  WordsOut tiles;        // as product.comp reads them
  WordsOut pairs;        // (n_pairs)
  uint n_pairs;
  uint n_experts;
  uint tile;
} p;


shared uint counts[4096];  // pairs of each expert; then where its next pair goes
shared uint pair_sums[THREADS];
shared uint tile_sums[THREADS];

void main() {
  const uint thread = gl_LocalInvocationID.x;
  const uint per_thread = (p.n_experts + THREADS - 1u) / THREADS;
  const uint begin = min(thread * per_thread, p.n_experts), end = min(begin + per_thread, p.n_experts);
  for (uint e = begin; e < end; ++e) counts[e] = 0u;
  barrier();
  for (uint i = thread; i < p.n_pairs; i += THREADS) {
    const uint e = p.ids.w[i];
    if (p.slots.w[e] != kNone) atomicAdd(counts[e], 1u);
  }
  barrier();

  uint n_pairs = 0u, n_tiles = 0u;
  for (uint e = begin; e < end; ++e) {
    n_pairs += counts[e];
    n_tiles += (counts[e] + p.tile - 1u) / p.tile;
  }
  pair_sums[thread] = n_pairs;
  tile_sums[thread] = n_tiles;
  barrier();
  for (uint reach = 1u; reach < THREADS; reach *= 2u) {  // inclusive sums
    const uint more_pairs = thread >= reach ? pair_sums[thread - reach] : 0u;
    const uint more_tiles = thread >= reach ? tile_sums[thread - reach] : 0u;
    barrier();
    pair_sums[thread] += more_pairs;
    tile_sums[thread] += more_tiles;
    barrier();
  }
  if (thread == THREADS - 1u) p.tiles.w[0] = tile_sums[thread];

  uint first = pair_sums[thread] - n_pairs, tile = tile_sums[thread] - n_tiles;
  for (uint e = begin; e < end; ++e) {
    const uint n = counts[e];
    counts[e] = first;
    if (n == 0u) continue;
    const uint slot = p.slots.w[e];
    for (uint done = 0u; done < n; done += p.tile) {
      const uint at = 4u + 4u * tile++;
      p.tiles.w[at] = p.slot_addresses.w[2u * slot];
      p.tiles.w[at + 1u] = p.slot_addresses.w[2u * slot + 1u];
      p.tiles.w[at + 2u] = first + done;
      p.tiles.w[at + 3u] = min(n - done, p.tile);
    }
    first += n;
  }
  barrier();
  for (uint i = thread; i < p.n_pairs; i += THREADS) {
    const uint e = p.ids.w[i];
    if (p.slots.w[e] != kNone) p.pairs.w[atomicAdd(counts[e], 1u)] = i;
  }
}
