// The table for AVX-512 (F, BW, VL, DQ, and VNNI in the quantized products). Compiled for that instruction
// set.
#if defined(__x86_64__)
#include "backend/cpu/lanes_avx512.h"
//
#include "backend/cpu/avx512_product.h"
#include "backend/cpu/vector_table.h"

namespace spillway::cpu {

const Kernels& avx512_kernels() {
  static constexpr Kernels kTable =
      vector_table<product_avx512, product_scratch_avx512, interleave_avx512>("avx512");
  return kTable;
}

}  // namespace spillway::cpu

#endif
