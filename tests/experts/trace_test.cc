#include "experts/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "experts/layer_clock.h"
#include "experts/machines.h"
#include "experts/simulator.h"
#include "support/synthetic_routes.h"

namespace spillway {
namespace experts {
namespace {

using Bytes = std::vector<std::byte>;

// A run with everything in it, under the simulated clock: a prompt, promotions, copies that fail.
struct Recorded {
  TraceHead head;
  Bytes bytes;
  LayerCounters counters;
};

Recorded record(const PlannerSettings& settings, uint32_t tokens = 200) {
  const Routes routes = synthetic_routes({.n_layers = 6,
                                          .n_experts = 32,
                                          .n_used = 4,
                                          .expert_bytes = 1'000'000,
                                          .prompt = 40,
                                          .tokens = tokens});
  Recorded run;
  run.head = {"synthetic", settings, routes.groups, {48}, {3}, known_machines()[2], 100'000'000};
  auto planner = std::move(
      Planner::create(settings, run.head.groups, run.head.slots, run.head.ring_slots, run.head.profile)
          .value());
  TraceWriter writer(run.head, [&](std::span<const std::byte> piece) -> Result<void> {
    run.bytes.insert(run.bytes.end(), piece.begin(), piece.end());
    return {};
  });
  planner->listen(&writer);
  const CostModel machine(known_machines()[0]);
  LayerClock clock;
  std::mt19937 random(5);
  for (const Routes::Step& step : routes.steps()) {
    writer.begin_step(step.n_tokens);
    double us = 0.0;
    for (const Routes::Layer& layer : routes.layers(step)) {
      us += clock.run(*planner, machine, routes.routing(layer), (layer.layer + 1) % 6, 120.0);
      // Now and then a promotion that is given up, one way or the other.
      if (random() % 8 != 0) continue;
      const auto copy = planner->next_promotion(0, 2000.0);
      if (copy && random() % 2 == 0) {
        planner->cancelled(copy->ticket);
      } else if (copy) {
        planner->failed(copy->ticket);
      }
    }
    writer.end_step(static_cast<uint64_t>(us * 1000));
  }
  EXPECT_TRUE(writer.finish());
  run.counters = planner->total();
  return run;
}

std::vector<PlannerSettings> kinds_of_settings() {
  std::vector<PlannerSettings> all(6);
  all[1].cpu_share = Choice::number(0.3);
  all[2] = {.policy = {.kind = PolicyKind::kB12191}, .cpu_share = Choice::number(0.5)};
  all[3] = {.policy = {.kind = PolicyKind::kLru}, .admit = Choice::number(1.5), .promote = Promotion::kOn};
  all[4] = {.policy = {.kind = PolicyKind::kStatic, .static_tokens = 100}, .explore = false};
  all[5] = {.policy = {.half_life = 40.0}, .cpu_share = Choice::number(0.0), .admit = Choice::automatic()};
  return all;
}

TEST(Trace, ReplayMakesTheRecordedDecisions) {
  for (const PlannerSettings& settings : kinds_of_settings()) {
    const Recorded run = record(settings);
    const auto trace = parse_trace(run.bytes);
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_TRUE(trace->whole);
    EXPECT_EQ(trace->plans.size(), 6u * 201);
    const auto replayed = verify_replay(*trace);
    ASSERT_TRUE(replayed) << replayed.error().message;
    EXPECT_EQ(replayed->plans, trace->plans.size());
    EXPECT_EQ(replayed->counters.warm.hits, run.counters.warm.hits);
    EXPECT_EQ(replayed->counters.warm.bytes_uploaded, run.counters.warm.bytes_uploaded);
    EXPECT_EQ(replayed->counters.warm.bytes_promoted, run.counters.warm.bytes_promoted);
    EXPECT_EQ(replayed->counters.cold.total_ns, run.counters.cold.total_ns);
    EXPECT_GT(run.counters.warm.hits, 0u);
  }
}

TEST(Trace, ReplayNamesTheFirstDifference) {
  const Recorded run = record({});
  Trace trace = parse_trace(run.bytes).value();
  Trace::Planned& plan = trace.plans[700];
  plan.entries.back().tokens += 1;
  plan.n_tokens += 1;
  const auto replayed = verify_replay(trace);
  ASSERT_FALSE(replayed);
  EXPECT_NE(replayed.error().message.find("record"), std::string::npos) << replayed.error().message;

  trace = parse_trace(run.bytes).value();
  trace.head.slots = {40};
  EXPECT_FALSE(verify_replay(trace));
}

TEST(Trace, HoldsWhatWasWritten) {
  PlannerSettings settings = {.policy = {.kind = PolicyKind::kLru, .half_life = 7.5, .static_tokens = 3},
                              .cpu_share = Choice::automatic(),
                              .admit = Choice::number(2.5),
                              .promote = Promotion::kOn,
                              .explore = false,
                              .max_open_plans = 9};
  const Recorded run = record(settings, 3);
  const Trace trace = parse_trace(run.bytes).value();
  EXPECT_EQ(trace.head.source, "synthetic");
  EXPECT_EQ(trace.head.settings.policy.kind, PolicyKind::kLru);
  EXPECT_EQ(trace.head.settings.policy.half_life, 7.5);
  EXPECT_EQ(trace.head.settings.policy.static_tokens, 3u);
  EXPECT_EQ(trace.head.settings.cpu_share, settings.cpu_share);
  EXPECT_EQ(trace.head.settings.admit, settings.admit);
  EXPECT_EQ(trace.head.settings.promote, Promotion::kOn);
  EXPECT_FALSE(trace.head.settings.explore);
  EXPECT_EQ(trace.head.settings.max_open_plans, 9u);
  EXPECT_EQ(trace.head.groups[0].layers, run.head.groups[0].layers);
  EXPECT_EQ(trace.head.groups[0].expert_bytes, 1'000'000u);
  EXPECT_EQ(trace.head.slots, run.head.slots);
  EXPECT_EQ(trace.head.ring_slots, run.head.ring_slots);
  EXPECT_EQ(trace.head.dense_bytes, 100'000'000u);
  const HardwareProfile& profile = trace.head.profile;
  for (size_t i = 0; i < profile.quantities().size(); ++i) {
    EXPECT_EQ(profile.quantities()[i].second->value, run.head.profile.quantities()[i].second->value);
    EXPECT_EQ(profile.quantities()[i].second->label, Label::kEstimated);
  }
  // And the routes are those that went in.
  const Routes routes = routes_of(trace);
  const Routes original = synthetic_routes(
      {.n_layers = 6, .n_experts = 32, .n_used = 4, .expert_bytes = 1'000'000, .prompt = 40, .tokens = 3});
  ASSERT_EQ(routes.steps().size(), original.steps().size());
  for (size_t s = 0; s < routes.steps().size(); ++s) {
    EXPECT_EQ(routes.steps()[s].n_tokens, original.steps()[s].n_tokens);
    for (size_t i = 0; i < 6; ++i) {
      const Routing a = routes.routing(routes.layers(routes.steps()[s])[i]);
      const Routing b = original.routing(original.layers(original.steps()[s])[i]);
      ASSERT_EQ(a.layer, b.layer);
      ASSERT_TRUE(std::equal(
          a.uses.begin(), a.uses.end(), b.uses.begin(), b.uses.end(),
          [](const Use& x, const Use& y) { return x.expert == y.expert && x.tokens == y.tokens; }));
    }
  }
}

TEST(Trace, ARunThatWasCutOffIsReadAsFarAsItGoes) {
  const Recorded run = record({}, 5);
  const Trace whole = parse_trace(run.bytes).value();
  size_t plans = 0;
  for (size_t n = 1; n < run.bytes.size(); ++n) {
    const auto part = parse_trace(std::span(run.bytes).first(n));
    if (!part) {
      EXPECT_EQ(plans, 0u) << "the head is over, but " << n << " bytes are refused";
      continue;
    }
    EXPECT_FALSE(part->whole);
    EXPECT_GE(part->plans.size(), plans);
    plans = part->plans.size();
    ASSERT_TRUE(std::equal(part->events.begin(), part->events.end(), whole.events.begin()));
    ASSERT_TRUE(std::equal(part->plans.begin(), part->plans.end(), whole.plans.begin()));
    if (n % 50 == 0) {
      EXPECT_TRUE(verify_replay(*part));
    }
  }
  EXPECT_EQ(plans, whole.plans.size());
}

TEST(Trace, DamageIsRefusedWithThePlace) {
  const Recorded run = record({}, 2);
  const auto refused = [](const Bytes& bytes, std::string_view word) {
    const auto trace = parse_trace(bytes);
    return !trace && trace.error().message.find(word) != std::string::npos;
  };
  EXPECT_TRUE(refused({}, "SPWT"));
  Bytes bytes = run.bytes;
  bytes[0] = std::byte{'G'};
  EXPECT_TRUE(refused(bytes, "SPWT"));
  bytes = run.bytes;
  bytes[4] = std::byte{9};
  EXPECT_TRUE(refused(bytes, "version 9"));
  bytes = run.bytes;
  bytes.push_back(std::byte{1});
  EXPECT_TRUE(refused(bytes, "follow its end"));
  // Any single byte changed: a trace or an error, and never more than the bytes hold.
  for (size_t i = 0; i < std::min<size_t>(run.bytes.size(), 3000); ++i)
    for (const uint8_t value : {0x00, 0x7f, 0x80, 0xff}) {
      bytes = run.bytes;
      bytes[i] = std::byte{value};
      const auto trace = parse_trace(bytes);
      if (trace) {
        EXPECT_LE(trace->events.size(), bytes.size());
      }
    }
}

// A small model's routes with a big one's expert sizes: the same hits, other bytes and times.
TEST(Trace, ReplaysWithOtherSizesAndMachines) {
  PlannerSettings settings = {.cpu_share = Choice::number(0.0)};
  const Trace trace = parse_trace(record(settings).bytes).value();
  SimulationSetup setup = setup_of(trace.head);
  const SimulationResult small = simulate(routes_of(trace), setup).value();
  const auto replayed = verify_replay(trace).value();
  EXPECT_EQ(small.cold.bytes_uploaded + small.warm.bytes_uploaded,
            replayed.counters.cold.bytes_uploaded + replayed.counters.warm.bytes_uploaded);
  setup.expert_bytes = 13'220'000;
  const SimulationResult big = simulate(routes_of(trace), setup).value();
  EXPECT_EQ(big.warm.hits, small.warm.hits);
  EXPECT_EQ(big.warm.bytes_uploaded, small.warm.bytes_uploaded / 1'000'000 * 13'220'000);
  EXPECT_GT(big.us, 2 * small.us);
  setup.machine = known_machines()[0];
  EXPECT_GT(simulate(routes_of(trace), setup)->us, 1.5 * big.us);
}

TEST(Trace, TheSinksErrorIsKept) {
  const TraceHead head = {"x", {}, {{{0}, 8, 2, 10}}, {4}, {1}, default_profile(), 0};
  TraceWriter writer(head, [](std::span<const std::byte>) -> Result<void> {
    return fail(Error::Kind::kIo, "the disk is full");
  });
  writer.begin_step(1);
  const auto finished = writer.finish();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().message, "the disk is full");
}

// A plan that gives up the cache evicts more than it uses.
TEST(Trace, APlanMayEvictMoreThanItUses) {
  const TraceHead head = {"x", {}, {{{0}, 8, 2, 10}}, {4}, {1}, default_profile(), 0};
  std::vector<std::byte> bytes;
  TraceWriter writer(head, [&](std::span<const std::byte> piece) -> Result<void> {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  });
  const PlanEntry entry = {.expert = 3, .tokens = 1, .decision = Decision::kCpu};
  const ExpertKey evicted[] = {{0, 0}, {0, 1}, {0, 2}, {0, 5}};
  writer.begin_step(1);
  writer.planned(
      {.id = 1, .layer = 0, .n_tokens = 1, .entries = {&entry, 1}, .evicted = evicted, .predicted = {}});
  writer.end_step(10);
  ASSERT_TRUE(writer.finish());
  const auto trace = parse_trace(bytes);
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->plans.size(), 1u);
  EXPECT_TRUE(std::ranges::equal(trace->plans[0].evicted, evicted));
}

}  // namespace
}  // namespace experts
}  // namespace spillway
