// What the engine says of matrices, caches and sizes, in the terms that every backend shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/tensor_type.h"

namespace spillway::backend {

// Rows per interleaved group: the int32 lanes of a 512-bit register. See docs/numerics.md, "Layout".
inline constexpr uint32_t kGroupRows = 16;

enum class Layout : uint8_t {
  kFile,         // rows one after another, as in the GGUF file
  kInterleaved,  // groups of 16 rows, zero-padded
};

// A weight matrix in host memory, not owned: (rows, cols), row r produces output r.
struct Matrix {
  TensorType type = TensorType::kF32;
  Layout layout = Layout::kFile;
  uint32_t rows = 0;
  uint32_t cols = 0;  // a multiple of the type's block length
  const std::byte* data = nullptr;

  uint32_t groups() const { return (rows + kGroupRows - 1) / kGroupRows; }
};

// How keys or values are kept.
enum class KvType : uint8_t { kF16, kF32 };
constexpr uint32_t kv_value_bytes(KvType type) { return type == KvType::kF16 ? 2 : 4; }
constexpr const char* kv_type_name(KvType type) { return type == KvType::kF16 ? "f16" : "f32"; }

struct KvTypes {
  KvType key = KvType::kF16;
  KvType value = KvType::kF16;
  bool operator==(const KvTypes&) const = default;
};

// Positions of one KV page; a multiple of 16 and a divisor of the attention chunk (128).
inline constexpr uint32_t kPagePositions = 32;

// Rotations by position, made on the host, not owned.
struct RopeTable {
  bool neox = true;            // pairs (i, i + length/2), else (2i, 2i + 1)
  uint32_t length = 0;         // rotated values of a head
  uint32_t positions = 0;      // rows of cos and sin
  const float* cos = nullptr;  // (positions, length/2)
  const float* sin = nullptr;
};

// Sizes that bound every step, fixed at load.
struct ComputeSizes {
  uint32_t max_rows = 0;   // tokens of a micro-batch
  uint32_t max_width = 0;  // widest row that is multiplied, routed experts aside
  uint32_t hidden = 0;
  uint32_t experts = 0;
  uint32_t max_experts_used = 0;
  uint32_t expert_width = 0;
  uint32_t max_head_length = 0;
  std::vector<uint32_t> buffer_widths;  // of BufferId 0, 1, ...
};

}  // namespace spillway::backend
