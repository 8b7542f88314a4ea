// From router logits to experts and weights (numerics/router.h). A workgroup takes one row.
//
// Each choice is the best value that ranks after the one before, so that nothing needs to be marked as taken.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "numerics.glsl"
#include "reduce.glsl"

#define THREADS 64
layout(local_size_x = THREADS) in;

layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Shared { float f[]; };

const uint kSoftmax = 0u, kSigmoid = 1u, kSoftmaxOfTopK = 2u;  // numerics::Gating
const uint kMaxUsed = 256u, kMaxGroups = 4096u;

layout(push_constant) uniform Parameters {
  Shared logits;        // (rows, n_experts), overwritten
  Shared group_scores;  // (rows, n_experts) of scratch
  Floats bias;          // (n_experts), where has_bias
  WordsOut ids;         // (rows, n_used)
  WordsOut ids_again;   // the same, for the host to read after the step; or ids itself
  FloatsOut weights;    // (rows, n_used)
  uint n_experts;
  uint n_used;
  uint gating;
  uint has_bias;
  uint n_groups;
  uint n_groups_used;
  uint group_top;
  uint renormalise;
  float scale;
} p;

shared float best_values[THREADS];
shared uint best_ids[THREADS];
shared float lane_values[16];
shared float row_value;
shared uint chosen[kMaxUsed];
shared float chosen_weights[kMaxUsed];
shared uint allowed[kMaxGroups / 32u];  // a bit a group

float rank_value(float x) { return is_nan(x) ? minus_infinity() : x; }

// Whether (a, i) ranks before (b, j); kNone as an index ranks behind everything.
bool ranks_before(float a, uint i, float b, uint j) {
  if (i == kNone || j == kNone) return j == kNone && i != kNone;
  const float va = rank_value(a), vb = rank_value(b);
  return va > vb || (va == vb && i < j);
}

float choice(uint at, uint e) {
  precise float value = p.logits.f[at + e];
  if (p.has_bias != 0u) value = value + flush(p.bias.f[e]);
  return value;
}

// Brings the best of all threads' candidates to [0].
void reduce_best(uint thread, float value, uint id) {
  best_values[thread] = value;
  best_ids[thread] = id;
  barrier();
  for (uint reach = THREADS / 2u; reach > 0u; reach /= 2u) {
    if (thread < reach && ranks_before(best_values[thread + reach], best_ids[thread + reach],
                                       best_values[thread], best_ids[thread])) {
      best_values[thread] = best_values[thread + reach];
      best_ids[thread] = best_ids[thread + reach];
    }
    barrier();
  }
}

void memory_barrier() {
  memoryBarrierBuffer();
  barrier();
}

void softmax_of_row(uint thread, uint at) {
  float m = minus_infinity();
  for (uint e = thread; e < p.n_experts; e += THREADS) m = max_select(p.logits.f[at + e], m);
  best_values[thread] = m;
  barrier();
  for (uint reach = THREADS / 2u; reach > 0u; reach /= 2u) {
    if (thread < reach) best_values[thread] = max_select(best_values[thread + reach], best_values[thread]);
    barrier();
  }
  m = best_values[0];
  for (uint e = thread; e < p.n_experts; e += THREADS) {
    precise float below = p.logits.f[at + e] - m;
    p.logits.f[at + e] = exp_of(below);
  }
  memory_barrier();
  if (thread < 16u) {
    precise float lane = 0.0;
    for (uint e = thread; e < p.n_experts; e += 16u) lane = lane + p.logits.f[at + e];
    lane_values[thread] = lane;
  }
  barrier();
  if (thread == 0u) {
    float lanes[16];
    [[unroll]] for (uint l = 0u; l < 16u; ++l) lanes[l] = lane_values[l];
    row_value = reciprocal(fold_lanes(lanes));
  }
  memory_barrier();
  for (uint e = thread; e < p.n_experts; e += THREADS) {
    precise float probability = p.logits.f[at + e] * row_value;
    p.logits.f[at + e] = probability;
  }
}

