// The CPU's kernels: one table of functions per instruction set, chosen once at run time. Every function
// equals the scalar definition in numerics/ bit for bit, for every shape and alignment that its comment
// allows. All functions are pure: they touch only their arguments, take no lock and may run on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/shapes.h"
#include "base/tensor_type.h"

namespace spillway::cpu {

using backend::kGroupRows;
using backend::kPagePositions;
using backend::KvType;
using backend::Layout;
using backend::Matrix;

// How activations are held for a product; fixed by the weight's type (activation_kind).
enum class ActivationKind : uint8_t {
  kF32,   // for F32, F16, BF16 weights: flushed float32
  kQ32,   // int8 blocks of 32, one sum a block
  kQ256,  // int8 blocks of 256, sixteen sums a block
};
ActivationKind activation_kind(TensorType type);

// Activations of `tokens` rows of `cols` values, not owned. Row t starts at f32 + t*cols, or q + t*cols with
// its scales at d + t*blocks() and its sums at sums + t*sums_per_row().
struct Activations {
  ActivationKind kind = ActivationKind::kF32;
  uint32_t tokens = 0;
  uint32_t cols = 0;
  float* f32 = nullptr;     // (tokens, cols)
  int8_t* q = nullptr;      // (tokens, cols)
  float* d = nullptr;       // (tokens, cols / L)
  int16_t* sums = nullptr;  // (tokens, cols / 32) for kQ32, (tokens, cols / 16) for kQ256

  uint32_t block_length() const { return kind == ActivationKind::kQ256 ? 256 : 32; }
  uint32_t blocks() const { return cols / block_length(); }
  uint32_t sums_per_row() const { return kind == ActivationKind::kQ256 ? cols / 16 : cols / 32; }

  // The rows from `token` on.
  Activations from(uint32_t token) const {
    Activations rest = *this;
    rest.tokens -= token;
    if (kind == ActivationKind::kF32) {
      rest.f32 += size_t{token} * cols;
    } else {
      rest.q += size_t{token} * cols;
      rest.d += size_t{token} * blocks();
      rest.sums += size_t{token} * sums_per_row();
    }
    return rest;
  }
};

// Scratch that one thread lends to a kernel. `bytes` is at least Kernels::scratch_bytes(largest cols);
// 64-byte aligned.
struct Scratch {
  std::byte* data = nullptr;
  size_t bytes = 0;
};

// Which rows of the activations take part, in order: indices, or 0..n-1 where `index` is null (the grouped
// form for experts gathers the tokens that chose an expert). Output row i belongs to the i-th of them.
struct TokenSet {
  const uint32_t* index = nullptr;
  uint32_t n = 0;
  uint32_t at(uint32_t i) const { return index ? index[i] : i; }
};

// One sequence's keys and values of one layer. Page p holds positions p*32 .. p*32+31:
//   keys   [kv_head][position/16][d][position%16]   (a lane owns a position)
//   values [kv_head][position][d]                   (a lane owns an output value)
struct KvView {
  backend::KvTypes types;
  uint32_t kv_heads = 0;
  uint32_t key_length = 0;    // d of a key
  uint32_t value_length = 0;  // d of a value
  void* const* key_pages = nullptr;
  void* const* value_pages = nullptr;
};

// One query of one head. Keys first_key .. end_key-1 take part (causal: end_key = position + 1).
struct AttentionQuery {
  const float* q = nullptr;  // (key_length), not yet scaled
  float* out = nullptr;      // (value_length)
  uint32_t first_key = 0;
  uint32_t end_key = 0;
};

struct AttentionParams {
  float scale = 1.0f;
  const float* sink = nullptr;  // one extra logit without a value (gpt-oss), or null
};

struct Kernels {
  const char* name;  // "scalar", "avx2", "avx512"

  // Bytes of scratch that product() and attention() need for rows of `cols` values and heads of
  // `head_length`.
  size_t (*scratch_bytes)(uint32_t cols, uint32_t head_length);

  // Quantizes (or, for kF32, copies and flushes) row `token` of `to` from x (to.cols).
  void (*quantize)(const float* x, const Activations& to, uint32_t token);

  // out[i*out_stride + r] = row r of w times activation row tokens.at(i), for r in [group_begin*16,
  // group_end*16) and r < w.rows. `x.kind` is activation_kind(w.type), x.cols == w.cols.
  void (*product)(const Matrix& w, uint32_t group_begin, uint32_t group_end, const Activations& x,
                  TokenSet tokens, float* out, size_t out_stride, Scratch scratch);

  // Dequantizes row r of w: w.cols values (token embeddings).
  void (*dequantize_row)(const Matrix& w, uint32_t row, float* out);

  // A matrix from the file's layout to groups (numerics::interleave): rows * row_bytes to groups() * 16 *
  // row_bytes.
  void (*interleave)(TensorType type, uint64_t rows, uint64_t cols, const std::byte* file, std::byte* groups);

  // y = rms_norm(x) * w, n values; w may be null (no weight). y may be x.
  void (*rms_norm)(const float* x, const float* w, uint32_t n, float eps, float* y);

  // Rotates `n_heads` vectors of `head_length` in place; cos and sin hold rope_length/2 values for this
  // position. Pairs are (i, i + rope_length/2) for kNeox, (2i, 2i+1) for kNormal; values past rope_length
  // stay.
  void (*rope_neox)(float* x, uint32_t n_heads, uint32_t head_length, uint32_t rope_length, const float* cos,
                    const float* sin);
  void (*rope_normal)(float* x, uint32_t n_heads, uint32_t head_length, uint32_t rope_length,
                      const float* cos, const float* sin);

  // Writes the key (kv_heads, key_length) and value (kv_heads, value_length) of `position` into its page.
  void (*store_kv)(const KvView& kv, uint32_t position, const float* key, const float* value);

  // Attention of queries that share a sequence and a key-value head; any mix of positions and heads.
  void (*attention)(const KvView& kv, uint32_t kv_head, std::span<const AttentionQuery> queries,
                    AttentionParams params, Scratch scratch);

  // In place softmax of n values.
  void (*softmax)(float* x, uint32_t n);

  // gate[i] = silu(gate[i]) * up[i].
  void (*silu_mul)(float* gate, const float* up, uint32_t n);

  // y[i] += x[i];  y[i] += scale * x[i] (product rounded, then the sum).
  void (*add)(float* y, const float* x, uint32_t n);
  void (*add_scaled)(float* y, const float* x, float scale, uint32_t n);
};

enum class InstructionSet : uint8_t { kScalar, kAvx2, kAvx512 };

// The best set that this processor (and operating system) can run. kAvx512 means F, BW, VL, DQ and VNNI.
InstructionSet best_instruction_set();

// Requires: `set` <= best_instruction_set().
const Kernels& kernels(InstructionSet set);

}  // namespace spillway::cpu
