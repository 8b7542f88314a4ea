// Activations and products.
#include "backend/vulkan/run.h"
#include "base/assert.h"
#include "base/checked.h"
#include "numerics/formats.h"

namespace spillway::vulkan {

using namespace backend;

namespace {

constexpr uint32_t kTokenTile = 8;       // product.comp's larger TILE
constexpr uint32_t kMaxGroupsX = 65535;  // the specification's least; the shader goes round

}  // namespace

std::optional<QuantizedForm> VulkanDevice::form_of(TensorType type) {
  const numerics::FormatTraits traits = numerics::format_traits(type);
  if (!traits.quantized) return std::nullopt;
  return traits.block_length == 32 ? kForm32 : kForm256;
}

void VulkanDevice::quantize_form(QuantizedForm form, Rows x, uint32_t rows, uint32_t cols,
                                 const QuantizedPieces& to, Before before) {
  struct {
    VkDeviceAddress x, q, d, sums;
    uint32_t cols, x_stride;
  } push = {x.address, address(to.q), address(to.d), address(to.sums), cols, x.stride};
  run("quantize", {form == kForm32 ? 32u : 256u}, {static_cast<uint32_t>(ceil_div(cols, 256)), rows}, push,
      before);
}

void VulkanDevice::quantize(Rows x, uint32_t rows, uint32_t cols, std::initializer_list<TensorType> types,
                            const std::array<QuantizedPieces, kForms>& to, Before before) {
  bool done[kForms] = {};
  for (const TensorType type : types) {
    const auto form = form_of(type);
    if (!form || done[*form]) continue;
    done[*form] = true;
    quantize_form(*form, x, rows, cols, to[*form], before);
    before = Before::kNothing;
  }
}

void VulkanDevice::product(const Product& p, Before before) {
  const auto form = form_of(p.type);
  const auto groups_x = std::min<uint32_t>(static_cast<uint32_t>(ceil_div(p.rows, kGroupRows)), kMaxGroupsX);
  const uint32_t tile = p.tiled ? p.tile : p.tokens > 1 ? kTokenTile : 1;
  const uint32_t groups_y = p.tiled ? p.most_tiles : static_cast<uint32_t>(ceil_div(p.tokens, tile));
  struct {
    VkDeviceAddress weights, tiles, pairs, q, d, sums, to, bias;
    uint32_t rows, cols, tokens, x_stride, out_stride, tiled, pair_divisor, weight_word, column_stride,
        has_bias;
  } push = {.weights = p.weights,
            .tiles = address(plan_->tiles),
            .pairs = address(plan_->tile_pairs),
            .q = 0,
            .d = p.x.f32.address,
            .sums = 0,
            .to = p.to.address,
            .bias = p.bias,
            .rows = p.rows,
            .cols = p.cols,
            .tokens = p.tokens,
            .x_stride = p.x.f32.stride,
            .out_stride = p.to.stride,
            .tiled = p.tiled ? 1u : 0u,
            .pair_divisor = p.pair_divisor,
            .weight_word = p.weight_word,
            .column_stride = p.column_stride,
            .has_bias = p.bias != 0 ? 1u : 0u};
  if (form) {
    const QuantizedPieces& x = (*p.x.forms)[*form];
    push.q = address(x.q);
    push.d = address(x.d);
    push.sums = address(x.sums);
  }
  run(fmt::format("product_{}{}", form && context_->integer_dot() ? "dot_" : "", spillway::info(p.type).name),
      {tile}, {groups_x, groups_y}, push, before);
}

void VulkanDevice::linear(BufferId x, std::span<const Linear> targets) {
  if (lost_) return;
  const uint32_t cols = spec_.weights[targets[0].weight].cols;
  Before before = Before::kBarrier;
  bool done[kForms] = {};
  for (const Linear& target : targets) {
    const auto form = form_of(spec_.weights[target.weight].type);
    if (!form || done[*form]) continue;
    done[*form] = true;
    quantize_form(*form, buffer(x), rows_, cols, plan_->inputs[*form], before);
    before = Before::kNothing;
  }
  before = Before::kBarrier;
  for (const Linear& target : targets) {
    const WeightShape& shape = spec_.weights[target.weight];
    SW_ASSERT(shape.on_device && shape.cols == cols);
    product({.type = shape.type,
             .rows = shape.rows,
             .cols = cols,
             .column_stride = is_single_row(shape) ? 1u : kGroupRows,
             .weights = weight_address(target.weight),
             .x = {buffer(x), &plan_->inputs},
             .to = buffer(target.out),
             .bias = weight_address(target.bias),
             .tokens = rows_},
            before);
    before = Before::kNothing;
  }
}

void VulkanDevice::logits(BufferId x, std::span<const uint32_t> rows, WeightId norm_weight, float epsilon,
                          WeightId output, float* out, size_t out_stride) {
  if (lost_ || rows.empty()) return;
  const WeightShape& shape = spec_.weights[output];
  const auto n = static_cast<uint32_t>(rows.size());
  SW_ASSERT(n <= spec_.logits_rows && shape.rows <= spec_.vocabulary && shape.cols <= spec_.sizes.hidden);
  const Rows from = buffer(x), in = {address(plan_->logits_in), shape.cols};
  const Range from_range = piece(plan_->buffer[x]), in_range = piece(plan_->logits_in);
  regions_.clear();
  const uint64_t row_bytes = uint64_t{shape.cols} * 4;
  for (uint32_t i = 0; i < n; ++i)
    regions_.push_back({from_range.offset + uint64_t{rows[i]} * from.stride * 4,
                        in_range.offset + i * row_bytes, row_bytes});
  CommandList& list = stream_list(keep_);
  list.barrier();
  list.copy(from_range.buffer, in_range.buffer, regions_);
  norm(in, in, n, 1, shape.cols, norm_weight, epsilon);
  quantize(in, n, shape.cols, {shape.type}, plan_->inputs, Before::kBarrier);
  const Rows to = {address(plan_->logits), shape.rows};
  product({.type = shape.type,
           .rows = shape.rows,
           .cols = shape.cols,
           .column_stride = is_single_row(shape) ? 1u : kGroupRows,
           .weights = weight_address(output),
           .x = {in, &plan_->inputs},
           .to = to,
           .tokens = n},
          Before::kBarrier);
  if (lost_) return;
  keep(readback_.read(stream_, keep_,
                      {.from = piece(plan_->logits),
                       .from_stride = uint64_t{shape.rows} * 4,
                       .rows = n,
                       .row_bytes = uint64_t{shape.rows} * 4,
                       .to = reinterpret_cast<std::byte*>(out),
                       .to_stride = out_stride * 4}));
}

}  // namespace spillway::vulkan
