// Any part of the experts gives the rows that all of them give, and those are what one product after the
// other gives.
#include "backend/cpu/expert_compute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "cpu/same_bits.h"
#include "support/random_matrix.h"

namespace spillway::cpu {
namespace {

using test_support::random_matrix;
using test_support::RandomMatrix;

constexpr uint32_t kExperts = 8, kUsed = 3, kHidden = 256, kWidth = 512, kMaxRows = 40;

struct Types {
  TensorType gate, up, down;
};

struct Fixture {
  explicit Fixture(Types types, uint64_t seed) : random(seed) {
    for (uint32_t e = 0; e < kExperts; ++e) {
      const auto layout = e % 2 == 0 ? Layout::kInterleaved : Layout::kFile;
      matrices.push_back(random_matrix(types.gate, kWidth, kHidden, random, layout));
      matrices.push_back(random_matrix(types.up, kWidth, kHidden, random, layout));
      matrices.push_back(random_matrix(types.down, kHidden, kWidth, random, layout));
      ids.push_back({3 * e, 3 * e + 1, 3 * e + 2});
    }
    for (const RandomMatrix& m : matrices) weights.push_back(m.view());
    spec.experts = ids;
    spec.routing.n_experts = kExperts;
    spec.routing.n_used = kUsed;
  }

  // Rows a little apart, and distinct experts for each.
  ExpertInput input(uint32_t rows) {
    x = Values(random()).some(size_t{rows} * kStride, Kind::kOrdinary);
    chosen.clear();
    std::vector<uint32_t> all(kExperts);
    std::iota(all.begin(), all.end(), 0);
    for (uint32_t r = 0; r < rows; ++r) {
      std::ranges::shuffle(all, random);
      chosen.insert(chosen.end(), all.begin(), all.begin() + kUsed);
    }
    return {.x = x.data(), .x_stride = kStride, .rows = rows, .used = kUsed, .ids = chosen};
  }

  // The definition: one pair on its own, by the scalar kernels.
  std::vector<float> pair_output(const ExpertInput& in, uint32_t pair) const {
    const Kernels& k = kernels(InstructionSet::kScalar);
    const auto product = [&](const Matrix& w, const float* from) {
      ActivationStore store(1, w.cols);
      const Activations a = store.view(activation_kind(w.type), 1, w.cols);
      k.quantize(from, a, 0);
      AlignedArray<std::byte> scratch(k.scratch_bytes(w.cols, 0));
      std::vector<float> out(w.rows);
      k.product(w, 0, w.groups(), a, {.n = 1}, out.data(), w.rows, {scratch.data(), scratch.size()});
      return out;
    };
    const uint32_t e = in.ids[pair];
    const float* row = in.x + pair / kUsed * in.x_stride;
    std::vector<float> gate = product(weights[3 * e], row);
    const std::vector<float> up = product(weights[3 * e + 1], row);
    k.silu_mul(gate.data(), up.data(), kWidth);
    return product(weights[3 * e + 2], gate.data());
  }

