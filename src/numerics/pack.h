// The inverse of unpack_block: codes, scales and minima to the bytes of a block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "numerics/formats.h"

namespace spillway::numerics {

// Unlike CanonicalBlock it holds what the file holds: table types have the index of a value as their code,
// Q8_0 has value + 128, and scales are the file's bits.
struct StoredBlock {
  std::array<uint8_t, kMaxBlockLength> code = {};
  std::array<int16_t, kMaxSubBlocks> sc =
      {};  // in the range of the type, as in docs/numerics.md; unused for L = 32
  std::array<uint8_t, kMaxSubBlocks> m = {};
  uint16_t d = 0;   // half bits; MXFP4: the exponent byte
  uint16_t dm = 0;  // half bits of dmin (K-quants, subtracted) or m (Q4_1, Q5_1, added)
};

// Writes info(type).block_bytes bytes. Requires: a quantized type, every code and scale in its range.
void pack_block(TensorType type, const StoredBlock& block, std::byte* out);

}  // namespace spillway::numerics
