// The scalar kernels: numerics/ applied to the shapes and layouts of kernels.h. Slow and plain; every other
// table is tested against this one.
#include <algorithm>

#include "backend/cpu/tables.h"
#include "base/assert.h"
#include "numerics/activation.h"
#include "numerics/attention.h"
#include "numerics/formats.h"
#include "numerics/glu.h"
#include "numerics/layout.h"
#include "numerics/norm.h"
#include "numerics/product.h"
#include "numerics/rope.h"

namespace spillway::cpu {
namespace {

static_assert(kGroupRows == numerics::layout::kGroupRows);
static_assert(numerics::kAttentionChunk % kPagePositions == 0);

constexpr size_t kMaxBlockBytes = 256;

// A row in file layout: where it lies, or de-interleaved into `buffer` (row_bytes).
const std::byte* file_row(const Matrix& w, uint32_t row, std::byte* buffer) {
  const size_t bytes = row_bytes(w.type, w.cols);
  if (w.layout == Layout::kFile) return w.data + row * bytes;
  const size_t block_bytes = info(w.type).block_bytes;
  const std::byte* group = w.data + row / kGroupRows * bytes * kGroupRows;
  for (size_t at = 0; at < bytes; at += block_bytes)
    numerics::extract_block(w.type, group + at * kGroupRows, row % kGroupRows, buffer + at);
  return buffer;
}

size_t scratch_bytes(uint32_t cols, uint32_t head_length) {
  const size_t row = size_t{cols} * sizeof(float);  // the widest type
  const size_t attention = numerics::attention_scratch(head_length, head_length) * sizeof(float);
  return (std::max(row, attention) + 63) / 64 * 64;
}

void quantize(const float* x, const Activations& to, uint32_t token) {
  const size_t at = size_t{token} * to.cols;
  float* d = to.d + size_t{token} * to.blocks();
  int16_t* sums = to.sums + size_t{token} * to.sums_per_row();
  switch (to.kind) {
    case ActivationKind::kF32:
      return numerics::flush_row(x, to.cols, to.f32 + at);
    case ActivationKind::kQ32:
      return numerics::quantize_row_32(x, to.cols, to.q + at, d, sums);
    case ActivationKind::kQ256:
      return numerics::quantize_row_256(x, to.cols, to.q + at, d, sums);
  }
}

void product(const Matrix& w, uint32_t group_begin, uint32_t group_end, const Activations& x, TokenSet tokens,
             float* out, size_t out_stride, Scratch scratch) {
  SW_ASSERT(x.kind == activation_kind(w.type) && x.cols == w.cols);
  SW_ASSERT(w.layout == Layout::kFile || scratch.bytes >= row_bytes(w.type, w.cols));
  const uint32_t end = std::min(w.rows, group_end * kGroupRows);
  for (uint32_t r = group_begin * kGroupRows; r < end; ++r) {
    const std::byte* row = file_row(w, r, scratch.data);
    for (uint32_t i = 0; i < tokens.n; ++i) {
      const size_t t = tokens.at(i);
      numerics::ActivationRow a;
      if (x.kind == ActivationKind::kF32)
        a.f32 = x.f32 + t * x.cols;
      else
        a = {nullptr, x.q + t * x.cols, x.d + t * x.blocks(), x.sums + t * x.sums_per_row()};
      out[i * out_stride + r] = numerics::row_product(w.type, row, a, w.cols);
    }
  }
}

void dequantize_row(const Matrix& w, uint32_t row, float* out) {
  const size_t bytes = row_bytes(w.type, w.cols);
  if (w.layout == Layout::kFile) return numerics::dequantize_row(w.type, w.data + row * bytes, w.cols, out);
  const TensorTypeInfo& type = info(w.type);
  const std::byte* group = w.data + row / kGroupRows * bytes * kGroupRows;
  std::byte block[kMaxBlockBytes];
  for (size_t b = 0; b < w.cols / type.block_length; ++b) {
    numerics::extract_block(w.type, group + b * type.block_bytes * kGroupRows, row % kGroupRows, block);
    numerics::dequantize_row(w.type, block, type.block_length, out + b * type.block_length);
  }
}

size_t key_at(const KvView& kv, uint32_t kv_head, uint32_t position, uint32_t d) {
  const size_t in_page = position % kPagePositions;
  return ((size_t{kv_head} * (kPagePositions / 16) + in_page / 16) * kv.key_length + d) * 16 + in_page % 16;
}

size_t value_at(const KvView& kv, uint32_t kv_head, uint32_t position, uint32_t d) {
  return (size_t{kv_head} * kPagePositions + position % kPagePositions) * kv.value_length + d;
}

float load_kv(KvType type, const void* page, size_t at) {
  if (type == KvType::kF32) return static_cast<const float*>(page)[at];
  return numerics::f16_to_f32(static_cast<const uint16_t*>(page)[at]);
}

void write_kv(KvType type, void* page, size_t at, float x) {
  if (type == KvType::kF32)
    static_cast<float*>(page)[at] = numerics::flush(x);
  else
    static_cast<uint16_t*>(page)[at] = numerics::f32_to_f16(x);
}

void store_kv(const KvView& kv, uint32_t position, const float* key, const float* value) {
  void* keys = kv.key_pages[position / kPagePositions];
  void* values = kv.value_pages[position / kPagePositions];
  for (uint32_t h = 0; h < kv.kv_heads; ++h) {
    for (uint32_t d = 0; d < kv.key_length; ++d)
      write_kv(kv.types.key, keys, key_at(kv, h, position, d), key[size_t{h} * kv.key_length + d]);
    for (uint32_t d = 0; d < kv.value_length; ++d)
      write_kv(kv.types.value, values, value_at(kv, h, position, d), value[size_t{h} * kv.value_length + d]);
  }
}

void attention(const KvView& kv, uint32_t kv_head, std::span<const AttentionQuery> queries,
               AttentionParams params, Scratch scratch) {
  SW_ASSERT(scratch.bytes >= numerics::attention_scratch(kv.key_length, kv.value_length) * sizeof(float));
  const auto key = [&](uint32_t t, uint32_t d) {
    return load_kv(kv.types.key, kv.key_pages[t / kPagePositions], key_at(kv, kv_head, t, d));
  };
  const auto value = [&](uint32_t t, uint32_t d) {
    return load_kv(kv.types.value, kv.value_pages[t / kPagePositions], value_at(kv, kv_head, t, d));
  };
  for (const AttentionQuery& query : queries) {
    const numerics::AttentionShape shape = {kv.key_length, kv.value_length, query.first_key,
                                            query.end_key, params.scale,    params.sink};
    numerics::attention(shape, query.q, key, value, query.out, reinterpret_cast<float*>(scratch.data));
  }
}

void softmax(float* x, uint32_t n) { numerics::softmax(x, n); }
void silu_mul(float* gate, const float* up, uint32_t n) { numerics::silu_mul(gate, up, n); }
void add(float* y, const float* x, uint32_t n) { numerics::add(y, x, n); }
void add_scaled(float* y, const float* x, float scale, uint32_t n) { numerics::add_scaled(y, x, scale, n); }

constexpr Kernels kTable = {
    .name = "scalar",
    .scratch_bytes = scratch_bytes,
    .quantize = quantize,
    .product = product,
    .dequantize_row = dequantize_row,
    .interleave = numerics::interleave,
    .rms_norm = numerics::rms_norm,
    .rope_neox = numerics::rope_neox,
    .rope_normal = numerics::rope_normal,
    .store_kv = store_kv,
    .attention = attention,
    .softmax = softmax,
    .silu_mul = silu_mul,
    .add = add,
    .add_scaled = add_scaled,
};

}  // namespace

const Kernels& scalar_kernels() { return kTable; }

ActivationKind activation_kind(TensorType type) {
  const numerics::FormatTraits traits = numerics::format_traits(type);
  if (!traits.quantized) return ActivationKind::kF32;
  return traits.block_length == 256 ? ActivationKind::kQ256 : ActivationKind::kQ32;
}

}  // namespace spillway::cpu
