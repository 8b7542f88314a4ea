// The table for AVX2 with F16C. Compiled for that instruction set.
#if defined(__x86_64__)
#include "backend/cpu/lanes_avx2.h"
//
#include "backend/cpu/avx2_product.h"
#include "backend/cpu/vector_table.h"

namespace spillway::cpu {

const Kernels& avx2_kernels() {
  static constexpr Kernels kTable = vector_table<product_avx2, product_scratch_avx2, interleave_avx2>("avx2");
  return kTable;
}

}  // namespace spillway::cpu

#endif
