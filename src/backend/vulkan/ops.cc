// The operations of a step that are not products.
#include <algorithm>
#include <cstring>

#include "backend/vulkan/run.h"
#include "base/assert.h"
#include "base/checked.h"
#include "numerics/norm.h"

namespace spillway::vulkan {

using namespace backend;

namespace {

// A workgroup of a single row's attention takes at least this many chunks of a full context, and no more
// than this many share a head: 32 heads of 32 are enough workgroups for the largest GPU.
constexpr uint32_t kChunksPerSplit = 4, kMostSplits = 32;

enum Elementwise : uint32_t { kSiluMul, kAdd, kAddGated };  // elementwise.comp's OPERATION

}  // namespace

void VulkanDevice::begin(const Step& step) {
  SW_ASSERT(step.rows() <= spec_.sizes.max_rows);
  step_ = step;
  rows_ = step.rows();
  keep_ = rows_ == 1 ? Lane::Keep::kYes : Lane::Keep::kNo;
  if (lost_) return;
  uint64_t n_pages = 0;
  const bool has_kv = !plan_->page.empty();
  for (const Piece& piece : step.pieces) n_pages += has_kv ? piece.pages.size() : 0;
  if (n_pages > plan_->max_step_pages)
    return lose({Error::Kind::kUnsupported,
                 fmt::format("vulkan: the sequences of a step list {} KV pages, need at most {}", n_pages,
                             plan_->max_step_pages)});
  const Range to = piece(plan_->step);
  const uint64_t bytes = (3 * uint64_t{plan_->max_rows} + n_pages) * 4;
  const auto staged = stream_staging_.take(stream_, bytes);
  if (!staged) return lose(staged.error());
  auto* words = reinterpret_cast<uint32_t*>(staged->mapped);
  std::memcpy(words, step.tokens.data(), rows_ * 4);
  std::memcpy(words + plan_->max_rows, step.positions.data(), rows_ * 4);
  uint32_t* first_page = words + 2 * size_t{plan_->max_rows};
  uint32_t* pages = words + 3 * size_t{plan_->max_rows};
  uint32_t at = 0;
  for (const Piece& piece : step.pieces) {
    for (uint32_t r = 0; r < piece.rows; ++r) first_page[piece.first_row + r] = at;
    if (!has_kv) continue;
    std::memcpy(pages + at, piece.pages.data(), piece.pages.size() * 4);
    at += static_cast<uint32_t>(piece.pages.size());
  }
  CommandList& list = stream_list(Lane::Keep::kNo);
  list.barrier();
  list.copy(*staged, to);
}

void VulkanDevice::embed(WeightId table, BufferId out) {
  if (lost_) return;
  const WeightShape& shape = spec_.weights[table];
  for (const int32_t token : step_.tokens) SW_ASSERT(token >= 0 && static_cast<uint32_t>(token) < shape.rows);
  struct {
    VkDeviceAddress table, tokens, to;
    uint32_t cols, out_stride, column_stride;
  } push = {weight_address(table), step_words(0),
            buffer(out).address,   shape.cols,
            buffer(out).stride,    is_single_row(shape) ? 1u : kGroupRows};
  run(fmt::format("embed_{}", spillway::info(shape.type).name), {},
      {workgroups(static_cast<uint32_t>(ceil_div(shape.cols, 4))), rows_}, push, Before::kBarrier);
}

void VulkanDevice::norm(Rows x, Rows y, uint32_t rows, uint32_t heads, uint32_t n, WeightId weight,
                        float epsilon) {
  struct {
    VkDeviceAddress x, y, weight;
    uint32_t n, x_stride, y_stride, has_weight;
    float inverse_n, epsilon;
  } push = {x.address, y.address, weight_address(weight),        n,
            x.stride,  y.stride,  weight != kNoWeight ? 1u : 0u, numerics::inverse_of(n),
            epsilon};
  run("norm", {}, {heads, rows}, push, Before::kBarrier);
}

void VulkanDevice::rms_norm(BufferId x, uint32_t width, WeightId weight, float epsilon, BufferId y) {
  if (!lost_) norm(buffer(x), buffer(y), rows_, 1, width, weight, epsilon);
}

void VulkanDevice::head_norm(BufferId x, uint32_t heads, uint32_t head_length, WeightId weight,
                             float epsilon) {
  if (!lost_) norm(buffer(x), buffer(x), rows_, heads, head_length, weight, epsilon);
}

void VulkanDevice::rope(BufferId x, const RopeSpec& spec) {
  if (lost_) return;
  const RopeTable& table = spec_.ropes[spec.table];
  const uint32_t table_pairs = table.length / 2;
  const VkDeviceAddress cosines = address(plan_->rope[spec.table]);
  struct {
    VkDeviceAddress x, cosines, sines, positions;
    uint32_t stride, heads, head_length, pairs, neox;
  } push = {buffer(x).address, cosines,          cosines + uint64_t{table.positions} * table_pairs * 4,
            step_words(1),     buffer(x).stride, spec.heads,
            spec.head_length,  table_pairs,      table.neox ? 1u : 0u};
  run("rope", {}, {workgroups(spec.heads * table_pairs), rows_}, push, Before::kBarrier);
}

namespace {

std::vector<uint32_t> kv_constants(const KvTypes& types) {
  return {types.key == KvType::kF16 ? 1u : 0u, types.value == KvType::kF16 ? 1u : 0u};
}

uint32_t kv_words(KvType type, uint32_t length) { return type == KvType::kF16 ? (length + 1) / 2 : length; }

}  // namespace

void VulkanDevice::store_kv(BufferId key, BufferId value, const AttentionSpec& spec) {
  if (lost_) return;
  const Plan::KvPlace place = plan_->kv_place[spec.layer];
  struct {
    VkDeviceAddress key, value, positions, first_page, pages, page_addresses;
    uint32_t key_stride, value_stride, kv_heads, key_length, value_length, keys_word, values_word;
  } push = {buffer(key).address, buffer(value).address, step_words(1),
            step_words(2),       step_words(3),         address(plan_->page_addresses),
            buffer(key).stride,  buffer(value).stride,  spec.kv_heads,
            spec.key_length,     spec.value_length,     place.keys_word,
            place.values_word};
  const uint32_t words = spec.kv_heads * (kv_words(spec_.kv_types.key, spec.key_length) +
                                          kv_words(spec_.kv_types.value, spec.value_length));
  run("store_kv", kv_constants(spec_.kv_types), {workgroups(words), rows_}, push, Before::kBarrier);
}

void VulkanDevice::attention(BufferId q, const AttentionSpec& spec, BufferId out) {
  if (lost_) return;
  const Plan::KvPlace place = plan_->kv_place[spec.layer];
  // Fixed at load, so that the commands of a single-token step stay the same as its sequence grows.
  const uint32_t splits = std::clamp(plan_->max_chunks / kChunksPerSplit, 1u, kMostSplits);
  struct {
    VkDeviceAddress q, to, positions, first_page, pages, page_addresses, parts;
    uint32_t q_stride, out_stride, group, key_length, value_length, keys_word, values_word;
    float scale;
    uint32_t window, max_chunks, splits;
  } push = {buffer(q).address,
            buffer(out).address,
            step_words(1),
            step_words(2),
            step_words(3),
            address(plan_->page_addresses),
            address(plan_->attention_parts),
            buffer(q).stride,
            buffer(out).stride,
            spec.heads / spec.kv_heads,
            spec.key_length,
            spec.value_length,
            place.keys_word,
            place.values_word,
            spec.scale,
            spec.window,
            plan_->max_chunks,
            splits};
  enum Mode : uint32_t { kWhole, kParts, kCombine };
  const auto run_mode = [&](Mode mode, Groups groups) {
    std::vector<uint32_t> constants = kv_constants(spec_.kv_types);
    constants.push_back(mode);
    run("attention", std::move(constants), groups, push, Before::kBarrier);
  };
  if (rows_ > 1) return run_mode(kWhole, {spec.heads, rows_});
  run_mode(kParts, {spec.heads, 1, splits});
  run_mode(kCombine, {spec.heads, 1});
}

void VulkanDevice::elementwise(uint32_t operation, Rows y, Rows x, Rows gate, uint32_t rows, uint32_t width) {
  struct {
    VkDeviceAddress y, x, gate;
    uint32_t width, y_stride, x_stride, gate_stride;
  } push = {y.address, x.address, gate.address, width, y.stride, x.stride, gate.stride};
  run("elementwise", {operation}, {workgroups(width), rows}, push, Before::kBarrier);
}

void VulkanDevice::silu_mul(BufferId gate, BufferId up, uint32_t width) {
  if (!lost_) elementwise(kSiluMul, buffer(gate), buffer(up), {}, rows_, width);
}

void VulkanDevice::add(BufferId y, BufferId x, uint32_t width) {
  if (!lost_) elementwise(kAdd, buffer(y), buffer(x), {}, rows_, width);
}

void VulkanDevice::add_gated(BufferId y, BufferId x, BufferId gate, uint32_t width) {
  if (!lost_) elementwise(kAddGated, buffer(y), buffer(x), buffer(gate), rows_, width);
}

}  // namespace spillway::vulkan
