// Where everything that a device holds lies in its memory: bytes() counts with it, prepare() allocates it.
#pragma once

#include <array>
#include <vector>

#include "backend/device.h"
#include "backend/vulkan/memory.h"

namespace spillway::vulkan {

// Activations of a product in the two int8 forms (numerics/activation.h): q packed by four into words, d
// float32, sums int32. F32 activations are read where they are.
struct QuantizedPieces {
  uint32_t q = 0, d = 0, sums = 0;
};
enum QuantizedForm : uint32_t { kForm32, kForm256, kForms };

struct Plan {
  explicit Plan(const backend::DeviceSpec& spec);

  Arena weights, kv, scratch, experts;

  static constexpr uint32_t kNoPiece = UINT32_MAX;
  std::vector<uint32_t> weight;             // by WeightId, kNoPiece where not on the device
  std::vector<uint32_t> page;               // by KV page
  std::vector<std::vector<uint32_t>> slot;  // by pool

  // Scratch.
  std::vector<uint32_t> buffer;          // by BufferId
  std::vector<uint32_t> rope;            // cosines, then sines
  std::vector<uint32_t> slot_table;      // by layer, kNoPiece without experts on the device
  std::vector<uint32_t> slot_addresses;  // by pool
  std::array<QuantizedPieces, kForms> inputs, expert_inputs;
  uint32_t step, page_addresses, router_logits, group_scores, ids, expert_weights, tiles, tile_pairs,
      chosen_slots;
  uint32_t expert_gate, expert_up, expert_out, logits_in, logits, attention_parts;

  // Words of a KV page where a layer's keys and values begin.
  struct KvPlace {
    uint32_t keys_word = 0, values_word = 0;
  };
  std::vector<KvPlace> kv_place;  // by layer
  uint64_t kv_page_bytes = 0;

  // The step buffer, in words: tokens, positions, first pages, each max_rows, then pages.
  uint32_t max_rows = 0;
  uint32_t max_step_pages = 0;
  uint32_t max_pairs = 0;
  uint32_t max_chunks = 0;  // of attention, in any sequence

  backend::DeviceBytes bytes() const {
    return {weights.total_bytes(), kv.total_bytes(), scratch.total_bytes(), experts.total_bytes()};
  }
};

// A matrix of one F32 row is kept as it is, without fifteen rows of zeros between its values.
bool is_single_row(const backend::WeightShape& shape);
uint64_t weight_bytes(const backend::WeightShape& shape);

// What the shaders can't do: kUnsupported with the value and the limit.
Result<void> check_spec(const backend::DeviceSpec& spec);

}  // namespace spillway::vulkan
