// Quantized products of each instruction set against the scalar definition (numerics::row_product), bit for
// bit.
#include "numerics/product.h"

#if defined(__x86_64__)
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "backend/cpu/avx2_product.h"
#include "backend/cpu/avx512_product.h"
#include "base/tensor_type.h"
#include "numerics/float_bits.h"
#include "numerics/formats.h"
#include "numerics/layout.h"

namespace spillway::cpu {
namespace {

using enum TensorType;
constexpr std::array kTypes = {kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kIQ4_NL, kMXFP4,
                               kQ2_K, kQ3_K, kQ4_K, kQ5_K, kQ6_K, kIQ4_XS};
constexpr uint32_t kRows = 33, kTokens = 70;

struct Set {
  const char* name;
  bool (*supported)();
  decltype(&product_avx512) product;
  decltype(&product_scratch_avx512) scratch;
};

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"); }

constexpr Set kSets[] = {{"avx512", has_avx512, product_avx512, product_scratch_avx512},
                         {"avx2", has_avx2, product_avx2, product_scratch_avx2}};

// Bytes whose end is the end of readable memory.
class Guarded {
 public:
  explicit Guarded(size_t bytes) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    length_ = (bytes + page - 1) / page * page + page;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + length_ - page, page, PROT_NONE);
    data_ = base_ + length_ - page - bytes;
  }
  ~Guarded() { munmap(base_, length_); }
  Guarded(const Guarded&) = delete;
  std::byte* data() { return data_; }

 private:
  std::byte *base_, *data_;
  size_t length_;
};

// Offsets of the half-precision scales of a block.
std::vector<size_t> scale_offsets(TensorType type) {
  namespace at = numerics::layout;
  switch (type) {
    case kMXFP4:
      return {};
    case kQ4_1:
    case kQ5_1:
      return {at::q4_1::kD, at::q4_1::kM};
    case kQ2_K:
      return {at::q2_k::kD, at::q2_k::kDmin};
    case kQ3_K:
      return {at::q3_k::kD};
    case kQ4_K:
    case kQ5_K:
      return {at::q4_k::kD, at::q4_k::kDmin};
    case kQ6_K:
      return {at::q6_k::kD};
    default:
      return {0};
  }
}

uint16_t random_scale(std::mt19937& random, uint32_t row) {
  static constexpr uint16_t kSpecial[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfbff,
                                          0x0400, 0x7c00, 0xfc00, 0x7e01, 0xfd55};
  if (row % 7 == 3 && random() % 4 == 0) return kSpecial[random() % 7];  // finite
  if (row % 11 == 6 && random() % 4 == 0)
    return kSpecial[random() % std::size(kSpecial)];  // infinite or NaN too
  return static_cast<uint16_t>((random() % 2 << 15) | (6 + random() % 12) << 10 | random() % 1024);
}

// Rows in file layout: random, with rows of extreme codes between them.
void fill_weights(TensorType type, uint32_t cols, std::mt19937& random, std::byte* data) {
  static constexpr uint8_t kFill[] = {0x00, 0xff, 0x80, 0x7f};
  const size_t block_bytes = info(type).block_bytes, blocks = cols / info(type).block_length;
  for (uint32_t r = 0; r < kRows; ++r)
    for (size_t b = 0; b < blocks; ++b) {
      std::byte* block = data + (r * blocks + b) * block_bytes;
      const bool extreme = r % 8 == 5;
      for (size_t i = 0; i < block_bytes; ++i)
        block[i] = static_cast<std::byte>(extreme ? kFill[r / 8 % 4] : random() % 256);
      if (extreme && type == kQ6_K && r == 5)  // least scales with least codes: the largest sum
        std::memset(block + numerics::layout::q6_k::kScales, 0x80, 16);
      if (type == kMXFP4 && r % 3 != 0) block[0] = static_cast<std::byte>(110 + random() % 30);
      for (const size_t at : scale_offsets(type)) {
        const uint16_t scale = random_scale(random, r);
        std::memcpy(block + at, &scale, 2);
      }
    }
}

