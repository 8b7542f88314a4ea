// A run's record: replaying it makes the same decisions, and the simulator counts the same bytes.
#include <gtest/gtest.h>

#include "experts/simulator.h"
#include "support/run_engine.h"

namespace spillway {
namespace {

using namespace test_support;

struct Recorded {
  experts::Trace trace;
  experts::Counters counters;  // the engine's own
};

Recorded record(const ModelFile& file, const engine::DeviceOptions& device, uint32_t prompt,
                uint32_t decode) {
  engine::Options options{.threads = 2, .context = 512, .device = device};
  options.device.device = "host";
  options.device.experts_on_host = true;
  options.device.host.memory_bytes = 256 << 20;
  const auto engine = load_engine(file, options);
  std::vector<std::byte> bytes;
  const auto begun = engine->begin_trace("test", [&](std::span<const std::byte> piece) -> Result<void> {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  });
  EXPECT_TRUE(begun);
  const engine::SequenceId sequence = engine->open_sequence();
  append(*engine, sequence, random_tokens(prompt, 300, 1));
  append(*engine, sequence, random_tokens(decode, 300, 2), 1);
  EXPECT_TRUE(engine->end_trace());
  auto trace = experts::parse_trace(bytes);
  EXPECT_TRUE(trace) << trace.error().message;
  return {std::move(*trace), engine->expert_stats().total.all()};
}

const ModelSpec kTraced{
    .layers = 3, .experts = 16, .used = 2, .type = TensorType::kQ8_0, .expert_type = TensorType::kQ8_0};

engine::DeviceOptions cached(const char* size, experts::Choice share) {
  return {.cache = *engine::parse_cache_size(size), .planner = {.cpu_share = share}};
}

// The counter of the issue: a quarter of the experts, nothing for the CPU.
TEST(Trace, UploadedBytesEqualTheReplayToTheByte) {
  const ModelFile file(kTraced);
  for (const char* policy : {"crf", "lru", "b12191"}) {
    engine::DeviceOptions device = cached("25%", experts::Choice::number(0));
    device.planner.policy.kind = *experts::parse_policy(policy);
    const Recorded run = record(file, device, 40, 120);
    ASSERT_TRUE(run.trace.whole);
    EXPECT_GT(run.counters.bytes_uploaded, 0u);
    const auto result = experts::simulate(experts::routes_of(run.trace), experts::setup_of(run.trace.head));
    ASSERT_TRUE(result) << result.error().message;
    experts::Counters simulated = result->cold;
    simulated.add(result->warm);
    EXPECT_EQ(simulated.bytes_uploaded, run.counters.bytes_uploaded) << policy;
    EXPECT_EQ(simulated.hits, run.counters.hits);
    EXPECT_EQ(simulated.misses, run.counters.misses);
    EXPECT_EQ(simulated.evicted, run.counters.evicted);
    EXPECT_EQ(simulated.streamed, run.counters.streamed);
    EXPECT_EQ(simulated.cpu, 0u);
  }
}

// Whatever the clock said while it ran: the same calls make the same decisions.
TEST(Trace, RecordedDecisionsAreReproduced) {
  const ModelFile file(kTraced);
  for (const char* cache : {"0", "3s", "25%", "100%"})
    for (const experts::Choice share : {experts::Choice::automatic(), experts::Choice::number(0.4)}) {
      const Recorded run = record(file, cached(cache, share), 70, 40);
      const auto replayed = experts::verify_replay(run.trace);
      ASSERT_TRUE(replayed) << cache << ": " << replayed.error().message;
      EXPECT_EQ(replayed->plans, 41u * 3u);
      const experts::Counters all = replayed->counters.all();
      EXPECT_EQ(all.hits, run.counters.hits);
      EXPECT_EQ(all.cpu, run.counters.cpu);
      EXPECT_EQ(all.uploaded, run.counters.uploaded);
      EXPECT_EQ(all.promoted, run.counters.promoted);
      EXPECT_EQ(all.bytes_uploaded, run.counters.bytes_uploaded);
    }
}

TEST(Trace, NothingPlannedIsNothingToRecord) {
  const ModelFile file(kTraced);
  const auto sink = [](std::span<const std::byte>) -> Result<void> { return {}; };
  const auto cpu = load_engine(file, {.device = {.device = "none"}});
  const auto refused = cpu->begin_trace("test", sink);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("CPU runs alone"), std::string::npos);
  const auto resident = load_engine(file, {.device = {.device = "host"}});
  const auto nothing = resident->begin_trace("test", sink);
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().message.find("-cmoe"), std::string::npos);
}

}  // namespace
}  // namespace spillway
