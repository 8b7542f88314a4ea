// What loading does to weights.
#include "engine/weights.h"

#include <gtest/gtest.h>

#include <cstring>

#include "engine/model_files.h"
#include "engine/program.h"
#include "model/describe.h"
#include "support/run_engine.h"

namespace spillway {
namespace {

using namespace test_support;

void set_value(MadeModel& model, std::string_view name, size_t index, float value) {
  auto* tensor = model.find(name);
  ASSERT_NE(tensor, nullptr) << name;
  auto bytes = std::make_shared<std::vector<std::byte>>(*tensor->bytes);
  std::memcpy(bytes->data() + index * sizeof(float), &value, sizeof(float));
  tensor->bytes = bytes;
}

// Norm weights and biases below 2^-40 read as +0 (docs/numerics.md, "Small numbers"), so that no product or
// sum is denormal: a device that flushes those gives the same bits.
TEST(Weights, VectorsAreFlushed) {
  MadeModel model = make_model({.family = "qwen2moe"});
  set_value(model, "blk.0.attn_q.bias", 0, 0x1p-41f);
  set_value(model, "blk.0.attn_q.bias", 1, -0x1p-130f);
  set_value(model, "blk.0.attn_q.bias", 2, 0x1p-40f);
  set_value(model, "output_norm.weight", 5, -0x1p-60f);
  const ModelFile file(model);
  const auto files = engine::open_model_files(file.path());
  ASSERT_TRUE(files);
  const auto description = model::describe(files->model.metadata(), files->model.tensors());
  ASSERT_TRUE(description);
  const engine::Program program(*description);
  for (const engine::LoadMode mode :
       {engine::LoadMode::kRead, engine::LoadMode::kMmap, engine::LoadMode::kDirect}) {
    const auto weights =
        engine::HostWeights::load(*files, program.weights, std::vector<bool>(program.weights.size(), true),
                                  mode, cpu::kernels(cpu::best_instruction_set()), 1, {});
    ASSERT_TRUE(weights) << weights.error().message;
    const auto bias = weights->vector(program.layers[0].q_bias);
    for (const size_t i : {0, 1}) {
      EXPECT_EQ(bias[i], 0.0f);
      EXPECT_FALSE(std::signbit(bias[i]));
    }
    EXPECT_EQ(bias[2], 0x1p-40f);
    EXPECT_EQ(weights->vector(program.output_norm)[5], 0.0f);
  }
}

TEST(Weights, DirectReadsThatAreRefusedBecomeOrdinaryOnesAndThePlanSaysSo) {
  const ModelFile file(ModelSpec{});
  auto files = engine::open_model_files(file.path());
  ASSERT_TRUE(files);
  const engine::Options options{.path = file.path(),
                                .load_mode = engine::LoadMode::kDirect,
                                .threads = 1,
                                .context = 64,
                                .device = {.device = "none"}};
  const auto device = engine::open_device(options.device);
  ASSERT_TRUE(device);
  const auto allowed = engine::plan(*files, options, *device);
  ASSERT_TRUE(allowed) << allowed.error().message;
  if (sys::open_direct_file(file.path())) {
    EXPECT_EQ(allowed->memory.mode, engine::LoadMode::kDirect);
    EXPECT_NE(allowed->memory.mode_reason.find("around the page cache"), std::string::npos);
  }

  files->open_direct = [](const std::string& path) -> Result<std::unique_ptr<sys::ReadableFile>> {
    return unsupported("{} can't be read around the page cache: this disk is a cloud", path);
  };
  const auto refused = engine::plan(*files, options, *device);
  ASSERT_TRUE(refused) << refused.error().message;
  EXPECT_EQ(refused->memory.mode, engine::LoadMode::kRead);
  EXPECT_EQ(refused->memory.weight_bytes, allowed->memory.weight_bytes);
  for (const char* words : {"through the page cache", "'-lm dio' is refused", "a cloud"})
    EXPECT_NE(refused->memory.mode_reason.find(words), std::string::npos) << refused->memory.mode_reason;

  // What is no refusal is no reason to go on.
  files->open_direct = [](const std::string& path) -> Result<std::unique_ptr<sys::ReadableFile>> {
    return fail(Error::Kind::kNotFound, "{} is gone", path);
  };
  EXPECT_FALSE(engine::plan(*files, options, *device));
}

}  // namespace
}  // namespace spillway
