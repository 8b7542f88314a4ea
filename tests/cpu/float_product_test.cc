// Products with F32, F16 and BF16 weights of each instruction set, bit for bit against the scalar table.
#include <cstring>

#include "numerics/layout.h"
#include "same_bits.h"

namespace spillway::cpu {
namespace {

using FloatProduct = VectorKernels;

struct Case {
  TensorType type;
  uint32_t rows, cols;
  std::vector<std::byte> file, groups;
};

Case make_case(TensorType type, uint32_t rows, uint32_t cols, Kind kind, Values& values) {
  Case c = {type, rows, cols, {}, {}};
  c.file.resize(row_bytes(type, cols) * rows);
  for (size_t i = 0; i < size_t{rows} * cols; ++i) {
    const float x = values.one(kind);
    if (type == TensorType::kF32) {
      std::memcpy(c.file.data() + i * 4, &x, 4);
    } else {
      const auto half = type == TensorType::kF16 ? numerics::f32_to_f16(x)
                                                 : static_cast<uint16_t>(numerics::bits_of(x) >> 16);
      std::memcpy(c.file.data() + i * 2, &half, 2);
    }
  }
  c.groups.resize(numerics::interleaved_bytes(type, rows, cols));
  numerics::interleave(type, rows, cols, c.file.data(), c.groups.data());
  return c;
}

std::vector<float> run(const Kernels& k, const Case& c, Layout layout, std::vector<float>& x,
                       const std::vector<uint32_t>& index, uint32_t group_begin, uint32_t group_end) {
  const Matrix w = {c.type, layout, c.rows, c.cols,
                    layout == Layout::kFile ? c.file.data() : c.groups.data()};
  Activations a;
  a.kind = ActivationKind::kF32;
  a.cols = c.cols;
  a.tokens = static_cast<uint32_t>(x.size() / c.cols);
  a.f32 = x.data();
  const size_t stride = c.rows + 3;
  std::vector<float> out(stride * index.size() + 16, 777.0f);
  const size_t bytes = k.scratch_bytes(c.cols, 16);
  auto* scratch = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  k.product(w, group_begin, group_end, a, {index.data(), static_cast<uint32_t>(index.size())}, out.data(),
            stride, {scratch, bytes});
  std::free(scratch);
  return out;
}

TEST_P(FloatProduct, equals_scalar) {
  Values values(7);
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16})
    for (const auto& [rows, cols, tokens] : std::vector<std::array<uint32_t, 3>>{{16, 32, 1},
                                                                                 {16, 64, 2},
                                                                                 {1, 1, 1},
                                                                                 {5, 7, 3},
                                                                                 {17, 9, 4},
                                                                                 {33, 25, 5},
                                                                                 {64, 100, 1},
                                                                                 {64, 256, 7},
                                                                                 {40, 72, 15},
                                                                                 {31, 130, 16},
                                                                                 {48, 96, 33},
                                                                                 {8, 257, 35},
                                                                                 {16, 15, 21},
                                                                                 {100, 65, 31},
                                                                                 {16, 8, 2},
                                                                                 {20, 4100, 3},
                                                                                 {16, 4096, 19}})
      for (const Kind kind : kAllKinds) {
        SCOPED_TRACE(fmt::format("{} rows {} cols {} tokens {} kind {}", info(type).name, rows, cols, tokens,
                                 int(kind)));
        const Case c = make_case(type, rows, cols, kind, values);
        std::vector<float> x = values.some(size_t{cols} * tokens, kind);
        for (float& v : x) v = numerics::flush(v);
        std::vector<uint32_t> index(tokens);
        for (uint32_t t = 0; t < tokens; ++t) index[t] = values.below(tokens);
        const uint32_t groups = (rows + 15) / 16;
        const auto expected = run(scalar, c, Layout::kFile, x, index, 0, groups);
        ASSERT_TRUE(same_bits(expected, run(fast, c, Layout::kFile, x, index, 0, groups)));
        ASSERT_TRUE(same_bits(expected, run(fast, c, Layout::kInterleaved, x, index, 0, groups)));
        const auto part = run(scalar, c, Layout::kInterleaved, x, index, groups / 2, groups);
        ASSERT_TRUE(same_bits(part, run(fast, c, Layout::kInterleaved, x, index, groups / 2, groups)));
      }
}

TEST_P(FloatProduct, dequantize_row) {
  Values values(8);
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16})
    for (const Kind kind : kAllKinds) {
      const Case c = make_case(type, 37, 53, kind, values);
      for (const Layout layout : {Layout::kFile, Layout::kInterleaved}) {
        const Matrix w = {type, layout, c.rows, c.cols,
                          layout == Layout::kFile ? c.file.data() : c.groups.data()};
        for (uint32_t row = 0; row < c.rows; ++row) {
          std::vector<float> expected(c.cols), actual(c.cols);
          scalar.dequantize_row(w, row, expected.data());
          fast.dequantize_row(w, row, actual.data());
          ASSERT_TRUE(same_bits(expected, actual)) << info(type).name << " row " << row;
        }
      }
    }
}

SW_FOR_VECTOR_SETS(FloatProduct);

}  // namespace
}  // namespace spillway::cpu
