// What lies where, for devices of any size. The host device gives the formula for bytes and nothing runs.
#include "engine/placement.h"

#include <gtest/gtest.h>

#include "backend/host/host_device.h"
#include "engine/engine.h"
#include "engine/memory_plan.h"
#include "support/run_engine.h"

namespace spillway::engine {
namespace {

using namespace test_support;

// 6 layers of 8 experts of 64 KiB and a bit each (F32, 3 x 64 x 85).
const ModelSpec kPlaced{.layers = 6, .experts = 8, .used = 2, .expert_width = 85};

class PlacementTest : public testing::Test {
 protected:
  PlacementTest() : file_(kPlaced) {}

  // The plan for a device of this much memory.
  Result<Plan> plan_for(uint64_t memory_bytes, const DeviceOptions& asked) {
    Options options{.path = file_.path(), .context = 64, .ubatch = 16, .device = asked};
    options.device.device = "host";
    options.device.host.memory_bytes = memory_bytes;
    SW_ASSIGN(const ModelFiles files, open_model_files(file_.path()));
    SW_ASSIGN(const OpenedDevice opened, open_device(options.device));
    return engine::plan(files, options, opened);
  }
  static uint64_t expert_bytes(const Placement& p) { return p.pools[0].group.expert_bytes; }

  ModelFile file_;
};

constexpr uint64_t kPlenty = uint64_t{1} << 30;

TEST_F(PlacementTest, EverythingFits) {
  const auto plan = plan_for(kPlenty, {});
  ASSERT_TRUE(plan) << plan.error().message;
  const Placement& p = plan->placement;
  EXPECT_EQ(p.first_device_layer, 0u);
  EXPECT_TRUE(p.output_on_device);
  EXPECT_EQ(p.n_resident_layers(), 6u);
  EXPECT_EQ(p.n_planned_layers(), 0u);
  EXPECT_EQ(p.pools[0].slots(), 48u);
  EXPECT_LE(p.bytes.total(), p.budget_bytes);
  EXPECT_EQ(p.bytes.experts, 48 * expert_bytes(p));
  EXPECT_EQ(plan->memory.kv_bytes, 0u) << "no layer is the CPU's";
}

TEST_F(PlacementTest, CacheBesideResidentLayers) {
  const auto all = plan_for(kPlenty, {.experts_on_host = true, .cache = *parse_cache_size("100%")});
  ASSERT_TRUE(all) << all.error().message;
  const Placement& p = all->placement;
  EXPECT_EQ(p.n_planned_layers(), 6u);
  EXPECT_EQ(p.n_resident_layers(), 0u);
  EXPECT_EQ(p.cache_slots(), 48u);
  EXPECT_GT(p.pools[0].ring_slots, 0u);
  EXPECT_EQ(p.cache_bytes(), p.cacheable_bytes());

  const auto some = plan_for(kPlenty, {.layers_with_host_experts = 2, .cache = *parse_cache_size("4s")});
  ASSERT_TRUE(some);
  EXPECT_EQ(some->placement.n_planned_layers(), 2u);
  EXPECT_EQ(some->placement.n_resident_layers(), 4u);
  EXPECT_EQ(some->placement.layers[1].experts, ExpertPlace::kPlanned);
  EXPECT_EQ(some->placement.layers[2].experts, ExpertPlace::kResident);
  EXPECT_EQ(some->placement.layers[3].first_slot, 8u);
  EXPECT_EQ(some->placement.cache_slots(), 4u);
  EXPECT_EQ(some->placement.pools[0].resident_slots, 32u);
}

// A limit that a person gives is that of a device of that size.
TEST_F(PlacementTest, KeepsALimit) {
  DeviceOptions limited{.experts_on_host = true};
  const uint64_t all = plan_for(kPlenty, limited)->placement.bytes.total();
  limited.most_bytes = all - 10 * expert_bytes(plan_for(kPlenty, limited)->placement);
  const auto plan = plan_for(kPlenty, limited);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_LE(plan->placement.bytes.total(), limited.most_bytes);
  EXPECT_EQ(plan->placement.cache_slots(), 38u);
  limited.most_bytes = 1000;
  EXPECT_FALSE(plan_for(kPlenty, limited));
}

// Less and less memory: the cache shrinks first, then layers leave; nothing ever exceeds the budget.
TEST_F(PlacementTest, ShrinksInOrder) {
  const uint64_t fixed =
      plan_for(kPlenty, {})->placement.bytes.total() - plan_for(kPlenty, {})->placement.bytes.experts;
  const uint64_t one = expert_bytes(plan_for(kPlenty, {})->placement);
  uint32_t last_held = UINT32_MAX;
  for (uint32_t experts = 60; experts > 0; --experts) {
    const auto plan = plan_for(fixed + experts * one, {});
    ASSERT_TRUE(plan) << experts << ": " << plan.error().message;
    const Placement& p = plan->placement;
    EXPECT_LE(p.bytes.total(), p.budget_bytes);
    EXPECT_EQ(p.first_device_layer, 0u);
    const uint32_t held = p.n_resident_layers() * 8 + p.cache_slots();
    EXPECT_LE(held, last_held);
    EXPECT_GE(held + p.pools[0].ring_slots + 1, std::min(experts, 48u)) << "memory is left unused";
    last_held = held;
  }
  const auto fewer = plan_for(fixed - 4096, {});
  ASSERT_TRUE(fewer) << fewer.error().message;
  EXPECT_GT(fewer->placement.first_device_layer, 0u);
  EXPECT_FALSE(fewer->placement.output_on_device);
  EXPECT_GT(fewer->memory.kv_bytes, 0u);
  ASSERT_FALSE(fewer->placement.notes.empty());
  EXPECT_NE(fewer->placement.notes[0].find("only the last"), std::string::npos);
}

// What the plan allows can be loaded: it counts what the device counts.
TEST_F(PlacementTest, WhatIsPlannedCanBeLoaded) {
  for (uint64_t kib = 700; kib < 4000; kib += 100) {
    Options options{.path = file_.path(), .context = 200, .ubatch = 16, .device = {.device = "host"}};
    options.device.host.memory_bytes = kib << 10;
    const auto engine = Engine::load(options);
    ASSERT_TRUE(engine) << kib << " KiB: " << engine.error().message;
  }
}

// The ring takes what a cache of a given size leaves: it is never the reason to refuse one.
TEST_F(PlacementTest, ACacheOfAGivenSizeComesBeforeTheRing) {
  const DeviceOptions none{.experts_on_host = true, .cache = *parse_cache_size("0")};
  const uint64_t all = plan_for(kPlenty, {.experts_on_host = true})->placement.cacheable_bytes();
  uint64_t fixed = plan_for(kPlenty, none)->placement.bytes.total();
  const PoolPlacement pool = plan_for(kPlenty, none)->placement.pools[0];
  fixed -= pool.ring_slots * pool.group.expert_bytes;
  for (const uint64_t spare : {0u, 1u, 3u, 8u}) {
    const auto plan = plan_for(fixed + all + spare * pool.group.expert_bytes,
                               {.experts_on_host = true, .cache = *parse_cache_size("100%")});
    ASSERT_TRUE(plan) << spare << ": " << plan.error().message;
    EXPECT_EQ(plan->placement.cache_bytes(), all);
    EXPECT_LE(plan->placement.pools[0].ring_slots, spare);
  }
}

TEST_F(PlacementTest, RefusesWhatDoesNotFitWithBothNumbers) {
  const uint64_t enough = plan_for(kPlenty, {})->placement.bytes.total();
  for (const DeviceOptions& asked :
       {DeviceOptions{.layers = 7}, DeviceOptions{.layers_with_host_experts = 0},
        DeviceOptions{.experts_on_host = true, .cache = *parse_cache_size("100%")}}) {
    const bool layers_asked = asked.layers.has_value();
    const auto refused = plan_for(layers_asked ? 64 << 10 : enough / 2 + (64 << 10), asked);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, Error::Kind::kNoMemory);
    for (const char* word : {"MiB", "free", "too few", "-c", "-ngl", "--moe-cache-mib", "-ncmoe"})
      EXPECT_NE(refused.error().message.find(word), std::string::npos)
          << word << " in " << refused.error().message;
  }
}

TEST_F(PlacementTest, LayersAsLlamaCppCountsThem) {
  for (const uint32_t layers : {0u, 1u, 3u, 6u, 7u, 99u}) {
    const auto plan = plan_for(kPlenty, {.layers = layers});
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->placement.first_device_layer, 6 - std::min(layers, 6u));
    EXPECT_EQ(plan->placement.output_on_device, layers > 6);
    const std::vector<bool> on_host = weights_on_host(plan->program, plan->placement);
    EXPECT_TRUE(on_host[plan->program.embedding]);
    for (uint32_t l = 0; l < 6; ++l)
      EXPECT_EQ(on_host[plan->program.layers[l].q], l < plan->placement.first_device_layer);
  }
}

TEST_F(PlacementTest, SaysWhatIsNotInForce) {
  const auto none = plan_for(kPlenty, {.layers = 0, .cache = *parse_cache_size("64s")});
  ASSERT_TRUE(none);
  ASSERT_EQ(none->placement.notes.size(), 1u);
  EXPECT_NE(none->placement.notes[0].find("not in force"), std::string::npos);
  const auto small = plan_for(kPlenty, {.experts_on_host = true, .cache = *parse_cache_size("0.01")});
  ASSERT_TRUE(small);
  ASSERT_EQ(small->placement.notes.size(), 1u);
  EXPECT_NE(small->placement.notes[0].find("no whole expert"), std::string::npos);
}

}  // namespace
}  // namespace spillway::engine
