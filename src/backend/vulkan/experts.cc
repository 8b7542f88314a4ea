// The MoE layer: routing, experts from slots, and their weighted sum.
#include <algorithm>
#include <cstring>

#include "backend/vulkan/run.h"
#include "base/assert.h"
#include "base/checked.h"

namespace spillway::vulkan {

using namespace backend;

namespace {

constexpr uint32_t kSiluMul = 0;  // elementwise.comp's OPERATION
constexpr uint32_t kPairTile = 8;

}  // namespace

void VulkanDevice::set_slot(uint32_t layer, uint32_t expert, uint32_t slot) {
  if (lost_) return;
  Range entry = piece(plan_->slot_table[layer]);
  SW_ASSERT(expert < spec_.layers[layer].n_experts);
  entry.offset += expert * uint64_t{4};
  entry.bytes = 4;
  CommandList& list = stream_list(Lane::Keep::kNo);
  list.barrier();
  list.update(entry, std::as_bytes(std::span(&slot, 1)));
}

void VulkanDevice::route(BufferId x, const MoeSpec& spec, ForHost for_host) {
  if (lost_) return;
  const WeightShape& router = spec_.weights[spec.router];
  const numerics::RouterParams& routing = spec.routing;
  SW_ASSERT(routing.n_used <= spec_.sizes.max_experts_used && routing.n_experts <= spec_.sizes.experts &&
            routing.n_experts == router.rows);
  quantize(buffer(x), rows_, router.cols, {router.type}, plan_->inputs, Before::kBarrier);
  product({.type = router.type,
           .rows = router.rows,
           .cols = router.cols,
           .column_stride = is_single_row(router) ? 1u : kGroupRows,
           .weights = weight_address(spec.router),
           .x = {buffer(x), &plan_->inputs},
           .to = {address(plan_->router_logits), router.rows},
           .tokens = rows_},
          Before::kBarrier);
  VkDeviceAddress again = address(plan_->ids);
  if (for_host == ForHost::kLater) {
    const Range all = chosen_.all();
    again = all.address + spec.layer * uint64_t{plan_->max_pairs} * 4;
    chosen_pairs_[spec.layer] = pairs(spec);
    to_host_ = true;
  }
  struct {
    VkDeviceAddress logits, group_scores, bias, ids, ids_again, weights;
    uint32_t n_experts, n_used, gating, has_bias, n_groups, n_groups_used, group_top, renormalise;
    float scale;
  } push = {address(plan_->router_logits),
            address(plan_->group_scores),
            weight_address(spec.selection_bias),
            address(plan_->ids),
            again,
            address(plan_->expert_weights),
            routing.n_experts,
            routing.n_used,
            static_cast<uint32_t>(routing.gating),
            spec.selection_bias != kNoWeight ? 1u : 0u,
            routing.n_groups,
            routing.n_groups_used,
            routing.group_top,
            routing.renormalise ? 1u : 0u,
            routing.scale};
  run("route", {}, {rows_}, push, Before::kBarrier);
  if (for_host != ForHost::kNow || lost_) return;

  // ids, then x: what routed() shows.
  routed_pairs_ = pairs(spec);
  const Range from = piece(plan_->buffer[x]), all = routed_.all();
  const uint64_t row_bytes = uint64_t{spec_.sizes.hidden} * 4;
  CommandList& list = stream_list(keep_);
  list.barrier();
  Range ids = piece(plan_->ids);
  ids.bytes = routed_pairs_ * uint64_t{4};
  list.copy(ids, all);
  row_regions(regions_, from.offset, uint64_t{buffer(x).stride} * 4, aligned(plan_->max_pairs * uint64_t{4}),
              row_bytes, row_bytes, rows_);
  list.copy(from.buffer, all.buffer, regions_);
  list.host_barrier();
}

Routed VulkanDevice::routed() {
  const std::byte* from = routed_.all().mapped;
  return {{reinterpret_cast<const uint32_t*>(from), routed_pairs_},
          {reinterpret_cast<const float*>(from + aligned(plan_->max_pairs * uint64_t{4})),
           size_t{rows_} * spec_.sizes.hidden}};
}

std::span<const uint32_t> VulkanDevice::chosen(uint32_t layer) {
  const auto* all = reinterpret_cast<const uint32_t*>(chosen_.all().mapped);
  return {all + size_t{layer} * plan_->max_pairs, chosen_pairs_[layer]};
}

void VulkanDevice::run_experts(BufferId x, const MoeSpec& spec, VkDeviceAddress slots) {
  const DeviceLayer& layer = spec_.layers[spec.layer];
  SW_ASSERT(layer.pool < spec_.pools.size());
  const ExpertLayout& layout = spec_.pools[layer.pool].layout;
  const uint32_t n_pairs = pairs(spec), width = layout.down.cols, hidden = layout.down.rows;
  SW_ASSERT(width <= spec_.sizes.expert_width && hidden == spec_.sizes.hidden);
  // Tiles pay where an expert has several pairs.
  const uint32_t tile = n_pairs >= 2 * spec.routing.n_experts ? kPairTile : 1;
  const uint32_t most_tiles =
      std::min<uint32_t>(n_pairs, static_cast<uint32_t>(ceil_div(n_pairs, tile)) + spec.routing.n_experts);
  struct {
    VkDeviceAddress ids, slots, slot_addresses, tiles, pairs;
    uint32_t n_pairs, n_experts, tile;
  } group = {address(plan_->ids),
             slots,
             address(plan_->slot_addresses[layer.pool]),
             address(plan_->tiles),
             address(plan_->tile_pairs),
             n_pairs,
             spec.routing.n_experts,
             tile};
  run("group", {}, {1}, group, Before::kBarrier);
  quantize(buffer(x), rows_, layout.gate.cols, {layout.gate.type, layout.up.type}, plan_->inputs,
           Before::kNothing);

  const Rows gate = {address(plan_->expert_gate), width}, up = {address(plan_->expert_up), width};
  const Rows out = {address(plan_->expert_out), hidden};
  const auto by_tiles = [&](const WeightShape& shape, uint64_t offset, Inputs from, Rows to, uint32_t divisor,
                            Before before) {
    product({.type = shape.type,
             .rows = shape.rows,
             .cols = shape.cols,
             .x = from,
             .to = to,
             .tiled = true,
             .pair_divisor = divisor,
             .weight_word = static_cast<uint32_t>(offset / 4),
             .most_tiles = most_tiles,
             .tile = tile},
            before);
  };
  const Inputs inputs = {buffer(x), &plan_->inputs};
  by_tiles(layout.gate, 0, inputs, gate, spec.routing.n_used, Before::kBarrier);
  by_tiles(layout.up, layout.up_offset(), inputs, up, spec.routing.n_used, Before::kNothing);
  elementwise(kSiluMul, gate, up, {}, n_pairs, width);
  quantize(gate, n_pairs, width, {layout.down.type}, plan_->expert_inputs, Before::kBarrier);
  by_tiles(layout.down, layout.down_offset(), {gate, &plan_->expert_inputs}, out, 1, Before::kBarrier);
}

void VulkanDevice::experts_in_table(BufferId x, const MoeSpec& spec) {
  if (!lost_) run_experts(x, spec, address(plan_->slot_table[spec.layer]));
}

void VulkanDevice::experts_in_slots(BufferId x, const MoeSpec& spec, std::span<const ExpertSlot> experts) {
  if (lost_ || experts.empty()) return;
  const uint32_t n = spec.routing.n_experts;
  const auto staged = stream_staging_.take(stream_, n * uint64_t{4});
  if (!staged) return lose(staged.error());
  auto* slots = reinterpret_cast<uint32_t*>(staged->mapped);
  std::fill_n(slots, n, kNoSlot);
  for (const ExpertSlot& expert : experts) slots[expert.expert] = expert.slot;
  CommandList& list = stream_list(Lane::Keep::kNo);
  list.barrier();
  list.copy(*staged, piece(plan_->chosen_slots));
  run_experts(x, spec, address(plan_->chosen_slots));
}

void VulkanDevice::take_outputs(const MoeSpec&, std::span<const uint32_t> pairs, const float* rows) {
  const uint32_t hidden = spec_.sizes.hidden;
  const uint64_t row_bytes = uint64_t{hidden} * 4;
  const size_t at_once = std::max<size_t>(1, stream_staging_.bytes() / 2 / row_bytes);
  const Range to = lost_ ? Range{} : piece(plan_->expert_out);
  for (size_t first = 0; first < pairs.size() && !lost_; first += at_once) {
    const size_t n = std::min(at_once, pairs.size() - first);
    const auto staged = stream_staging_.take(stream_, n * row_bytes);
    if (!staged) return lose(staged.error());
    std::memcpy(staged->mapped, rows + first * hidden, n * row_bytes);
    regions_.clear();
    for (size_t i = 0; i < n; ++i)
      regions_.push_back(
          {staged->offset + i * row_bytes, to.offset + pairs[first + i] * row_bytes, row_bytes});
    CommandList& list = stream_list(Lane::Keep::kNo);
    list.barrier();
    list.copy(staged->buffer, to.buffer, regions_);
  }
}

void VulkanDevice::combine(const MoeSpec& spec, BufferId out) {
  if (lost_) return;
  const uint32_t hidden = spec_.sizes.hidden;
  struct {
    VkDeviceAddress outputs, weights, to;
    uint32_t hidden, n_used, out_stride;
  } push = {address(plan_->expert_out), address(plan_->expert_weights),
            buffer(out).address,        hidden,
            spec.routing.n_used,        buffer(out).stride};
  run("combine", {}, {workgroups(hidden), rows_}, push, Before::kBarrier);
}

}  // namespace spillway::vulkan
