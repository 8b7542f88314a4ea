// Room for activations in each form that a product may want, for up to `rows` rows of up to `width` values.
#pragma once

#include "backend/cpu/kernels.h"
#include "base/aligned_array.h"

namespace spillway::cpu {

// Which forms of activations some products want.
struct KindSet {
  bool wanted[3] = {};
  void add(TensorType type) { wanted[static_cast<size_t>(activation_kind(type))] = true; }
};

class ActivationStore {
 public:
  ActivationStore(uint32_t rows, uint32_t width);

  // Requires: rows and cols within the sizes given; cols a multiple of the kind's block length.
  Activations view(ActivationKind kind, uint32_t rows, uint32_t cols);

  // Quantizes x (cols values) as row `row` of view(kind, rows, cols) for each kind of `kinds`. Threads may do
  // different rows at once.
  void quantize_row(const Kernels& kernels, KindSet kinds, const float* x, uint32_t rows, uint32_t cols,
                    uint32_t row);

  static uint64_t bytes(uint32_t rows, uint32_t width);

 private:
  struct Quantized {
    Quantized(uint32_t rows, uint32_t width, uint32_t block_length, uint32_t sum_length);
    AlignedArray<int8_t> q;
    AlignedArray<float> d;
    AlignedArray<int16_t> sums;
  };
  AlignedArray<float> f32_;
  Quantized q32_;
  Quantized q256_;
};

}  // namespace spillway::cpu
