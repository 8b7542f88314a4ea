#include "backend/cpu/activation_store.h"

#include "base/checked.h"

namespace spillway::cpu {

ActivationStore::Quantized::Quantized(uint32_t rows, uint32_t width, uint32_t block_length,
                                      uint32_t sum_length)
    : q(size_t{rows} * width),
      d(size_t{rows} * ceil_div(width, block_length)),
      sums(size_t{rows} * ceil_div(width, sum_length)) {}

ActivationStore::ActivationStore(uint32_t rows, uint32_t width)
    : f32_(size_t{rows} * width), q32_(rows, width, 32, 32), q256_(rows, width, 256, 16) {}

uint64_t ActivationStore::bytes(uint32_t rows, uint32_t width) {
  const uint64_t values = uint64_t{rows} * width;
  return values * sizeof(float) + 2 * values +                                            // f32, both q
         uint64_t{rows} * (ceil_div(width, 32) + ceil_div(width, 256)) * sizeof(float) +  // scales
         uint64_t{rows} * (ceil_div(width, 32) + ceil_div(width, 16)) * sizeof(int16_t);  // sums
}

Activations ActivationStore::view(ActivationKind kind, uint32_t rows, uint32_t cols) {
  Activations a{.kind = kind, .tokens = rows, .cols = cols};
  if (kind == ActivationKind::kF32) {
    a.f32 = f32_.data();
  } else {
    Quantized& store = kind == ActivationKind::kQ32 ? q32_ : q256_;
    a.q = store.q.data();
    a.d = store.d.data();
    a.sums = store.sums.data();
  }
  return a;
}

void ActivationStore::quantize_row(const Kernels& kernels, KindSet kinds, const float* x, uint32_t rows,
                                   uint32_t cols, uint32_t row) {
  for (const ActivationKind kind : {ActivationKind::kF32, ActivationKind::kQ32, ActivationKind::kQ256})
    if (kinds.wanted[static_cast<size_t>(kind)]) kernels.quantize(x, view(kind, rows, cols), row);
}

}  // namespace spillway::cpu
