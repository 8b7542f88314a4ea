#if defined(__x86_64__)
#include "backend/cpu/avx2_product.h"

#include "backend/cpu/avx2_vector.h"
//
#include "backend/cpu/product_driver.h"
#include "backend/cpu/vector_interleave.h"

namespace spillway::cpu {

void product_avx2(const Matrix& w, uint32_t group_begin, uint32_t group_end, const Activations& x,
                  TokenSet tokens, float* out, size_t out_stride, Scratch scratch) {
  switch (w.type) {
    case TensorType::kQ4_0:
      return Product<Avx2, Q4_0<Avx2>>::run(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    case TensorType::kQ4_1:
      return Product<Avx2, Q4_1<Avx2>>::run(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    case TensorType::kQ5_0:
      return Product<Avx2, Q5_0<Avx2>>::run(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    case TensorType::kQ5_1:
      return Product<Avx2, Q5_1<Avx2>>::run(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    case TensorType::kQ8_0:
      return Product<Avx2, Q8_0<Avx2>>::run(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    case TensorType::kIQ4_NL:
      return Product<Avx2, IQ4_NL<Avx2>>::run(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    case TensorType::kMXFP4:
      return Product<Avx2, MXFP4<Avx2>>::run(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    default:
      return product_super_avx2(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
  }
}

void interleave_avx2(TensorType type, uint64_t rows, uint64_t cols, const std::byte* file,
                     std::byte* groups) {
  interleave<Avx2>(type, rows, cols, file, groups);
}

size_t product_scratch_avx2(uint32_t cols) { return product_scratch_bytes(cols, Avx2::kWidths[0]); }

}  // namespace spillway::cpu

#endif
