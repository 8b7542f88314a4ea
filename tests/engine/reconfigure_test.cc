// Settings changed without loading again: the same bits as an engine that was loaded with them, and the same
// decisions.
#include <gtest/gtest.h>

#include "support/run_engine.h"

namespace spillway {
namespace {

using namespace test_support;

const ModelSpec kReconfigured{
    .layers = 3, .experts = 16, .used = 2, .type = TensorType::kQ8_0, .expert_type = TensorType::kQ8_0};

engine::Options with(const char* device, const char* cache, experts::Choice share) {
  engine::Options options{.threads = 3, .context = 512, .ubatch = 64};
  options.device = {.device = device,
                    .experts_on_host = true,
                    .cache = *engine::parse_cache_size(cache),
                    .planner = {.cpu_share = share}};
  options.device.host.memory_bytes = 256 << 20;
  return options;
}

struct Outcome {
  std::vector<float> logits;
  experts::Counters counters;
};

Outcome run(engine::Engine& engine) {
  const engine::SequenceId sequence = engine.open_sequence();
  Outcome outcome{.logits = append(engine, sequence, random_tokens(90, 300, 1))};
  const std::vector<float> rest = append(engine, sequence, random_tokens(40, 300, 2), 1);
  outcome.logits.insert(outcome.logits.end(), rest.begin(), rest.end());
  engine.close_sequence(sequence);
  outcome.counters = engine.expert_stats().total.all();
  return outcome;
}

TEST(Reconfigure, EqualsALoadWithTheSameSettings) {
  const ModelFile file(kReconfigured);
  const auto engine = load_engine(file, with("host", "100%", experts::Choice::automatic()));
  run(*engine);  // fills the cache
  for (const char* cache : {"25%", "0", "3s", "100%", "50%"})
    for (const experts::Choice share : {experts::Choice::number(0), experts::Choice::number(0.6)}) {
      SCOPED_TRACE(fmt::format("cache {}, share {}", cache, share.value));
      const auto fresh = load_engine(file, with("host", cache, share));
      const auto changed = engine->reconfigure({.threads = 2,
                                                .ubatch = 33,
                                                .cache = *engine::parse_cache_size(cache),
                                                .planner = {.cpu_share = share}});
      ASSERT_TRUE(changed) << changed.error().message;
      EXPECT_EQ(engine->memory().threads, 2u);
      EXPECT_EQ(engine->placement().cache_slots(), fresh->placement().cache_slots());
      ASSERT_TRUE(fresh->reconfigure({.ubatch = 33, .planner = {.cpu_share = share}}));
      const Outcome want = run(*fresh), have = run(*engine);
      EXPECT_EQ(have.logits, want.logits);
      // A number leaves nothing to the clock.
      EXPECT_EQ(have.counters.hits, want.counters.hits);
      EXPECT_EQ(have.counters.cpu, want.counters.cpu);
      EXPECT_EQ(have.counters.uploaded, want.counters.uploaded);
      EXPECT_EQ(have.counters.evicted, want.counters.evicted);
      EXPECT_EQ(have.counters.plans, want.counters.plans);
    }
}

// Promotions may be on their way when the settings change.
TEST(Reconfigure, TakesBackWhatIsOnItsWay) {
  const ModelFile file(kReconfigured);
  engine::Options options = with("host", "50%", experts::Choice::automatic());
  options.device.planner.promote = experts::Promotion::kOn;
  const auto engine = load_engine(file, options);
  const Outcome want = run(*load_engine(file, with("none", "0", experts::Choice::automatic())));
  for (uint32_t i = 0; i < 20; ++i) {
    const auto changed = engine->reconfigure(
        {.cache = *engine::parse_cache_size(i % 2 ? "50%" : "30%"), .planner = options.device.planner});
    ASSERT_TRUE(changed) << changed.error().message;
    EXPECT_EQ(engine->expert_stats().total.all().plans, 0u);
    EXPECT_EQ(run(*engine).logits, want.logits) << i;
  }
}

TEST(Reconfigure, RefusesMoreThanWasLoadedAndLeavesEverythingAsItWas) {
  const ModelFile file(kReconfigured);
  const auto engine = load_engine(file, with("host", "25%", experts::Choice::number(0)));
  const Outcome before = run(*engine);
  const auto refused = [&](const engine::RunSettings& settings) {
    const auto changed = engine->reconfigure(settings);
    EXPECT_FALSE(changed);
    return changed ? "" : changed.error().message;
  };
  EXPECT_NE(refused({.cache = *engine::parse_cache_size("50%")}).find("loaded with"), std::string::npos);
  EXPECT_NE(refused({.threads = 4}).find("threads"), std::string::npos);
  EXPECT_NE(refused({.ubatch = 65}).find("micro-batches"), std::string::npos);
  EXPECT_NE(refused({.planner = {.cpu_share = experts::Choice::number(2)}}), "");
  EXPECT_EQ(engine->expert_stats().total.all().plans, before.counters.plans);
  EXPECT_EQ(run(*engine).logits, before.logits);
}

TEST(Reconfigure, ThreadsOfTheCpuAlone) {
  const ModelFile file(kReconfigured);
  const auto engine = load_engine(file, with("none", "0", experts::Choice::automatic()));
  const std::vector<float> want = run(*engine).logits;
  for (const uint32_t threads : {1u, 2u, 3u}) {
    ASSERT_TRUE(engine->reconfigure({.threads = threads, .ubatch = 7 * threads}));
    EXPECT_EQ(engine->memory().threads, threads);
    EXPECT_EQ(run(*engine).logits, want);
  }
}

}  // namespace
}  // namespace spillway
