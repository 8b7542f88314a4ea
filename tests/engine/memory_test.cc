// What a loaded model takes beside the file's pages: by the plan and as the system counts it; and that
// generating takes no more.
#include "sys/memory.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/devices.h"
#include "engine/memory_plan.h"
#include "gguf/writer.h"
#include "support/run_engine.h"
#include "support/sanitizers.h"

namespace spillway {
namespace {

using namespace test_support;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kMostAboveTheFile = 300 * kMiB;  // of a model of 2.5 G parameters with -lm mmap -c 4096

// A header of that model, whose weights are a hole in the file: a plan reads none of them.
void write_2_5_g_parameters(const std::string& path) {
  constexpr uint32_t kLayers = 24, kRows = 32000;
  MadeModel one = make_model({.layers = 1,
                              .hidden = 1024,
                              .heads = 16,
                              .kv_heads = 4,
                              .head_length = 64,
                              .experts = 64,
                              .used = 8,
                              .expert_width = 512,
                              .context = 40960,
                              .type = TensorType::kQ4_K,
                              .expert_type = TensorType::kQ4_K,
                              .distinct = 1});
  one.metadata.set("qwen3moe.block_count", kLayers);
  one.metadata.set("qwen3moe.vocab_size", kRows);
  // Never touched, so it takes no memory: as large as the largest tensor (64 experts).
  const auto nothing = *sys::Allocation::create(64 * kMiB, sys::Pages::kSmall);
  gguf::FileSource source{.metadata = one.metadata};
  const auto add = [&](const MadeModel::Tensor& tensor, std::string name) {
    std::vector<uint64_t> dims = tensor.dims;
    if (name == "token_embd.weight" || name == "output.weight") dims[1] = kRows;
    uint64_t bytes = row_bytes(tensor.type, dims[0]);
    for (size_t i = 1; i < dims.size(); ++i) bytes *= dims[i];
    source.tensors.push_back(
        {std::move(name), static_cast<uint32_t>(tensor.type), std::move(dims), nothing.bytes().first(bytes)});
  };
  for (const auto& tensor : one.tensors)
    for (uint32_t n = 0; n < (tensor.name.starts_with("blk.0.") ? kLayers : 1); ++n)
      add(tensor, n == 0 ? tensor.name : "blk." + std::to_string(n) + tensor.name.substr(5));
  std::ofstream file(path, std::ios::binary);
  uint64_t length = 0;
  const auto written = gguf::write_file(source, [&](std::span<const std::byte> bytes) -> Result<void> {
    length += bytes.size();
    if (bytes.data() >= nothing.data() && bytes.data() < nothing.data() + nothing.size())
      file.seekp(static_cast<std::streamoff>(length));
    else
      file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return {};
  });
  ASSERT_TRUE(written) << written.error().message;
  file.close();
  std::filesystem::resize_file(path, length);
}

TEST(Memory, AMappedModelOf2_5GParametersTakesLessThan300MiB) {
  const std::string path = testing::TempDir() + "spillway-2_5g-" + std::to_string(::getpid()) + ".gguf";
  write_2_5_g_parameters(path);
  const auto files = engine::open_model_files(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(files) << files.error().message;
  const engine::Options options{.path = path,
                                .load_mode = engine::LoadMode::kMmap,
                                .threads = 2,
                                .context = 4096,
                                .device = {.device = "none"}};
  const auto device = engine::open_device(options.device);
  ASSERT_TRUE(device) << device.error().message;
  const auto plan = engine::plan(*files, options, *device);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_GT(plan->memory.mapped_bytes, 1300 * kMiB);
  EXPECT_EQ(plan->memory.kv_bytes,
            uint64_t{4096} * 24 * 2 * 4 * 64 * 2);  // positions, layers, K and V, heads, F16
  EXPECT_LT(plan->memory.own_bytes(), kMostAboveTheFile);
}

// A number of /proc/self/status, in bytes.
uint64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) * 1024;
  ADD_FAILURE() << "/proc/self/status has no " << name;
  return 0;
}

uint64_t malloc_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(Memory, LoadingTakesWhatThePlanSaysAndGeneratingTakesNoMore) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory is larger than what is measured";
  const ModelSpec spec{.layers = 8,
                       .hidden = 256,
                       .heads = 8,
                       .kv_heads = 4,
                       .head_length = 64,
                       .experts = 32,
                       .used = 4,
                       .expert_width = 256,
                       .vocabulary = 4000,
                       .context = 8192,
                       .type = TensorType::kQ8_0,
                       .expert_type = TensorType::kQ8_0,
                       .distinct = 4};
  const ModelFile file(spec);
  malloc_trim(0);
  const uint64_t before = status_bytes("RssAnon");
  const auto engine = load_engine(
      file,
      {.load_mode = engine::LoadMode::kMmap, .threads = 2, .context = 4096, .device = {.device = "none"}});
  const auto tokens = random_tokens(1500, spec.vocabulary, 1);
  const engine::SequenceId sequence = engine->open_sequence();
  const auto decode = [&](size_t first, size_t count) {
    const engine::BatchItem item{sequence, std::span(tokens).subspan(first, count)};
    ASSERT_TRUE(engine->decode(std::span(&item, 1), [](size_t, size_t, std::span<const float>) {}));
  };
  decode(0, 600);                                   // more than a micro-batch
  for (size_t i = 600; i < 616; ++i) decode(i, 1);  // and what a single token first touches
  const uint64_t heap = malloc_bytes(), data = status_bytes("VmData"), resident = status_bytes("RssAnon");
  for (size_t i = 616; i < tokens.size(); ++i) decode(i, 1);
  EXPECT_LE(malloc_bytes(), heap + 4096);  // the list of the sequence's pages
  EXPECT_EQ(status_bytes("VmData"), data);
  // Pages of the cache are touched as it fills, which the plan has counted.
  const uint64_t kv_per_token = engine->memory().kv_bytes / engine->context();
  EXPECT_LE(status_bytes("RssAnon"), resident + (tokens.size() - 616 + 256) * kv_per_token + kMiB);
  const uint64_t taken = status_bytes("RssAnon") - before;
  EXPECT_LE(taken, engine->memory().own_bytes() + 16 * kMiB);  // threads, metadata, the tokens
  std::printf("  %.1f MiB taken, %.1f MiB planned, %.1f MiB mapped\n", static_cast<double>(taken) / kMiB,
              static_cast<double>(engine->memory().own_bytes()) / kMiB,
              static_cast<double>(engine->memory().mapped_bytes) / kMiB);
}

}  // namespace
}  // namespace spillway