struct Input {
  std::vector<int8_t> q;
  std::vector<float> d;
  std::vector<int16_t> sums;
  Activations x;

  Input(TensorType type, uint32_t tokens, uint32_t cols, std::mt19937& random) {
    const uint32_t length = info(type).block_length, per_sum = length == 256 ? 16 : 32;
    for (uint32_t t = 0; t < tokens; ++t)
      for (uint32_t i = 0; i < cols; ++i) {
        int v = static_cast<int>(random() % 255) - 127;
        if (t % 10 == 1) v = 127;
        if (t % 10 == 2) v = -127;
        if (t % 10 == 3) v = random() % 2 != 0 ? 127 : -127;
        if (t % 10 == 4) v = 0;
        q.push_back(static_cast<int8_t>(v));
      }
    for (uint32_t i = 0; i < tokens * (cols / length); ++i) {
      float v =
          std::ldexp(1.0f + static_cast<float>(random() % 4096) / 4096, static_cast<int>(random() % 20) - 12);
      if (random() % 50 == 0) v = 0;
      if (random() % 400 == 0) v = std::bit_cast<float>(0x7fc00000u);
      d.push_back(v);
    }
    for (size_t i = 0; i < q.size(); i += per_sum) {
      int sum = 0;
      for (size_t k = 0; k < per_sum; ++k) sum += q[i + k];
      sums.push_back(static_cast<int16_t>(sum));
    }
    x = {.kind = length == 256 ? ActivationKind::kQ256 : ActivationKind::kQ32,
         .tokens = tokens,
         .cols = cols,
         .q = q.data(),
         .d = d.data(),
         .sums = sums.data()};
  }

  numerics::ActivationRow row(uint32_t t) const {
    return {nullptr, x.q + size_t{t} * x.cols, x.d + size_t{t} * x.blocks(),
            x.sums + size_t{t} * x.sums_per_row()};
  }
};

bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (numerics::is_nan(a) && numerics::is_nan(b));
}

// What a set asks for, ending where memory ends.
struct ScratchOf {
  size_t bytes;
  Guarded memory;
  ScratchOf(const Set& set, uint32_t cols) : bytes(set.scratch(cols)), memory((bytes + 63) / 64 * 64) {}
  Scratch lent() { return {memory.data(), bytes}; }
};

constexpr float kCanary = 1234.5f;

// One call, all of whose outputs and surroundings are checked. `expected` is (tokens of x, rows of the file).
void check(const Set& set, Scratch scratch, const Matrix& w, uint32_t group_begin, uint32_t group_end,
           const Activations& x, TokenSet tokens, const std::vector<float>& expected,
           uint32_t expected_stride) {
  const size_t stride = w.rows + 3;
  std::vector<float> out(tokens.n * stride + 16, kCanary);
  set.product(w, group_begin, group_end, x, tokens, out.data() + 1, stride, scratch);
  size_t wrong = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t token = (i - 1) / stride, row = (i - 1) % stride;
    const bool written =
        i > 0 && token < tokens.n && row < w.rows && row >= group_begin * 16 && row < group_end * 16;
    const float want =
        written ? expected[tokens.at(static_cast<uint32_t>(token)) * expected_stride + row] : kCanary;
    if (same(out[i], want)) continue;
    if (wrong++ == 0)
      ADD_FAILURE() << set.name << " " << info(w.type).name
                    << (w.layout == Layout::kFile ? " file" : " interleaved") << " rows " << w.rows
                    << " cols " << w.cols << " tokens " << tokens.n << ": output token " << token << " row "
                    << row << " is " << out[i] << ", want " << want;
  }
  EXPECT_EQ(wrong, 0u);
}

class ProductTest : public testing::TestWithParam<TensorType> {};

