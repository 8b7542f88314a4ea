#include "backend/vulkan/plan.h"

#include <algorithm>

#include "base/checked.h"
#include "base/limits.h"
#include "numerics/attention.h"
#include "numerics/layout.h"

namespace spillway::vulkan {
namespace {

// Sequences of a step that may list all pages each; they share most of them, so this is more than a step
// uses.
constexpr uint32_t kFullPageLists = 64;
// Rows and (row, rank) pairs of a step are workgroups in y, of which every device has this many.
constexpr uint32_t kMaxGroupsY = 65535;
// A word index within a buffer is a signed 32-bit number in SPIR-V.
constexpr uint64_t kMaxMatrixBytes = uint64_t{8} << 30;

uint64_t kv_words(backend::KvType type, uint64_t heads, uint64_t length) {
  return heads * backend::kPagePositions * (type == backend::KvType::kF16 ? ceil_div(length, 2) : length);
}

// A sequence fills all pages at most, and has a rotation for each position where positions turn.
uint32_t longest_sequence_chunks(const backend::DeviceSpec& spec) {
  uint64_t positions = uint64_t{spec.kv_pages} * backend::kPagePositions;
  for (const backend::RopeTable& table : spec.ropes)
    positions = std::min<uint64_t>(positions, table.positions);
  return static_cast<uint32_t>(ceil_div(positions, numerics::kAttentionChunk));
}

// Of attention.comp's parts: the heads of a layer are as many as fit in the widest buffer.
uint64_t parts_bytes(const backend::DeviceSpec& spec, uint64_t chunks) {
  uint64_t widest = 0, floats = 0;
  for (const uint32_t width : spec.sizes.buffer_widths) widest = std::max<uint64_t>(widest, width);
  for (const backend::DeviceLayer& layer : spec.layers)
    if (layer.on_device && layer.value_length > 0)
      floats = std::max(floats, widest / layer.value_length * chunks * (uint64_t{layer.value_length} + 2));
  return floats * 4;
}

std::array<QuantizedPieces, kForms> add_quantized(Arena& arena, uint64_t rows, uint64_t width) {
  std::array<QuantizedPieces, kForms> pieces;
  pieces[kForm32] = {.q = arena.add(rows * width),
                     .d = arena.add(rows * ceil_div(width, 32) * 4),
                     .sums = arena.add(rows * ceil_div(width, 32) * 4)};
  pieces[kForm256] = {.q = arena.add(rows * width),
                      .d = arena.add(rows * ceil_div(width, 256) * 4),
                      .sums = arena.add(rows * ceil_div(width, 16) * 4)};
  return pieces;
}

}  // namespace

bool is_single_row(const backend::WeightShape& shape) {
  return shape.type == TensorType::kF32 && shape.rows == 1;
}

uint64_t weight_bytes(const backend::WeightShape& shape) {
  return is_single_row(shape) ? uint64_t{shape.cols} * 4
                              : numerics::interleaved_bytes(shape.type, shape.rows, shape.cols);
}

Plan::Plan(const backend::DeviceSpec& spec) {
  const backend::ComputeSizes& sizes = spec.sizes;
  for (const backend::WeightShape& shape : spec.weights)
    weight.push_back(shape.on_device ? weights.add(weight_bytes(shape)) : kNoPiece);

  uint64_t page_words = 0;
  for (const backend::DeviceLayer& layer : spec.layers) {
    KvPlace place;
    if (layer.on_device) {
      place.keys_word = static_cast<uint32_t>(page_words);
      page_words += kv_words(spec.kv_types.key, layer.kv_heads, layer.key_length);
      place.values_word = static_cast<uint32_t>(page_words);
      page_words += kv_words(spec.kv_types.value, layer.kv_heads, layer.value_length);
    }
    kv_place.push_back(place);
  }
  kv_page_bytes = page_words * 4;
  for (uint32_t p = 0; p < spec.kv_pages && kv_page_bytes > 0; ++p) page.push_back(kv.add(kv_page_bytes));

  for (const backend::PoolSpec& pool : spec.pools) {
    auto& slots = slot.emplace_back();
    for (uint32_t s = 0; s < pool.slots; ++s) slots.push_back(experts.add(pool.layout.slot_bytes()));
    slot_addresses.push_back(scratch.add(std::max(pool.slots, 1u) * uint64_t{8}));
  }

  max_rows = sizes.max_rows;
  max_pairs = sizes.max_rows * sizes.max_experts_used;
  max_step_pages = std::min(sizes.max_rows, kFullPageLists) * spec.kv_pages;
  max_chunks = longest_sequence_chunks(spec);
  const uint64_t rows = sizes.max_rows, pairs = max_pairs;
  step = scratch.add((3 * rows + max_step_pages) * 4);
  page_addresses = scratch.add(spec.kv_pages * uint64_t{8});
  for (const uint32_t width : sizes.buffer_widths) buffer.push_back(scratch.add(rows * width * 4));
  for (const backend::RopeTable& table : spec.ropes)
    rope.push_back(scratch.add(uint64_t{table.positions} * table.length * 4));
  for (const backend::DeviceLayer& layer : spec.layers)
    slot_table.push_back(layer.pool != UINT32_MAX ? scratch.add(layer.n_experts * uint64_t{4}) : kNoPiece);
  inputs = add_quantized(scratch, std::max<uint64_t>(rows, spec.logits_rows), sizes.max_width);
  expert_inputs = add_quantized(scratch, pairs, sizes.expert_width);
  router_logits = scratch.add(rows * sizes.experts * 4);
  group_scores = scratch.add(rows * sizes.experts * 4);
  ids = scratch.add(pairs * 4);
  expert_weights = scratch.add(pairs * 4);
  tiles = scratch.add((1 + pairs) * 16);
  tile_pairs = scratch.add(pairs * 4);
  chosen_slots = scratch.add(sizes.experts * uint64_t{4});
  expert_gate = scratch.add(pairs * sizes.expert_width * 4);
  expert_up = scratch.add(pairs * sizes.expert_width * 4);
  expert_out = scratch.add(pairs * sizes.hidden * 4);
  logits_in = scratch.add(uint64_t{spec.logits_rows} * sizes.hidden * 4);
  attention_parts = scratch.add(parts_bytes(spec, max_chunks));
  logits = scratch.add(uint64_t{spec.logits_rows} * spec.vocabulary * 4);
}

Result<void> check_spec(const backend::DeviceSpec& spec) {
  const backend::ComputeSizes& sizes = spec.sizes;
  const uint64_t pairs = uint64_t{sizes.max_rows} * std::max(sizes.max_experts_used, 1u);
  if (pairs > kMaxGroupsY)
    return unsupported(
        "vulkan: a micro-batch of {} tokens with {} experts each; their product may be {} at most",
        sizes.max_rows, sizes.max_experts_used, kMaxGroupsY);
  if (spec.logits_rows > kMaxGroupsY)
    return unsupported("vulkan: {} rows of logits at once, need at most {}", spec.logits_rows, kMaxGroupsY);
  if (sizes.max_head_length > limits::kMaxHeadLength)
    return unsupported("vulkan: heads of {} values, need at most {}", sizes.max_head_length,
                       limits::kMaxHeadLength);
  for (const backend::WeightShape& shape : spec.weights)
    if (shape.on_device && weight_bytes(shape) > kMaxMatrixBytes)
      return unsupported("vulkan: a matrix of {} bytes, need at most {}", weight_bytes(shape),
                         kMaxMatrixBytes);
  for (const backend::PoolSpec& pool : spec.pools)
    if (pool.layout.slot_bytes() > kMaxMatrixBytes)
      return unsupported("vulkan: an expert of {} bytes, need at most {}", pool.layout.slot_bytes(),
                         kMaxMatrixBytes);
  return {};
}

}  // namespace spillway::vulkan
