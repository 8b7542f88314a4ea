// The engine on a device: faults, counters, and what is never done twice. Bits are tests/exact's matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/devices.h"
#include "support/run_engine.h"

namespace spillway {
namespace {

using namespace test_support;
using engine::CacheSize;
using engine::Options;
using engine::Want;

const ModelSpec kSpec{
    .layers = 3, .experts = 16, .used = 2, .type = TensorType::kQ8_0, .expert_type = TensorType::kQ8_0};

Options cached(const char* size, double share) {
  Options options{.threads = 2, .context = 1024};
  options.device.device = "host";
  options.device.experts_on_host = true;
  options.device.cache = *engine::parse_cache_size(size);
  options.device.planner.cpu_share = experts::Choice::number(share);
  options.device.host.memory_bytes = 256 << 20;
  return options;
}

experts::Counters counters(const engine::Engine& engine) { return engine.expert_stats().total.all(); }

Result<void> decode(engine::Engine& engine, engine::SequenceId sequence, std::span<const int32_t> tokens) {
  const engine::BatchItem item{.sequence = sequence, .tokens = tokens, .want = Want::kLast};
  return engine.decode({&item, 1}, [](size_t, size_t, std::span<const float>) {});
}

uint64_t expert_bytes(const engine::Engine& engine) { return engine.placement().groups[0].expert_bytes; }

// ---- counters ----

TEST(DeviceCounters, ResidentLayersWaitForNothing) {
  const ModelFile file(kSpec);
  Options options{.threads = 1, .context = 256};
  options.device.device = "host";
  const auto engine = load_engine(file, options);
  EXPECT_EQ(engine->placement().n_resident_layers(), 3u);
  all_logits(*engine, random_tokens(40, 300, 1), 1);
  const engine::ExpertStats stats = engine->expert_stats();
  EXPECT_EQ(stats.times.waits, 0u);
  EXPECT_EQ(stats.times.resident_layers, 3u * 40u);
  // Their ids arrive all the same, after each step.
  ASSERT_EQ(stats.resident.size(), 3u);
  for (const auto& layer : stats.resident) {
    EXPECT_EQ(layer.uses.passes, 40u);
    EXPECT_GE(layer.uses.experts, 40u * kSpec.used) << layer.layer;
  }
  EXPECT_EQ(counters(*engine).plans, 0u);
}

TEST(DeviceCounters, AWarmCacheOfEverythingUploadsNothing) {
  const ModelFile file(kSpec);
  const auto engine = load_engine(file, cached("100%", 0));
  const engine::SequenceId sequence = engine->open_sequence();
  // Enough text that every expert of every layer was wanted.
  append(*engine, sequence, random_tokens(600, 300, 2));
  ASSERT_EQ(counters(*engine).uploaded, 3u * 16u) << "an expert was never used, or copied twice";
  append(*engine, sequence, random_tokens(100, 300, 3), 1);
  EXPECT_EQ(counters(*engine).uploaded, 3u * 16u);
  EXPECT_EQ(counters(*engine).streamed, 0u);
  EXPECT_EQ(counters(*engine).cpu, 0u);
  EXPECT_EQ(engine->expert_stats().total.warm.misses, 0u);
}

TEST(DeviceCounters, APromptUploadsAnExpertOncePerMicroBatch) {
  const ModelFile file(kSpec);
  for (const char* cache : {"0", "25%"}) {
    Options options = cached(cache, 0);
    options.device.planner.cpu_share = experts::Choice::automatic();
    const auto engine = load_engine(file, options);
    ASSERT_TRUE(decode(*engine, engine->open_sequence(), random_tokens(512, 300, 4)));
    const experts::Counters all = counters(*engine);
    EXPECT_EQ(all.plans, 3u);
    EXPECT_LE(all.hits + all.misses, 3u * 16u);
    EXPECT_LE(all.uploaded + all.streamed, all.misses);
    EXPECT_EQ(all.bytes_uploaded, (all.uploaded + all.streamed) * expert_bytes(*engine));
  }
}

// The host device counts uploads: the last one that may fail is the number of dense weights.
TEST(DeviceCounters, ADenseWeightIsCopiedOnce) {
  const ModelFile file(kSpec);
  Options options = cached("25%", 0);
  const auto engine = load_engine(file, options);
  const auto& program_weights = engine->description();
  // Per layer: attention norm, q, k, v, output, q norm, k norm, ffn norm, router; and output norm and output.
  const uint32_t dense = static_cast<uint32_t>(program_weights.layers.size()) * 9 + 2;
  options.path = file.path();
  options.device.host.faults.fail_upload = dense;
  EXPECT_FALSE(engine::Engine::load(options));
  options.device.host.faults.fail_upload = dense + 1;
  EXPECT_TRUE(engine::Engine::load(options));
}

// ---- faults ----

TEST(DeviceFaults, NoMemoryAtLoadNamesBothNumbers) {
  const ModelFile file(kSpec);
  Options options = cached("25%", 0);
  options.path = file.path();
  options.device.layers = 99;
  options.device.host.memory_bytes = 64 << 10;
  const auto refused = engine::Engine::load(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::Kind::kNoMemory);
  for (const char* word : {"need", "free", "-c"})
    EXPECT_NE(refused.error().message.find(word), std::string::npos) << refused.error().message;

  options = cached("25%", 0);
  options.path = file.path();
  for (uint32_t n = 1; n <= 4; ++n) {
    options.device.host.faults.fail_allocation = n;
    const auto failed = engine::Engine::load(options);
    ASSERT_FALSE(failed) << "allocation " << n;
    EXPECT_EQ(failed.error().kind, Error::Kind::kNoMemory) << failed.error().message;
  }
}

TEST(DeviceFaults, RefusedPinningIsSaidAndChangesNothing) {
  const ModelFile file(kSpec);
  const auto tokens = random_tokens(60, 300, 5);
  const auto plain = load_engine(file, cached("25%", 0));
  const std::vector<float> expected = all_logits(*plain, tokens, 1);
  const engine::ExpertStats all = plain->expert_stats();
  EXPECT_EQ(all.pinned_bytes, all.host_expert_bytes);

  for (const uint64_t limit : {uint64_t{0}, all.host_expert_bytes / 2}) {
    Options options = cached("25%", 0);
    options.device.host.faults.refuse_pinning = limit == 0;
    options.device.host.faults.pin_limit_bytes = limit;
    const auto engine = load_engine(file, options);
    EXPECT_LE(engine->expert_stats().pinned_bytes, limit);
    const std::vector<std::string> notes = engine->notes();
    EXPECT_TRUE(std::ranges::any_of(
        notes, [](const std::string& n) { return n.find("pinned") != std::string::npos; }));
    const std::vector<float> logits = all_logits(*engine, tokens, 1);
    EXPECT_EQ(std::memcmp(logits.data(), expected.data(), expected.size() * sizeof(float)), 0);
    EXPECT_EQ(counters(*engine).uploaded, counters(*plain).uploaded);
  }
}

// Wherever the device is lost, the request ends with an error that says so, and so does the next one.
TEST(DeviceFaults, ALostDeviceEndsTheRequest) {
  const ModelFile file(kSpec);
  for (const uint64_t after : {1u, 30u, 77u, 200u, 555u, 1000u}) {
    Options options = cached("25%", 0.3);
    options.path = file.path();
    options.device.host.faults.lose_after_operations = after;
    auto engine = engine::Engine::load(options);
    if (!engine) {
      EXPECT_EQ(engine.error().kind, Error::Kind::kDeviceLost) << engine.error().message;
      continue;
    }
    const engine::SequenceId sequence = (*engine)->open_sequence();
    Result<void> done;
    for (int i = 0; i < 200 && done; ++i) done = decode(**engine, sequence, random_tokens(3, 300, 6));
    ASSERT_FALSE(done) << after;
    EXPECT_EQ(done.error().kind, Error::Kind::kDeviceLost) << done.error().message;
    EXPECT_FALSE(decode(**engine, sequence, random_tokens(3, 300, 6)));
  }
}

TEST(DeviceFaults, AFailedCopyEndsTheRequest) {
  const ModelFile file(kSpec);
  for (const uint64_t copy : {1u, 5u, 40u}) {
    Options options = cached("25%", 0);
    options.device.host.faults.fail_copy = copy;
    const auto engine = load_engine(file, options);
    const engine::SequenceId sequence = engine->open_sequence();
    Result<void> done;
    for (int i = 0; i < 200 && done; ++i) done = decode(*engine, sequence, random_tokens(3, 300, 7));
    ASSERT_FALSE(done) << copy;
    EXPECT_EQ(done.error().kind, Error::Kind::kDeviceLost);
  }
}

TEST(DeviceFaults, TheCpuGoesOnIfAsked) {
  const ModelFile file(kSpec);
  const auto tokens = random_tokens(30, 300, 8);
  const std::vector<float> expected =
      all_logits(*load_engine(file, {.context = 1024, .device = {.device = "none"}}), tokens);
  Options options = cached("25%", 0.3);
  options.device.continue_on_host = true;
  options.device.host.faults.lose_after_operations = 500;
  const auto engine = load_engine(file, options);
  const engine::SequenceId sequence = engine->open_sequence();
  Result<void> done;
  for (int i = 0; i < 200 && done; ++i) done = decode(*engine, sequence, random_tokens(3, 300, 9));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, Error::Kind::kDeviceLost);
  EXPECT_NE(done.error().message.find("CPU alone goes on"), std::string::npos) << done.error().message;
  EXPECT_EQ(engine->device(), nullptr);
  EXPECT_EQ(engine->length(sequence), 0u);
  EXPECT_FALSE(engine->notes().empty());
  const std::vector<float> logits = append(*engine, sequence, tokens);
  EXPECT_EQ(std::memcmp(logits.data(), expected.data(), expected.size() * sizeof(float)), 0);
}

TEST(DeviceFaults, ADeviceThatIsNotThereIsAnError) {
  const ModelFile file(kSpec);
  for (const char* name : {"vulkan:99", "vulkan:4294967296", "cuda", "", "vulkan:x", "host:"}) {
    Options options;
    options.path = file.path();
    options.device.device = name;
    const auto engine = engine::Engine::load(options);
    ASSERT_FALSE(engine) << name;
    EXPECT_NE(engine.error().message.find("there are"), std::string::npos) << engine.error().message;
  }
}

// A cancelled or refused call leaves everything as it was, on the device too.
TEST(DeviceFaults, CancelledCallsAreForgotten) {
  const ModelFile file(kSpec);
  Options options = cached("25%", 0.3);
  options.ubatch = 8;
  const auto engine = load_engine(file, options);
  const auto tokens = random_tokens(50, 300, 10);
  const std::vector<float> expected = all_logits(*engine, tokens);
  const engine::SequenceId sequence = engine->open_sequence();
  append(*engine, sequence, std::span(tokens).first(20));
  int asked = 0;
  const engine::BatchItem item{
      .sequence = sequence, .tokens = std::span(tokens).subspan(20), .want = Want::kLast};
  const auto stopped =
      engine->decode({&item, 1}, [](size_t, size_t, std::span<const float>) {}, [&] { return ++asked < 3; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, Error::Kind::kCancelled);
  EXPECT_EQ(engine->length(sequence), 20u);
  const std::vector<float> rest = append(*engine, sequence, std::span(tokens).subspan(20));
  EXPECT_EQ(std::memcmp(rest.data(), expected.data() + 20 * 300, rest.size() * sizeof(float)), 0);
}

// Promotions may still be under way when the engine ends: the memory that they read must outlive them.
TEST(DeviceEnd, WhileExpertsAreStillCopied) {
  ModelSpec spec = kSpec;
  spec.hidden = spec.expert_width = 256;
  const ModelFile file(spec);
  Options options = cached("100%", 0);
  options.device.planner.cpu_share = experts::Choice::automatic();
  options.device.planner.promote = experts::Promotion::kOn;
  const auto tokens = random_tokens(3, 300, 4);
  uint64_t promoted = 0;
  for (int i = 0; i < 20; ++i) {
    const auto engine = load_engine(file, options);
    ASSERT_TRUE(decode(*engine, engine->open_sequence(), tokens));
    promoted += counters(*engine).promoted;
  }
  EXPECT_GT(promoted, 0u);
}

}  // namespace
}  // namespace spillway
