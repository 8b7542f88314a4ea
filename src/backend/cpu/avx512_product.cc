#if defined(__x86_64__)
#include "backend/cpu/avx512_product.h"

#include "backend/cpu/avx512_vector.h"
//
#include "backend/cpu/product_driver.h"
#include "backend/cpu/vector_interleave.h"

namespace spillway::cpu {

void product_avx512(const Matrix& w, uint32_t group_begin, uint32_t group_end, const Activations& x,
                    TokenSet tokens, float* out, size_t out_stride, Scratch scratch) {
  switch (w.type) {
    case TensorType::kQ4_0:
      return Product<Avx512, Q4_0<Avx512>>::run(w, group_begin, group_end, x, tokens, out, out_stride,
                                                scratch);
    case TensorType::kQ4_1:
      return Product<Avx512, Q4_1<Avx512>>::run(w, group_begin, group_end, x, tokens, out, out_stride,
                                                scratch);
    case TensorType::kQ5_0:
      return Product<Avx512, Q5_0<Avx512>>::run(w, group_begin, group_end, x, tokens, out, out_stride,
                                                scratch);
    case TensorType::kQ5_1:
      return Product<Avx512, Q5_1<Avx512>>::run(w, group_begin, group_end, x, tokens, out, out_stride,
                                                scratch);
    case TensorType::kQ8_0:
      return Product<Avx512, Q8_0<Avx512>>::run(w, group_begin, group_end, x, tokens, out, out_stride,
                                                scratch);
    case TensorType::kIQ4_NL:
      return Product<Avx512, IQ4_NL<Avx512>>::run(w, group_begin, group_end, x, tokens, out, out_stride,
                                                  scratch);
    case TensorType::kMXFP4:
      return Product<Avx512, MXFP4<Avx512>>::run(w, group_begin, group_end, x, tokens, out, out_stride,
                                                 scratch);
    default:
      return product_super_avx512(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
  }
}

void interleave_avx512(TensorType type, uint64_t rows, uint64_t cols, const std::byte* file,
                       std::byte* groups) {
  interleave<Avx512>(type, rows, cols, file, groups);
}

size_t product_scratch_avx512(uint32_t cols) { return product_scratch_bytes(cols, Avx512::kWidths[0]); }

}  // namespace spillway::cpu

#endif
