#if defined(__x86_64__)
#include "backend/cpu/avx512_product.h"
#include "backend/cpu/avx512_vector.h"
//
#include "backend/cpu/product_driver.h"
#include "base/assert.h"

namespace spillway::cpu {

void product_super_avx512(const Matrix& w, uint32_t group_begin, uint32_t group_end, const Activations& x,
                          TokenSet tokens, float* out, size_t out_stride, Scratch scratch) {
  switch (w.type) {
    case TensorType::kQ2_K:
      return Product<Avx512, Q2_K<Avx512>>::run(w, group_begin, group_end, x, tokens, out, out_stride,
                                                scratch);
    case TensorType::kQ3_K:
      return Product<Avx512, Q3_K<Avx512>>::run(w, group_begin, group_end, x, tokens, out, out_stride,
                                                scratch);
    case TensorType::kQ4_K:
      return Product<Avx512, Q4_K<Avx512>>::run(w, group_begin, group_end, x, tokens, out, out_stride,
                                                scratch);
    case TensorType::kQ5_K:
      return Product<Avx512, Q5_K<Avx512>>::run(w, group_begin, group_end, x, tokens, out, out_stride,
                                                scratch);
    case TensorType::kQ6_K:
      return Product<Avx512, Q6_K<Avx512>>::run(w, group_begin, group_end, x, tokens, out, out_stride,
                                                scratch);
    case TensorType::kIQ4_XS:
      return Product<Avx512, IQ4_XS<Avx512>>::run(w, group_begin, group_end, x, tokens, out, out_stride,
                                                  scratch);
    default:
      SW_ASSERT(!"a quantized type");
  }
}

}  // namespace spillway::cpu

#endif
