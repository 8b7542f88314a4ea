// The operations that a forward pass is made of, as a device offers them. The forward pass
// (engine/forward.cc) is written once against this interface; a device runs each call at once, or records it.
// Each operation is defined in numerics/ (docs/numerics.md), so every device gives the same bits.
//
// Activations live in numbered buffers of (rows, width) float32 that the device owns; a row is one token of
// the step. Weights are numbered as the engine's weight table numbers them.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "numerics/router.h"

namespace spillway::backend {

using WeightId = uint32_t;
using BufferId = uint32_t;
inline constexpr WeightId kNoWeight = UINT32_MAX;

// One sequence's tokens within a step: rows first_row .. first_row+rows-1 at positions first_position and on.
struct Piece {
  uint32_t first_row = 0;
  uint32_t rows = 0;
  uint32_t first_position = 0;
  std::span<const uint32_t> pages;  // the sequence's KV pages, in order of position
};

// A micro-batch. The spans live until the step has run.
struct Step {
  std::span<const int32_t> tokens;      // one a row
  std::span<const uint32_t> positions;  // one a row
  std::span<const Piece> pieces;        // cover all rows, in order
  uint32_t rows() const { return static_cast<uint32_t>(tokens.size()); }
};

struct Linear {
  WeightId weight = kNoWeight;
  WeightId bias = kNoWeight;
  BufferId out = 0;
};

struct RopeSpec {
  uint32_t table = 0;  // index of the rope
  uint32_t heads = 0;
  uint32_t head_length = 0;
};

struct AttentionSpec {
  uint32_t layer = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t key_length = 0;
  uint32_t value_length = 0;
  float scale = 1.0f;
  uint32_t window = 0;  // 0 = all positions
};

struct ExpertWeights {
  WeightId gate = kNoWeight, up = kNoWeight, down = kNoWeight;
};

struct MoeSpec {
  uint32_t layer = 0;
  numerics::RouterParams routing;  // its bias is null: the device has it as a weight
  WeightId router = kNoWeight;
  WeightId selection_bias = kNoWeight;
  std::span<const ExpertWeights> experts;
};

class Compute {
 public:
  virtual ~Compute() = default;

  // A step begins; the operations below refer to its rows until the next begin().
  virtual void begin(const Step& step) = 0;

  virtual void embed(WeightId table, BufferId out) = 0;
  virtual void rms_norm(BufferId x, uint32_t width, WeightId weight, float epsilon, BufferId y) = 0;
  // Norm of each head of each row on its own, in place, with one weight of head_length.
  virtual void head_norm(BufferId x, uint32_t heads, uint32_t head_length, WeightId weight,
                         float epsilon) = 0;
  // Several products of the same activations.
  virtual void linear(BufferId x, std::span<const Linear> targets) = 0;
  virtual void rope(BufferId x, const RopeSpec& spec) = 0;
  virtual void store_kv(BufferId key, BufferId value, const AttentionSpec& spec) = 0;
  virtual void attention(BufferId q, const AttentionSpec& spec, BufferId out) = 0;
  // gate = silu(gate) * up, `width` values a row.
  virtual void silu_mul(BufferId gate, BufferId up, uint32_t width) = 0;
  // y = y + x, and y = y + x * sigmoid(gate) with one gate value a row.
  virtual void add(BufferId y, BufferId x, uint32_t width) = 0;
  virtual void add_gated(BufferId y, BufferId x, BufferId gate, uint32_t width) = 0;
  // Routes each row to its experts and writes their weighted sum.
  virtual void moe(BufferId x, const MoeSpec& spec, BufferId out) = 0;
  // Norm and output head of the named rows: logits row i (vocabulary values) to out + i * out_stride.
  virtual void logits(BufferId x, std::span<const uint32_t> rows, WeightId norm, float epsilon,
                      WeightId output, float* out, size_t out_stride) = 0;

  // Waits for the device; the first error since begin().
  virtual Result<void> finish() = 0;
};

}  // namespace spillway::backend