TEST_P(ProductTest, EqualsDefinition) {
  const TensorType type = GetParam();
  std::mt19937 random(static_cast<uint32_t>(type) + 1);
  uint32_t turn = 0;
  for (const uint32_t blocks : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 17u}) {
    if (blocks == 17 && info(type).block_length == 256) continue;
    const uint32_t cols = blocks * info(type).block_length;
    const size_t bytes = row_bytes(type, cols);
    std::vector<std::byte> file(kRows * bytes);
    fill_weights(type, cols, random, file.data());
    const Input input(type, kTokens, cols, random);
    std::vector<float> expected(kTokens * kRows);
    size_t nans = 0;
    for (uint32_t t = 0; t < kTokens; ++t)
      for (uint32_t r = 0; r < kRows; ++r) {
        expected[t * kRows + r] = numerics::row_product(type, file.data() + r * bytes, input.row(t), cols);
        nans += numerics::is_nan(expected[t * kRows + r]);
      }
    ASSERT_LT(nans, expected.size() / 2);

    for (const uint32_t rows : {1u, 5u, 16u, 17u, 33u}) {
      Guarded file_rows(rows * bytes);  // ends where memory ends; as unaligned as the type makes it
      std::memcpy(file_rows.data(), file.data(), rows * bytes);
      Guarded groups(numerics::interleaved_bytes(type, rows, cols));
      numerics::interleave(type, rows, cols, file.data(), groups.data());
      for (const Set& set : kSets) {
        if (!set.supported()) continue;
        ScratchOf scratch(set, cols);
        for (const Layout layout : {Layout::kFile, Layout::kInterleaved}) {
          const Matrix w{type, layout, rows, cols,
                         layout == Layout::kFile ? file_rows.data() : groups.data()};
          for (uint32_t n = 1 + turn++ % 3; n <= kTokens; n += n < 14 ? 3 : 11 + turn % 9)
            check(set, scratch.lent(), w, 0, w.groups(), input.x, {nullptr, n}, expected, kRows);
          std::vector<uint32_t> index(1 + random() % 20);
          for (uint32_t& i : index) i = static_cast<uint32_t>(random() % kTokens);
          const TokenSet gathered{index.data(), static_cast<uint32_t>(index.size())};
          check(set, scratch.lent(), w, 0, w.groups(), input.x, gathered, expected, kRows);
          if (w.groups() > 1) check(set, scratch.lent(), w, 1, 2, input.x, gathered, expected, kRows);
        }
      }
    }
  }
}

// More tokens than one pass packs (kPackTokens), and rows so long that a pass is smaller than that.
TEST_P(ProductTest, ManyTokensAndLongRows) {
  const TensorType type = GetParam();
  std::mt19937 random(static_cast<uint32_t>(type) + 100);
  for (const uint32_t cols : {256u, 16384u}) {
    const uint32_t rows = 3, n = cols == 256 ? 200 : 31;
    const size_t bytes = row_bytes(type, cols);
    std::vector<std::byte> file(kRows * bytes);
    fill_weights(type, cols, random, file.data());
    const Input input(type, n, cols, random);
    std::vector<float> expected(n * rows);
    for (uint32_t t = 0; t < n; ++t)
      for (uint32_t r = 0; r < rows; ++r)
        expected[t * rows + r] = numerics::row_product(type, file.data() + r * bytes, input.row(t), cols);
    for (const Set& set : kSets)
      if (set.supported())
        check(set, ScratchOf(set, cols).lent(), {type, Layout::kFile, rows, cols, file.data()}, 0, 1, input.x,
              {nullptr, n}, expected, rows);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ProductTest, testing::ValuesIn(kTypes),
                         [](const auto& each) { return std::string(spillway::info(each.param).name); });

TEST(ProductTest, SomeInstructionSetIsTested) {
  if (!has_avx512() && !has_avx2())
    GTEST_SKIP() << "this processor has neither AVX2 nor AVX-512: only the scalar kernels run";
}

}  // namespace
}  // namespace spillway::cpu

#endif
