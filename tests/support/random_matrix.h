// Random weight matrices of any type that own their bytes.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "backend/shapes.h"
#include "numerics/layout.h"
#include "numerics/quantize.h"

namespace spillway::test_support {

struct RandomMatrix {
  backend::Matrix matrix;
  std::vector<std::byte> bytes;
  // The matrix, pointing at these bytes wherever they were moved to.
  backend::Matrix view() const {
    backend::Matrix m = matrix;
    m.data = bytes.data();
    return m;
  }
};

// Outputs of about the size of the inputs.
inline RandomMatrix random_matrix(TensorType type, uint32_t rows, uint32_t cols, std::mt19937_64& random,
                                  backend::Layout layout = backend::Layout::kFile) {
  std::normal_distribution<float> normal(0.0f, 1.0f / std::sqrt(static_cast<float>(cols)));
  std::vector<float> row(cols);
  std::vector<std::byte> file(rows * row_bytes(type, cols));
  for (uint32_t r = 0; r < rows; ++r) {
    for (float& x : row) x = normal(random);
    numerics::quantize_weights(type, row.data(), cols, file.data() + r * row_bytes(type, cols));
  }
  RandomMatrix made{{.type = type, .layout = layout, .rows = rows, .cols = cols}, std::move(file)};
  if (layout == backend::Layout::kInterleaved) {
    std::vector<std::byte> groups(numerics::interleaved_bytes(type, rows, cols));
    numerics::interleave(type, rows, cols, made.bytes.data(), groups.data());
    made.bytes = std::move(groups);
  }
  return made;
}

}  // namespace spillway::test_support
