// The table of kernels of one instruction set, from the vector_*.h headers. Included by avx2.cc and avx512.cc
// after their lanes_*.h.
#pragma once

#include "backend/cpu/kernels.h"
#include "backend/cpu/tables.h"
#include "backend/cpu/vector_math.h"
//
#include "backend/cpu/vector_elementwise.h"
//
#include "backend/cpu/vector_attention.h"
#include "backend/cpu/vector_product.h"

namespace spillway::cpu {
namespace {

template <auto kQuantizedScratch>
size_t scratch_bytes(uint32_t cols, uint32_t head_length) {
  size_t bytes = scalar_kernels().scratch_bytes(cols, head_length);
  for (const size_t part :
       {kQuantizedScratch(cols), float_product_scratch_bytes(cols), attention_scratch_bytes(head_length)})
    bytes = bytes > part ? bytes : part;
  return bytes;
}

template <auto kQuantizedProduct>
void product(const Matrix& w, uint32_t group_begin, uint32_t group_end, const Activations& x, TokenSet tokens,
             float* out, size_t out_stride, Scratch scratch) {
  if (x.kind == ActivationKind::kF32)
    float_product(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
  else
    kQuantizedProduct(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
}

// Only token embeddings need it, a row a token: the scalar form is fast enough (3 us for 1024 values), but
// for float values out of groups, which it gathers one block, that is one value, at a time (21 us).
void dequantize_row(const Matrix& w, uint32_t row, float* out) {
  const bool grouped = w.layout == Layout::kInterleaved;
  if (grouped && w.type == TensorType::kF32) return gather_row<F32Weights>(w, row, out);
  if (grouped && w.type == TensorType::kF16) return gather_row<F16Weights>(w, row, out);
  if (grouped && w.type == TensorType::kBF16) return gather_row<Bf16Weights>(w, row, out);
  scalar_kernels().dequantize_row(w, row, out);
}

// The three are of avx2_product.h or avx512_product.h.
template <auto kQuantizedProduct, auto kQuantizedScratch, auto kInterleave>
constexpr Kernels vector_table(const char* name) {
  return {
      .name = name,
      .scratch_bytes = scratch_bytes<kQuantizedScratch>,
      .quantize = quantize,
      .product = product<kQuantizedProduct>,
      .dequantize_row = dequantize_row,
      .interleave = kInterleave,
      .rms_norm = rms_norm,
      .rope_neox = rope_neox,
      .rope_normal = rope_normal,
      .store_kv = store_kv,
      .attention = attention,
      .softmax = softmax,
      .silu_mul = silu_mul,
      .add = add,
      .add_scaled = add_scaled,
  };
}

}  // namespace
}  // namespace spillway::cpu
