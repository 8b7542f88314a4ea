// Float rows to weights of each type: plain quantizers by least squares, without importance data, for tests,
// generators and the demo model. Unlike the rest of the room they use ordinary float arithmetic: what they
// write is data, and no promise hangs on its bits.
#pragma once

#include <cstddef>

#include "base/tensor_type.h"

namespace spillway::numerics {

// n values to row_bytes(type, n) bytes. Requires: finite values, n % block_length == 0. Values past a type's
// range (65504 for F16) saturate in the quantized types and become infinite in F16.
void quantize_weights(TensorType type, const float* x, size_t n, std::byte* out);

}  // namespace spillway::numerics
