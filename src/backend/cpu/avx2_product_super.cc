#if defined(__x86_64__)
#include "backend/cpu/avx2_product.h"
#include "backend/cpu/avx2_vector.h"
//
#include "backend/cpu/product_driver.h"
#include "base/assert.h"

namespace spillway::cpu {

void product_super_avx2(const Matrix& w, uint32_t group_begin, uint32_t group_end, const Activations& x,
                        TokenSet tokens, float* out, size_t out_stride, Scratch scratch) {
  switch (w.type) {
    case TensorType::kQ2_K:
      return Product<Avx2, Q2_K<Avx2>>::run(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    case TensorType::kQ3_K:
      return Product<Avx2, Q3_K<Avx2>>::run(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    case TensorType::kQ4_K:
      return Product<Avx2, Q4_K<Avx2>>::run(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    case TensorType::kQ5_K:
      return Product<Avx2, Q5_K<Avx2>>::run(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    case TensorType::kQ6_K:
      return Product<Avx2, Q6_K<Avx2>>::run(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    case TensorType::kIQ4_XS:
      return Product<Avx2, IQ4_XS<Avx2>>::run(w, group_begin, group_end, x, tokens, out, out_stride, scratch);
    default:
      SW_ASSERT(!"a quantized type");
  }
}

}  // namespace spillway::cpu

#endif