// Marks the best groups in `allowed`. Their score: the sum of the best values in rank order, from +0.
void choose_groups(uint thread, uint at) {
  const uint length = p.n_experts / p.n_groups;
  for (uint g = thread; g < p.n_groups; g += THREADS) {
    float last = 0.0;
    uint last_id = kNone;
    precise float score = 0.0;
    for (uint n = 0u; n < min(p.group_top, length); ++n) {
      float best = 0.0;
      uint best_id = kNone;
      for (uint e = g * length; e < (g + 1u) * length; ++e) {
        const float value = choice(at, e);
        if (last_id != kNone && !ranks_before(last, last_id, value, e)) continue;
        if (ranks_before(value, e, best, best_id)) {
          best = value;
          best_id = e;
        }
      }
      score = score + best;
      last = best;
      last_id = best_id;
    }
    p.group_scores.f[at + g] = score;
  }
  for (uint w = thread; w < (p.n_groups + 31u) / 32u; w += THREADS) allowed[w] = 0u;
  memory_barrier();
  float last = 0.0;
  uint last_id = kNone;
  for (uint n = 0u; n < p.n_groups_used; ++n) {
    float best = 0.0;
    uint best_id = kNone;
    for (uint g = thread; g < p.n_groups; g += THREADS) {
      const float value = p.group_scores.f[at + g];
      if (last_id != kNone && !ranks_before(last, last_id, value, g)) continue;
      if (ranks_before(value, g, best, best_id)) {
        best = value;
        best_id = g;
      }
    }
    reduce_best(thread, best, best_id);
    last = best_values[0];
    last_id = best_ids[0];
    if (thread == 0u) allowed[last_id / 32u] |= 1u << (last_id % 32u);
    barrier();
  }
}

void main() {
  const uint thread = gl_LocalInvocationID.x, row = gl_WorkGroupID.x;
  const uint at = row * p.n_experts;
  if (p.gating == kSoftmax) softmax_of_row(thread, at);
  if (p.gating == kSigmoid)
    for (uint e = thread; e < p.n_experts; e += THREADS) p.logits.f[at + e] = sigmoid(p.logits.f[at + e]);
  memory_barrier();
  const bool limited = p.n_groups_used != p.n_groups;
  if (limited) choose_groups(thread, at);

  const uint group_length = p.n_experts / p.n_groups;
  float last = 0.0;
  uint last_id = kNone;
  for (uint n = 0u; n < p.n_used; ++n) {
    float best = 0.0;
    uint best_id = kNone;
    for (uint e = thread; e < p.n_experts; e += THREADS) {
      const uint g = e / group_length;
      if (limited && (allowed[g / 32u] & (1u << (g % 32u))) == 0u) continue;
      const float value = choice(at, e);
      if (last_id != kNone && !ranks_before(last, last_id, value, e)) continue;
      if (ranks_before(value, e, best, best_id)) {
        best = value;
        best_id = e;
      }
    }
    reduce_best(thread, best, best_id);
    last = best_values[0];
    last_id = best_ids[0];
    if (thread == 0u) {
      chosen[n] = last_id;
      chosen_weights[n] = p.logits.f[at + last_id];
    }
    barrier();
  }

  if (thread != 0u) return;
  if (p.gating == kSoftmaxOfTopK) {
    float m = minus_infinity();
    for (uint n = 0u; n < p.n_used; ++n) m = max_select(chosen_weights[n], m);
    float lanes[16];
    [[unroll]] for (uint l = 0u; l < 16u; ++l) lane_values[l] = 0.0;
    for (uint n = 0u; n < p.n_used; ++n) {
      precise float below = chosen_weights[n] - m;
      const float e = exp_of(below);
      chosen_weights[n] = e;
      precise float lane = lane_values[n % 16u] + e;
      lane_values[n % 16u] = lane;
    }
    [[unroll]] for (uint l = 0u; l < 16u; ++l) lanes[l] = lane_values[l];
    const float inverse = reciprocal(fold_lanes(lanes));
    for (uint n = 0u; n < p.n_used; ++n) {
      precise float weight = chosen_weights[n] * inverse;
      chosen_weights[n] = weight;
    }
  }
  if (p.renormalise != 0u) {
    const float least = uintBitsToFloat(0x38800000u);  // 2^-14
    precise float sum = 0.0;
    for (uint n = 0u; n < p.n_used; ++n) sum = sum + chosen_weights[n];
    const float inverse = reciprocal(sum < least ? least : sum);
    for (uint n = 0u; n < p.n_used; ++n) {
      precise float weight = chosen_weights[n] * inverse;
      chosen_weights[n] = weight;
    }
  }
  for (uint n = 0u; n < p.n_used; ++n) {
    precise float weight = chosen_weights[n];
    if (p.scale != 1.0) weight = weight * p.scale;
    p.ids.w[row * p.n_used + n] = chosen[n];
    p.ids_again.w[row * p.n_used + n] = chosen[n];
    p.weights.f[row * p.n_used + n] = weight;
  }
}
