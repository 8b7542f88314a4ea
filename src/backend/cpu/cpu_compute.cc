#include "backend/cpu/cpu_compute.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/checked.h"
#include "numerics/elementary.h"

namespace spillway::cpu {
namespace {

using namespace backend;

// Queries of one attention task: enough to share the conversion of a chunk of keys, few enough for many
// tasks.
constexpr uint32_t kQueryTile = 64;

size_t scratch_stride(const ComputeSizes& sizes, const Kernels& kernels) {
  return ceil_div(kernels.scratch_bytes(sizes.max_width, sizes.max_head_length), kCacheLineBytes) *
         kCacheLineBytes;
}

}  // namespace

CpuCompute::CpuCompute(sys::ThreadPool& pool, const Kernels& kernels, ComputeSizes sizes,
                       std::vector<Matrix> weights, backend::KvTypes kv_types, std::vector<KvLayer> kv,
                       std::vector<RopeTable> ropes)
    : pool_(pool),
      kernels_(kernels),
      sizes_(std::move(sizes)),
      weights_(std::move(weights)),
      kv_types_(kv_types),
      kv_(std::move(kv)),
      ropes_(std::move(ropes)),
      inputs_(sizes_.max_rows, sizes_.max_width),
      experts_(pool, kernels, sizes_, weights_),
      router_(size_t{sizes_.max_rows} * sizes_.experts),
      scratch_stride_(scratch_stride(sizes_, kernels)) {
  for (const uint32_t width : sizes_.buffer_widths) buffers_.emplace_back(size_t{sizes_.max_rows} * width);
  const size_t pairs = size_t{sizes_.max_rows} * sizes_.max_experts_used;
  scratch_ = AlignedArray<std::byte>(scratch_stride_ * pool.threads());
  chosen_.resize(pairs);
  chosen_weight_.resize(pairs);
}

uint64_t CpuCompute::scratch_bytes(const ComputeSizes& sizes, uint32_t threads, const Kernels& kernels) {
  uint64_t values = uint64_t{sizes.max_rows} * (sizes.experts + 2 * sizes.max_experts_used);
  for (const uint32_t width : sizes.buffer_widths) values += uint64_t{sizes.max_rows} * width;
  return values * sizeof(float) + ActivationStore::bytes(sizes.max_rows, sizes.max_width) +
         uint64_t{threads} * scratch_stride(sizes, kernels) + ExpertCompute::bytes(sizes, threads, kernels);
}

const float* CpuCompute::vector_of(WeightId id) const {
  return id == kNoWeight ? nullptr : reinterpret_cast<const float*>(weights_[id].data);
}

Scratch CpuCompute::scratch(uint32_t thread) {
  return {scratch_.data() + thread * scratch_stride_, scratch_stride_};
}

void CpuCompute::begin(const Step& step) {
  SW_ASSERT(step.rows() <= sizes_.max_rows);
  step_ = step;
}

void CpuCompute::embed(WeightId table, BufferId out) {
  each_row([&](uint32_t r) {
    kernels_.dequantize_row(weights_[table], static_cast<uint32_t>(step_.tokens[r]), row(out, r));
  });
}

void CpuCompute::rms_norm(BufferId x, uint32_t width, WeightId weight, float epsilon, BufferId y) {
  each_row([&](uint32_t r) { kernels_.rms_norm(row(x, r), vector_of(weight), width, epsilon, row(y, r)); });
}

void CpuCompute::head_norm(BufferId x, uint32_t heads, uint32_t head_length, WeightId weight, float epsilon) {
  each_row([&](uint32_t r) {
    for (uint32_t h = 0; h < heads; ++h) {
      float* head = row(x, r) + h * head_length;
      kernels_.rms_norm(head, vector_of(weight), head_length, epsilon, head);
    }
  });
}

void CpuCompute::quantize_inputs(const float* x, size_t stride, uint32_t cols, KindSet kinds) {
  each_row([&](uint32_t r) { inputs_.quantize_row(kernels_, kinds, x + r * stride, rows(), cols, r); });
}

void CpuCompute::run_plan() {
  plan_.cut(pool_.threads());
  pool_.run([&](uint32_t thread) { plan_.run(kernels_, scratch(thread)); });
}

void CpuCompute::linear(BufferId x, std::span<const Linear> targets) {
  const uint32_t cols = weights_[targets[0].weight].cols;
  KindSet kinds;
  for (const Linear& target : targets) kinds.add(weights_[target.weight].type);
  quantize_inputs(buffer(x), sizes_.buffer_widths[x], cols, kinds);

  plan_.clear();
  for (const Linear& target : targets) {
    const Matrix& weight = weights_[target.weight];
    plan_.add({.weight = &weight,
               .x = inputs_.view(activation_kind(weight.type), rows(), cols),
               .tokens = {.n = rows()},
               .out = buffer(target.out),
               .out_stride = sizes_.buffer_widths[target.out],
               .bias = vector_of(target.bias)});
  }
  run_plan();
}

void CpuCompute::rope(BufferId x, const RopeSpec& spec) {
  const RopeTable& table = ropes_[spec.table];
  const auto apply = table.neox ? kernels_.rope_neox : kernels_.rope_normal;
  const size_t half = table.length / 2;
  each_row([&](uint32_t r) {
    const size_t at = step_.positions[r] * half;
    apply(row(x, r), spec.heads, spec.head_length, table.length, table.cos + at, table.sin + at);
  });
}

KvView CpuCompute::kv_view(const AttentionSpec& spec, const Piece& piece) {
  const KvLayer& layer = kv_[spec.layer];
  key_pages_.clear();
  value_pages_.clear();
  for (const uint32_t page : piece.pages) {
    key_pages_.push_back(layer.keys + page * layer.key_page_bytes);
    value_pages_.push_back(layer.values + page * layer.value_page_bytes);
  }
  return {.types = kv_types_,
          .kv_heads = spec.kv_heads,
          .key_length = spec.key_length,
          .value_length = spec.value_length,
          .key_pages = key_pages_.data(),
          .value_pages = value_pages_.data()};
}

void CpuCompute::store_kv(BufferId key, BufferId value, const AttentionSpec& spec) {
  for (const Piece& piece : step_.pieces) {
    const KvView view = kv_view(spec, piece);
    for (uint32_t i = 0; i < piece.rows; ++i)
      kernels_.store_kv(view, piece.first_position + i, row(key, piece.first_row + i),
                        row(value, piece.first_row + i));
  }
}

void CpuCompute::attention(BufferId q, const AttentionSpec& spec, BufferId out) {
  const uint32_t group = spec.heads / spec.kv_heads;  // query heads that share a key-value head
  for (const Piece& piece : step_.pieces) {
    const KvView view = kv_view(spec, piece);

    // Queries in the order kv head, row, head of the group: a tile shares its keys.
    queries_.clear();
    for (uint32_t kv_head = 0; kv_head < spec.kv_heads; ++kv_head)
      for (uint32_t i = 0; i < piece.rows; ++i)
        for (uint32_t g = 0; g < group; ++g) {
          const uint32_t head = kv_head * group + g;
          const uint32_t end = piece.first_position + i + 1;
          queries_.push_back({.q = row(q, piece.first_row + i) + head * spec.key_length,
                              .out = row(out, piece.first_row + i) + head * spec.value_length,
                              .first_key = spec.window != 0 && end > spec.window ? end - spec.window : 0,
                              .end_key = end});
        }

    const uint32_t per_head = piece.rows * group;
    const uint32_t tiles = static_cast<uint32_t>(ceil_div(per_head, kQueryTile));
    counter_.reset(uint64_t{spec.kv_heads} * tiles);
    pool_.run([&](uint32_t thread) {
      for (auto range = counter_.next(); !range.empty(); range = counter_.next()) {
        const uint32_t kv_head = static_cast<uint32_t>(range.begin) / tiles;
        // Late tiles have the most keys: they go first, so that the last task is a short one.
        const uint32_t tile = tiles - 1 - static_cast<uint32_t>(range.begin) % tiles;
        const uint32_t first = tile * kQueryTile;
        const uint32_t n = std::min(kQueryTile, per_head - first);
        kernels_.attention(view, kv_head, std::span(queries_).subspan(kv_head * per_head + first, n),
                           {.scale = spec.scale}, scratch(thread));
      }
    });
  }
}

void CpuCompute::silu_mul(BufferId gate, BufferId up, uint32_t width) {
  each_row([&](uint32_t r) { kernels_.silu_mul(row(gate, r), row(up, r), width); });
}

void CpuCompute::add(BufferId y, BufferId x, uint32_t width) {
  each_row([&](uint32_t r) { kernels_.add(row(y, r), row(x, r), width); });
}

void CpuCompute::add_gated(BufferId y, BufferId x, BufferId gate, uint32_t width) {
  each_row([&](uint32_t r) {
    kernels_.add_scaled(row(y, r), row(x, r), numerics::sigmoid(row(gate, r)[0]), width);
  });
}

void CpuCompute::logits(BufferId x, std::span<const uint32_t> wanted, WeightId norm, float epsilon,
                        WeightId output, float* out, size_t out_stride) {
  const Matrix& weight = weights_[output];
  const Activations activations =
      inputs_.view(activation_kind(weight.type), static_cast<uint32_t>(wanted.size()), weight.cols);
  for (uint32_t i = 0; i < wanted.size(); ++i) {
    float* r = row(x, wanted[i]);
    kernels_.rms_norm(r, vector_of(norm), weight.cols, epsilon, r);
    kernels_.quantize(r, activations, i);
  }
  plan_.clear();
  plan_.add({.weight = &weight,
             .x = activations,
             .tokens = {.n = static_cast<uint32_t>(wanted.size())},
             .out = out,
             .out_stride = out_stride});
  run_plan();
}

}  // namespace spillway::cpu
