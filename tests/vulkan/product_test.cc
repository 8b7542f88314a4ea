// Products and embeddings of every weight type against the scalar kernels, bit for bit.
#include "numerics/all_types.h"
#include "vulkan/rig.h"

namespace spillway::vulkan {
namespace {

class Products : public Rig, public testing::WithParamInterface<TensorType> {};

uint32_t some_cols(TensorType type, uint32_t blocks) {
  const uint32_t length = info(type).block_length;
  return length == 1 ? blocks * 32 + 5 : blocks * length;
}

// Rows that fill no group, a bias, one token (a thread's own) and eleven (a tile and a rest).
TEST_P(Products, EqualTheDefinition) {
  Random random(17);
  const TensorType type = GetParam();
  for (const uint32_t blocks : {1u, 9u}) {
    // The device's own integer dot product, slow or not, and what replaces it.
    integer_dot_ =
        blocks == 1 ? VulkanOptions::IntegerDot::kNever : VulkanOptions::IntegerDot::kWherePossible;
    const uint32_t cols = some_cols(type, blocks);
    const TestMatrix w = random_matrix(random, type, 37, cols),
                     other = random_matrix(random, type, 16, cols, Scales::kAny);
    const std::vector<float> bias = random.values(37);
    const TestMatrix bias_vector = vector_of(bias);
    DeviceSpec spec = small_spec({cols + 3, 40, 16}, 11);
    spec.weights = {w.shape(), other.shape(), bias_vector.shape()};
    Device& device = ready(spec);
    ASSERT_TRUE(device.upload(0, w.in_file()));
    ASSERT_TRUE(device.upload(1, other.in_groups()));
    ASSERT_TRUE(device.upload(2, bias_vector.in_file()));
    for (const uint32_t tokens : {1u, 11u, 8u})
      for (const auto kind : {Random::Kind::kOrdinary, Random::Kind::kWide, Random::Kind::kWild}) {
        const std::vector<float> x = random.values(size_t{tokens} * (cols + 3), kind);
        const TestStep step(tokens);
        device.begin(step.step());
        device.write_buffer(0, x.data());
        const Linear targets[] = {{.weight = 0, .bias = 2, .out = 1}, {.weight = 1, .out = 2}};
        device.linear(0, targets);
        std::vector<float> y(tokens * 40), z(tokens * 16);
        device.read_buffer(1, y.data());
        device.read_buffer(2, z.data());
        if (const auto done = device.finish(); !done) FAIL() << done.error().message;
        const auto expected = reference_product(w, x, tokens, cols + 3, bias.data());
        for (uint32_t t = 0; t < tokens; ++t)
          ASSERT_TRUE(same_bits({expected.data() + t * 37, 37}, {y.data() + t * 40, 37})) << "token " << t;
        ASSERT_TRUE(same_bits(reference_product(other, x, tokens, cols + 3), z));
      }
  }
}

TEST_P(Products, EmbeddingsEqualTheDefinition) {
  Random random(18);
  const TensorType type = GetParam();
  const uint32_t cols = some_cols(type, 3);
  const TestMatrix table = random_matrix(random, type, 35, cols, Scales::kAny);
  DeviceSpec spec = small_spec({cols + 1}, 5);
  spec.weights = {table.shape()};
  Device& device = ready(spec);
  ASSERT_TRUE(device.upload(0, table.in_file()));
  TestStep step(5);
  step.tokens = {0, 34, 17, 15, 16};
  device.begin(step.step());
  device.embed(0, 0);
  std::vector<float> out(5 * (cols + 1)), expected(cols);
  device.read_buffer(0, out.data());
  if (const auto done = device.finish(); !done) FAIL() << done.error().message;
  for (size_t t = 0; t < 5; ++t) {
    cpu::kernels(cpu::InstructionSet::kScalar)
        .dequantize_row(table.in_file(), static_cast<uint32_t>(step.tokens[t]), expected.data());
    EXPECT_TRUE(same_bits(expected, std::span(out).subspan(t * (cols + 1), cols))) << "token " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Products, testing::ValuesIn(numerics::kAllTypes),
                         [](const testing::TestParamInfo<TensorType>& param) {
                           return std::string(spillway::info(param.param).name);
                         });

// A matrix of one F32 row lies without padding.
TEST_F(Rig, SingleRowProduct) {
  Random random(19);
  const TestMatrix w = random_matrix(random, TensorType::kF32, 1, 77);
  DeviceSpec spec = small_spec({77, 1}, 9);
  spec.weights = {w.shape()};
  Device& device = ready(spec);
  ASSERT_TRUE(device.upload(0, w.in_groups()));
  for (const uint32_t tokens : {1u, 9u}) {
    const std::vector<float> x = random.values(size_t{tokens} * 77);
    const TestStep step(tokens);
    device.begin(step.step());
    device.write_buffer(0, x.data());
    const Linear targets[] = {{.weight = 0, .out = 1}};
    device.linear(0, targets);
    std::vector<float> y(tokens);
    device.read_buffer(1, y.data());
    if (const auto done = device.finish(); !done) FAIL() << done.error().message;
    EXPECT_TRUE(same_bits(reference_product(w, x, tokens, 77), y));
  }
}

}  // namespace
}  // namespace spillway::vulkan
