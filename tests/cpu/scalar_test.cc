// The scalar table against numerics/: what the table adds are layouts, strides and pages.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "backend/cpu/tables.h"
#include "numerics/float_bits.h"
#include "numerics/formats.h"
#include "numerics/layout.h"

namespace spillway::cpu {
namespace {

using numerics::bits_of;

struct Buffers {
  std::vector<float> f32, d;
  std::vector<int8_t> q;
  std::vector<int16_t> sums;
  Activations view;

  Buffers(ActivationKind kind, uint32_t tokens, uint32_t cols)
      : f32(size_t{tokens} * cols),
        d(size_t{tokens} * cols),
        q(size_t{tokens} * cols),
        sums(size_t{tokens} * cols) {
    view = {kind, tokens, cols, f32.data(), q.data(), d.data(), sums.data()};
  }
};

// Random bytes whose scales are ordinary: every byte 0x2c..0x3b where a scale's exponent could lie.
std::vector<std::byte> random_matrix(TensorType type, uint32_t rows, uint32_t cols, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(rows * row_bytes(type, cols));
  for (std::byte& b : bytes) b = static_cast<std::byte>(0x2c + random() % 16);
  return bytes;
}

TEST(Scalar, LayoutsAgree) {
  const Kernels& k = scalar_kernels();
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16, TensorType::kQ4_1,
                                TensorType::kQ8_0, TensorType::kMXFP4, TensorType::kQ2_K, TensorType::kQ3_K,
                                TensorType::kQ4_K, TensorType::kQ6_K, TensorType::kIQ4_XS}) {
    const uint32_t rows = 21, cols = 768, tokens = 3;
    const std::vector<std::byte> file = random_matrix(type, rows, cols, 1);
    std::vector<std::byte> groups(numerics::interleaved_bytes(type, rows, cols));
    numerics::interleave(type, rows, cols, file.data(), groups.data());
    const Matrix in_file = {type, Layout::kFile, rows, cols, file.data()};
    const Matrix interleaved = {type, Layout::kInterleaved, rows, cols, groups.data()};

    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    std::vector<float> x(tokens * cols);
    for (float& v : x) v = normal(random);
    Buffers a(activation_kind(type), tokens, cols);
    for (uint32_t t = 0; t < tokens; ++t) k.quantize(x.data() + t * cols, a.view, t);

    std::vector<std::byte> memory(k.scratch_bytes(cols, 0));
    const Scratch scratch = {memory.data(), memory.size()};
    const size_t stride = 30;
    std::vector<float> one(2 * stride, -1), two(2 * stride, -1);
    const uint32_t index[] = {2, 0};
    const TokenSet set = {index, 2};
    k.product(in_file, 0, 2, a.view, set, one.data(), stride, scratch);
    k.product(interleaved, 0, 1, a.view, set, two.data(), stride, scratch);
    k.product(interleaved, 1, 2, a.view, set, two.data(), stride, scratch);
    for (size_t i = 0; i < one.size(); ++i) {
      ASSERT_EQ(bits_of(one[i]), bits_of(two[i])) << info(type).name << " " << i;
      if (i % stride >= rows) {
        ASSERT_EQ(one[i], -1) << "written past the rows";
      }
    }
    // Token 0 alone gives what it gave as the second of two.
    k.product(in_file, 0, 2, a.view, {nullptr, 1}, two.data(), stride, scratch);
    for (size_t r = 0; r < rows; ++r) ASSERT_EQ(bits_of(two[r]), bits_of(one[stride + r]));

    std::vector<float> w(cols), v(cols);
    k.dequantize_row(in_file, 20, w.data());
    k.dequantize_row(interleaved, 20, v.data());
    ASSERT_EQ(std::memcmp(w.data(), v.data(), cols * 4), 0) << info(type).name;
  }
}

// Keys and values written through pages come back where attention looks: with one key the output is its
// value.
TEST(Scalar, PagesAndHeads) {
  const Kernels& k = scalar_kernels();
  for (const KvType type : {KvType::kF16, KvType::kF32}) {
    const uint32_t heads = 2, key_length = 5, value_length = 3, positions = 70;
    std::vector<std::vector<float>> keys(3, std::vector<float>(heads * key_length * kPagePositions));
    std::vector<std::vector<float>> values(3, std::vector<float>(heads * value_length * kPagePositions));
    void* const key_pages[] = {keys[2].data(), keys[0].data(), keys[1].data()};
    void* const value_pages[] = {values[2].data(), values[0].data(), values[1].data()};
    const KvView kv = {{type, type}, heads, key_length, value_length, key_pages, value_pages};
    const auto value_of = [](uint32_t t, uint32_t h, uint32_t d) {
      return static_cast<float>(t * 16 + h * 4 + d);
    };
    for (uint32_t t = 0; t < positions; ++t) {
      std::vector<float> key(heads * key_length, 0.5f), value(heads * value_length);
      for (uint32_t h = 0; h < heads; ++h)
        for (uint32_t d = 0; d < value_length; ++d) value[h * value_length + d] = value_of(t, h, d);
      k.store_kv(kv, t, key.data(), value.data());
    }
    std::vector<std::byte> memory(k.scratch_bytes(0, 5));
    const std::vector<float> q(key_length, 1.0f);
    for (uint32_t h = 0; h < heads; ++h) {
      std::vector<float> out(positions * value_length), all(value_length);
      std::vector<AttentionQuery> queries;
      for (uint32_t t = 0; t < positions; ++t)
        queries.push_back({q.data(), out.data() + t * value_length, t, t + 1});
      queries.push_back({q.data(), all.data(), 0, positions});
      k.attention(kv, h, queries, {}, {memory.data(), memory.size()});
      for (uint32_t t = 0; t < positions; ++t)
        for (uint32_t d = 0; d < value_length; ++d) ASSERT_EQ(out[t * value_length + d], value_of(t, h, d));
      for (uint32_t d = 0; d < value_length; ++d)
        ASSERT_NEAR(all[d], 69 * 8 + h * 4 + d, 1e-3);  // equal weights
    }
  }
}

// Page layout by hand (kernels.h): position 37 is place 5 of page 1; head 1 of 2, key length 5, d = 2:
// ((1 * 2 + 0) * 5 + 2) * 16 + 5; value length 3, d = 2: (1 * 32 + 5) * 3 + 2.
TEST(Scalar, KvPlace) {
  std::vector<float> keys(2 * 5 * 32), values(2 * 3 * 32);
  void* const key_pages[] = {nullptr, keys.data()};
  void* const value_pages[] = {nullptr, values.data()};
  const KvView kv = {{KvType::kF32, KvType::kF32}, 2, 5, 3, key_pages, value_pages};
  std::vector<float> key(10), value(6);
  key[5 + 2] = 7;
  value[3 + 2] = 9;
  scalar_kernels().store_kv(kv, 37, key.data(), value.data());
  EXPECT_EQ(keys[(2 * 5 + 2) * 16 + 5], 7);
  EXPECT_EQ(values[37 * 3 + 2], 9);
}

TEST(Dispatch, EverySetUpToTheBest) {
  const auto best = static_cast<int>(best_instruction_set());
  const char* names[] = {"scalar", "avx2", "avx512"};
  for (int set = 0; set <= best; ++set)
    EXPECT_STREQ(kernels(static_cast<InstructionSet>(set)).name, names[set]);
}

}  // namespace
}  // namespace spillway::cpu
