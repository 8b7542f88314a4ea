// Opening, memory, faults and what is kept between runs.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "vulkan/rig.h"

namespace spillway::vulkan {
namespace {

namespace fs = std::filesystem;

TEST_F(Rig, DevicesSayWhatTheyAre) {
  for (const DeviceInfo& info : vulkan_devices()) {
    EXPECT_TRUE(info.id.starts_with("vulkan:"));
    EXPECT_FALSE(info.name.empty());
    EXPECT_GT(info.memory_bytes, 0u);
    EXPECT_LE(info.available_bytes, info.memory_bytes);
    EXPECT_GT(info.max_allocation_bytes, 0u);
  }
}

TEST_F(Rig, AMissingDeviceIsAnError) {
  const auto opened = open_vulkan(99);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, Error::Kind::kNotFound);
}

TEST_F(Rig, TooMuchMemorySaysHowMuch) {
  device_ = open();
  DeviceSpec spec = small_spec({64}, 4);
  const uint64_t free = device_->info().available_bytes;
  const uint32_t rows = 1 << 16;
  for (uint64_t bytes = 0; bytes <= free; bytes += uint64_t{rows} * 4096 * 4)
    spec.weights.push_back({TensorType::kF32, rows, 4096, true});
  const uint64_t needed = device_->bytes(spec).total();
  auto prepared = device_->prepare(spec);
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().kind, Error::Kind::kNoMemory);
  EXPECT_NE(prepared.error().message.find(std::to_string(needed)), std::string::npos)
      << prepared.error().message;
  EXPECT_NE(prepared.error().message.find(std::to_string(free)), std::string::npos)
      << prepared.error().message;
  spec.weights.resize(1);
  spec.weights[0].rows = 16;
  prepared = device_->prepare(spec);  // with less it goes
  EXPECT_TRUE(prepared) << prepared.error().message;
}

TEST_F(Rig, AMicroBatchBeyondTheShadersIsRefused) {
  device_ = open();
  DeviceSpec spec = small_spec({64}, 20'000);
  spec.sizes.max_experts_used = 8;
  const auto prepared = device_->prepare(spec);
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().kind, Error::Kind::kUnsupported);
}

// After an error nothing happens any more, and every wait gives the same error.
TEST_F(Rig, AnErrorIsKept) {
  DeviceSpec spec = small_spec({64}, 4);
  spec.kv_pages = 2;
  spec.layers = {{.on_device = true, .kv_heads = 1, .key_length = 8, .value_length = 8}};
  spec.weights = {{TensorType::kF32, 1, 64, true}};
  Device& on = ready(spec);
  TestStep step(1);
  const std::vector<uint32_t> pages(1000, 1);  // more than the step buffer holds
  step.pieces[0].pages = pages;
  on.begin(step.step());
  std::vector<float> values(64, 1.0f), out(64, 7.0f);
  on.write_buffer(0, values.data());
  on.add(0, 0, 64);
  on.read_buffer(0, out.data());
  const Point point = on.mark();
  on.submit();
  const auto first = on.finish(), second = on.wait(point);
  ASSERT_FALSE(first);
  ASSERT_FALSE(second);
  EXPECT_EQ(first.error().message, second.error().message);
  EXPECT_NE(first.error().message.find("1000 KV pages"), std::string::npos);
  EXPECT_TRUE(on.reached(point));  // nobody should wait for it
  EXPECT_EQ(out[0], 7.0f);
  EXPECT_FALSE(
      on.upload(0, {TensorType::kF32, Layout::kFile, 1, 64, reinterpret_cast<std::byte*>(values.data())}));
}

// Compiled pipelines are written to the cache folder, and a damaged file does no harm.
TEST_F(Rig, PipelinesAreKeptOnDisk) {
  // Its own in every run: several may run at once.
  const fs::path folder = fs::path(testing::TempDir()) / fmt::format("spillway_{:x}", std::random_device()());
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  const auto files = [&] {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file() && entry.path().extension() == ".pipelines") found.push_back(entry.path());
    return found;
  };
  const auto use = [&] {
    auto opened = open_vulkan(0);
    ASSERT_TRUE(opened) << opened.error().message;
    Device& on = **opened;
    ASSERT_TRUE(on.prepare(small_spec({64}, 1)));
    const TestStep step(1);
    on.begin(step.step());
    std::vector<float> values(64, 1.5f);
    on.write_buffer(0, values.data());
    on.add(0, 0, 64);
    on.read_buffer(0, values.data());
    ASSERT_TRUE(on.finish());
    EXPECT_EQ(values[63], 3.0f);
  };
  use();
  ASSERT_EQ(files().size(), 1u);
  const auto size = fs::file_size(files()[0]);
  EXPECT_GT(size, 8u);
  {
    std::fstream file(files()[0], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size / 2));
    file.put('\x5a');
  }
  use();
  std::ofstream(files()[0], std::ios::trunc) << "no pipelines";
  use();
  EXPECT_EQ(fs::file_size(files()[0]), size);
  unsetenv("XDG_CACHE_HOME");
  fs::remove_all(folder);
}

// An operation list of a single-token step is found again by its bytes; whatever lies between, the results
// follow the step's values.
TEST_F(Rig, SingleTokenStepsFollowTheirValues) {
  Random random(5);
  const TestMatrix table = random_matrix(random, TensorType::kQ8_0, 50, 64);
  DeviceSpec spec = small_spec({64, 64}, 4);
  spec.weights = {table.shape()};
  Device& on = ready(spec);
  ASSERT_TRUE(on.upload(0, table.in_file()));
  std::vector<float> expected(64);
  for (uint32_t i = 0; i < 40; ++i) {
    TestStep step(i % 7 == 3 ? 2 : 1);
    step.tokens[0] = static_cast<int32_t>(random.below(50));
    on.begin(step.step());
    on.embed(0, 0);
    on.add(0, 0, 64);
    if (i % 3 == 0) on.submit();  // so that the same list may still be at work
    on.embed(0, 0);
    std::vector<float> got(64 * step.tokens.size());
    on.read_buffer(0, got.data());
    ASSERT_TRUE(on.finish());
    numerics::dequantize_row(table.type, table.file.data() + step.tokens[0] * row_bytes(table.type, 64), 64,
                             expected.data());
    ASSERT_TRUE(same_bits(expected, std::span(got).first(64))) << "step " << i;
  }
}

}  // namespace
}  // namespace spillway::vulkan
