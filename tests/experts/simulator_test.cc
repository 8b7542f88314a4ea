#include "experts/simulator.h"

#include <gtest/gtest.h>

#include "experts/bounds.h"
#include "experts/machines.h"
#include "support/synthetic_routes.h"

namespace spillway {
namespace experts {
namespace {

SimulationSetup plain(double cache_share, double cpu_share) {
  SimulationSetup setup;
  setup.machine = known_machines()[2];
  setup.cache_share = cache_share;
  setup.settings.cpu_share = Choice::number(cpu_share);
  setup.settings.policy.kind = PolicyKind::kLru;
  return setup;
}

// Hits of a least recently used list, counted by hand's rules.
TEST(Simulator, CountsTheHitsOfAnLruList) {
  const Routes routes = synthetic_routes({.n_layers = 1, .n_experts = 32, .n_used = 4, .tokens = 500});
  std::vector<ExpertId> list;  // most recent first
  uint64_t hits = 0, misses = 0;
  for (const Routes::Step& step : routes.steps()) {
    const Routing routing = routes.routing(routes.layers(step)[0]);
    for (const Use& use : routing.uses) {
      const auto it = std::find(list.begin(), list.end(), use.expert);
      if (it == list.end()) {
        ++misses;
        continue;
      }
      ++hits;
      list.erase(it);
    }
    const size_t kept = std::min<size_t>(list.size(), 12 - routing.uses.size());
    list.resize(kept);
    for (const Use& use : routing.uses) list.insert(list.begin(), use.expert);
  }
  const SimulationResult result = simulate(routes, plain(12.0 / 32, 0.0)).value();
  EXPECT_EQ(result.cold.hits + result.warm.hits, hits);
  EXPECT_EQ(result.cold.misses + result.warm.misses, misses);
  EXPECT_EQ(result.cold.bytes_uploaded + result.warm.bytes_uploaded, misses * routes.groups[0].expert_bytes);
}

TEST(Simulator, BeladyBoundsEveryPolicy) {
  const Routes routes = synthetic_routes({.tokens = 300});
  for (const double share : {0.12, 0.3, 0.5}) {
    SimulationSetup setup = plain(share, 0.0);
    const uint64_t most = [&] {
      const SimulationResult belady = simulate_belady(routes, setup).value();
      return belady.cold.hits + belady.warm.hits;
    }();
    for (const PolicyKind kind :
         {PolicyKind::kCrf, PolicyKind::kLru, PolicyKind::kStatic, PolicyKind::kB12191})
      for (const double admit : {0.0, 1.0, 2.0}) {
        setup.settings.policy.kind = kind;
        setup.settings.admit = Choice::number(admit);
        const SimulationResult result = simulate(routes, setup).value();
        EXPECT_LE(result.cold.hits + result.warm.hits, most) << policy_name(kind) << " " << admit;
        EXPECT_GT(result.cold.hits + result.warm.hits, most / 2) << policy_name(kind) << " " << admit;
      }
  }
}

// A whole run's time follows from the closed form: every layer alike, all fixed costs 0.
TEST(Simulator, TimesAreThoseOfTheBounds) {
  const SyntheticShape shape{.n_layers = 4, .n_experts = 64, .n_used = 16, .tokens = 50};
  const Routes routes = synthetic_routes(shape);
  SimulationSetup setup = plain(0.0, 0.75);
  for (Quantity* q : {&setup.machine.step_us, &setup.machine.layer_us, &setup.machine.cpu_start_us,
                      &setup.machine.copy_us, &setup.machine.device_expert_us})
    q->value = 0.0;
  setup.dense_bytes = 1'000'000'000;
  const HardwareProfile& m = setup.machine;
  const DecodeLimits limits{1e9,
                            4.0 * 16 * static_cast<double>(shape.expert_bytes),
                            m.device_gb_s.value,
                            m.dram_gb_s.value,
                            m.cpu_gb_s.value,
                            m.link_gb_s.value};
  const SimulationResult result = simulate(routes, setup).value();
  EXPECT_EQ(result.warm.cpu, 3 * result.warm.streamed);
  EXPECT_EQ(result.warm.hits, 0u);
  // The closed form lets memory be shared without loss to the end; here the link is done first, and the CPU
  // alone does not use up the memory's rate.
  EXPECT_GE(result.us / 50, limits.hybrid_us(0.0, 0.25));
  EXPECT_NEAR(result.us / 50, limits.hybrid_us(0.0, 0.25), 0.02 * limits.hybrid_us(0.0, 0.25));
}

// A prompt streams what it uses at most once, and the decode after it finds its cache as good as before.
TEST(Simulator, APromptLeavesTheCacheAsGood) {
  SyntheticShape shape{.tokens = 300};
  const Routes before = synthetic_routes(shape);
  Routes with_prompt;
  with_prompt.groups = before.groups;
  UseCounter counter(64);
  std::mt19937 random(1);
  size_t n = 0;
  for (const Routes::Step& step : before.steps()) {
    if (n++ == 150) {
      with_prompt.begin_step(512);
      for (uint32_t layer = 0; layer < shape.n_layers; ++layer) {
        std::vector<uint32_t> ids(512 * shape.n_used);
        for (uint32_t& id : ids) id = random() % 64;
        with_prompt.add({layer, 512, counter.count(ids, 64)});
      }
    }
    with_prompt.begin_step(1);
    for (const Routes::Layer& layer : before.layers(step)) with_prompt.add(before.routing(layer));
  }
  SimulationSetup setup = plain(0.25, 0.0);
  setup.settings = {};
  const SimulationResult without = simulate(before, setup).value();
  const SimulationResult with = simulate(with_prompt, setup).value();
  EXPECT_LE(with.warm.bytes_uploaded - without.warm.bytes_uploaded,
            uint64_t{12} * 64 * with_prompt.groups[0].expert_bytes * 11 / 10);
  // The prompt's own uses are among the hits and misses: 12 x 64 of them.
  const double misses = double(with.warm.misses) - 12 * 64;
  EXPECT_LE(misses, 1.05 * double(without.warm.misses));
}

TEST(Simulator, RefusesWhatThePlannerRefuses) {
  const Routes routes = synthetic_routes({.tokens = 1});
  SimulationSetup setup = plain(0.5, 2.0);
  EXPECT_FALSE(simulate(routes, setup));
  setup = plain(0.5, 0.0);
  setup.machine.link_gb_s = {0};
  EXPECT_FALSE(simulate(routes, setup));
}

}  // namespace
}  // namespace experts
}  // namespace spillway
