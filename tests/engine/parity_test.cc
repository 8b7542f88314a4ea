// Logits of small F32 models against llama.cpp's, stored in tests/data/peer_logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "support/exact_forward.h"
#include "support/golden_logits.h"
#include "support/run_engine.h"

namespace spillway {
namespace {

using namespace test_support;

// Both engines work in F32 with sums in different orders; a wrong step of the forward pass is off by far
// more.
constexpr double kLargestDifference = 1e-4;  // in standard deviations of the logits

std::string golden_path(const std::string& name) {
  return SPILLWAY_SOURCE_DIR "/tests/data/peer_logits/" + name + ".txt";
}

double deviation(const GoldenLogits& golden) {
  double sum = 0, squares = 0;
  size_t n = 0;
  for (const auto& row : golden.rows)
    for (const float value : row.logits) sum += value, squares += double{value} * value, ++n;
  return std::sqrt(squares / static_cast<double>(n) -
                   (sum / static_cast<double>(n)) * (sum / static_cast<double>(n)));
}

// `rows`: one for each token.
template <class T>
double largest_difference(const GoldenLogits& golden, const std::vector<T>& rows) {
  double largest = 0;
  for (const auto& row : golden.rows)
    for (size_t i = 0; i < row.logits.size(); ++i) {
      const double difference =
          std::abs(static_cast<double>(rows[row.position * row.logits.size() + i]) - row.logits[i]);
      largest = std::isnan(difference) ? difference : std::max(largest, difference);
    }
  return largest / deviation(golden);
}

class PeerLogits : public testing::TestWithParam<std::string> {};

TEST_P(PeerLogits, EqualOurs) {
  const auto golden = read_golden_logits(golden_path(GetParam()));
  ASSERT_TRUE(golden) << golden.error().message;
  const MadeModel model = make_model(golden->spec);
  ASSERT_EQ(file_hash(model), golden->file_hash)
      << "the generator of random models has changed: make the goldens again";
  ASSERT_FALSE(golden->rows.empty());
  ASSERT_EQ(golden->rows[0].logits.size(), golden->spec.vocabulary);

  const ModelFile file(model);
  const auto engine = load_engine(file, {.threads = 2, .kv_types = {cpu::KvType::kF32, cpu::KvType::kF32}});
  const double difference = largest_difference(*golden, all_logits(*engine, golden->tokens));
  RecordProperty("largest_difference", std::to_string(difference));
  std::printf("  %-24s largest difference %.2g standard deviations\n", GetParam().c_str(), difference);
  EXPECT_LE(difference, kLargestDifference);

  // The yardstick of quantized_test is held to the same.
  const auto exact = exact_forward(file.path(), golden->tokens);
  ASSERT_TRUE(exact) << exact.error().message;
  EXPECT_LE(largest_difference(*golden, exact->rows), kLargestDifference);
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(SPILLWAY_SOURCE_DIR "/tests/data/peer_logits"))
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Golden, PeerLogits, testing::ValuesIn(golden_names()), [](const auto& golden) {
  std::string name = golden.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(Parity, EveryFamilyHasAGolden) {
  std::string all;
  for (const std::string& name : golden_names()) all += name + " ";
  for (const char* name :
       {"llama ", "olmoe ", "qwen2moe ", "qwen3moe ", "yarn", "linear", "rope-factors", "tied"})
    EXPECT_NE(all.find(name), std::string::npos) << name;
}

// The peer no longer loads the old Mixtral form. Its weights are the same bytes, so the logits must be.
TEST(Parity, OldPerExpertTensorsGiveTheSameBits) {
  const auto golden = read_golden_logits(golden_path("llama"));
  ASSERT_TRUE(golden);
  ModelSpec split = golden->spec;
  split.split_experts = true;
  const ModelFile merged_file(golden->spec), split_file(split);
  for (const engine::LoadMode mode : {engine::LoadMode::kRead, engine::LoadMode::kMmap}) {
    const auto a = load_engine(merged_file, {.load_mode = mode});
    const auto b = load_engine(split_file, {.load_mode = mode});
    EXPECT_EQ(all_logits(*a, golden->tokens), all_logits(*b, golden->tokens));
  }
}

// What the peer cannot run is held against the exact forward, which reads the same description of the model
// but shares no arithmetic with the engine.
struct Variant {
  const char* name;
  ModelSpec spec;
};

class ExactLogitsOf : public testing::TestWithParam<Variant> {};

TEST_P(ExactLogitsOf, EqualOurs) {
  const ModelFile file(GetParam().spec);
  const auto engine = load_engine(file, {.kv_types = {cpu::KvType::kF32, cpu::KvType::kF32}});
  const auto tokens = random_tokens(40, GetParam().spec.vocabulary, 5);
  const auto exact = exact_forward(file.path(), tokens);
  ASSERT_TRUE(exact) << exact.error().message;
  const auto ours = all_logits(*engine, tokens);
  double largest = 0;
  for (size_t i = 0; i < ours.size(); ++i) largest = std::max(largest, std::abs(ours[i] - exact->rows[i]));
  EXPECT_LE(largest, 2 * kLargestDifference);  // the logits' deviation is about 2
}

INSTANTIATE_TEST_SUITE_P(
    Variants, ExactLogitsOf,
    testing::Values(Variant{"partial_rope_neox", {.family = "qwen3moe", .rope_length = 8}},
                    Variant{"partial_rope_normal", {.family = "llama", .rope_length = 12}},
                    Variant{"partial_rope_yarn",
                            {.family = "qwen2moe",
                             .head_length = 32,
                             .rope_length = 16,
                             .rope_scaling = "yarn",
                             .rope_original_context = 16}},
                    Variant{"interleaved_dense_layers",
                            {.family = "qwen3moe", .layers = 4, .dense_layers = {0, 2}}},
                    Variant{"leading_dense_layer",
                            {.family = "qwen2moe", .layers = 3, .dense_layers = {0}, .dense_width = 80}},
                    Variant{"dense_layer_in_mixtral", {.family = "llama", .layers = 3, .dense_layers = {1}}},
                    Variant{"all_experts_used", {.family = "olmoe", .kv_heads = 4, .experts = 3, .used = 3}},
                    Variant{"one_expert_used", {.family = "llama", .experts = 5, .used = 1}},
                    Variant{"tied_olmoe", {.family = "olmoe", .kv_heads = 4, .tied = true}},
                    Variant{"odd_sizes",
                            {.family = "qwen3moe",
                             .layers = 2,
                             .hidden = 72,
                             .heads = 3,
                             .kv_heads = 1,
                             .head_length = 20,
                             .experts = 7,
                             .used = 3,
                             .expert_width = 37,
                             .vocabulary = 301}}),
    [](const auto& golden) { return golden.param.name; });

}  // namespace
}  // namespace spillway