  static constexpr size_t kStride = kHidden + 5;
  std::mt19937_64 random;
  std::vector<RandomMatrix> matrices;
  std::vector<Matrix> weights;
  std::vector<backend::ExpertWeights> ids;
  backend::MoeSpec spec;
  std::vector<float> x;
  std::vector<uint32_t> chosen;
};

const backend::ComputeSizes kSizes{.max_rows = kMaxRows,
                                   .max_width = kHidden,
                                   .hidden = kHidden,
                                   .experts = kExperts,
                                   .max_experts_used = kUsed,
                                   .expert_width = kWidth};

using Rows = std::map<uint32_t, std::vector<float>>;  // by pair

void collect(const ExpertCompute& compute, Rows& rows) {
  uint32_t place = 0;
  for (const uint32_t pair : compute.pairs()) {
    const float* from = compute.outputs() + size_t{place++} * kHidden;
    EXPECT_TRUE(rows.emplace(pair, std::vector<float>(from, from + kHidden)).second) << "pair twice";
  }
}

class ExpertComputeTest : public testing::TestWithParam<Types> {};

TEST_P(ExpertComputeTest, AnySplitGivesTheSameRows) {
  for (uint32_t threads : {1u, 3u}) {
    Fixture f(GetParam(), 1 + threads);
    const auto pool = sys::ThreadPool::create(threads);
    ASSERT_TRUE(pool);
    ExpertCompute compute(**pool, kernels(best_instruction_set()), kSizes, f.weights);
    for (const uint32_t rows : {1u, 2u, 7u, kMaxRows}) {
      const ExpertInput in = f.input(rows);
      Rows whole;
      compute.run(in, f.spec);
      ASSERT_EQ(compute.pairs().size(), rows * kUsed);
      collect(compute, whole);
      for (const uint32_t pair : {0u, rows * kUsed / 2, rows * kUsed - 1})
        EXPECT_TRUE(same_bits(f.pair_output(in, pair), whole[pair])) << "pair " << pair;

      for (int split = 0; split < 10; ++split) {
        std::vector<uint8_t> first(kExperts), second(kExperts);
        for (uint32_t e = 0; e < kExperts; ++e) {
          first[e] = split == 0 ? 0 : split == 1 ? 1 : f.random() % 2;
          second[e] = first[e] == 0;
        }
        Rows parts;
        compute.run(in, f.spec, first);
        EXPECT_TRUE(std::ranges::is_sorted(compute.pairs(), {},
                                           [&](uint32_t pair) { return std::pair(in.ids[pair], pair); }));
        for (const uint32_t pair : compute.pairs()) EXPECT_EQ(first[in.ids[pair]], 1);
        collect(compute, parts);
        compute.run(in, f.spec, second);
        collect(compute, parts);
        ASSERT_EQ(parts.size(), whole.size());
        for (const auto& [pair, row] : whole) EXPECT_TRUE(same_bits(row, parts[pair])) << "pair " << pair;
      }
    }
  }
}

TEST_P(ExpertComputeTest, WeightsMayLieAnywhereInAnyOrder) {
  Fixture f(GetParam(), 9);
  const auto pool = sys::ThreadPool::create(2);
  ASSERT_TRUE(pool);
  const Kernels& k = kernels(best_instruction_set());
  ExpertCompute by_id(**pool, k, kSizes, f.weights), elsewhere(**pool, k, kSizes, {});
  const ExpertInput in = f.input(11);
  std::vector<uint8_t> takes_part(kExperts);
  std::vector<ExpertPart> parts;
  for (const uint32_t e : {6u, 0u, 3u}) {
    takes_part[e] = 1;
    parts.push_back({e, {f.weights[3 * e], f.weights[3 * e + 1], f.weights[3 * e + 2]}});
  }
  by_id.run(in, f.spec, takes_part);
  elsewhere.run(in, parts);
  Rows expected, got;
  collect(by_id, expected);
  collect(elsewhere, got);
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(expected.size(), got.size());
  for (const auto& [pair, row] : expected) EXPECT_TRUE(same_bits(row, got[pair])) << "pair " << pair;
  EXPECT_EQ(in.ids[elsewhere.pairs().front()], 6u);

  elsewhere.run(in, std::span<const ExpertPart>());
  EXPECT_TRUE(elsewhere.pairs().empty());
}

TEST_P(ExpertComputeTest, SumsInRankOrder) {
  Fixture f(GetParam(), 5);
  const auto pool = sys::ThreadPool::create(2);
  ASSERT_TRUE(pool);
  ExpertCompute compute(**pool, kernels(best_instruction_set()), kSizes, f.weights);
  const ExpertInput in = f.input(9);
  const std::vector<float> chosen_weights = Values(3).some(9 * kUsed, Kind::kOrdinary);
  std::vector<float> sums(9 * (kHidden + 3));
  compute.run_and_sum(in, f.spec,
                      {.weights = chosen_weights.data(), .out = sums.data(), .out_stride = kHidden + 3});
  Rows rows;
  collect(compute, rows);
  for (uint32_t r = 0; r < 9; ++r) {
    std::vector<float> expected(kHidden, 0.0f);
    for (uint32_t pair = r * kUsed; pair < (r + 1) * kUsed; ++pair)
      for (uint32_t i = 0; i < kHidden; ++i) {
        const float term = chosen_weights[pair] * rows[pair][i];
        expected[i] = expected[i] + term;
      }
    EXPECT_TRUE(same_bits(expected, std::span(sums).subspan(r * (kHidden + 3), kHidden))) << "row " << r;
  }
}

std::string name_of(const testing::TestParamInfo<Types>& made) {
  return std::string(info(made.param.gate).name);
}

using enum TensorType;
INSTANTIATE_TEST_SUITE_P(Types, ExpertComputeTest,
                         testing::Values(Types{kF32, kF32, kF32}, Types{kQ4_K, kQ4_K, kQ6_K},
                                         Types{kQ8_0, kBF16, kQ4_0}),
                         name_of);

}  // namespace
}  // namespace spillway::cpu
