// Quantized products for AVX2 (Kernels::product for every type but F32, F16 and BF16).
#pragma once

#include "backend/cpu/kernels.h"

namespace spillway::cpu {

// Requires: w.type is quantized; the processor has AVX2 and F16C.
void product_avx2(const Matrix& w, uint32_t group_begin, uint32_t group_end, const Activations& x,
                  TokenSet tokens, float* out, size_t out_stride, Scratch scratch);

// The part of it for blocks of 256 values, a translation unit of its own.
void product_super_avx2(const Matrix& w, uint32_t group_begin, uint32_t group_end, const Activations& x,
                        TokenSet tokens, float* out, size_t out_stride, Scratch scratch);

// Kernels::interleave.
void interleave_avx2(TensorType type, uint64_t rows, uint64_t cols, const std::byte* file, std::byte* groups);

// Bytes of scratch that it needs for rows of `cols` values.
size_t product_scratch_avx2(uint32_t cols);

}  // namespace spillway::cpu
