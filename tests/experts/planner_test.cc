#include "experts/planner.h"

#include <gtest/gtest.h>

#include "experts/machines.h"

namespace spillway {
namespace experts {
namespace {

constexpr uint64_t kBytes = 1'000'000;

struct Bench {
  PlannerSettings settings;
  GroupShape shape{{0}, 6, 2, kBytes};
  uint32_t slots = 3, ring = 2;
  HardwareProfile profile = default_profile();
  std::unique_ptr<Planner> planner;

  Planner& made() {
    if (!planner)
      planner = std::move(
          Planner::create(settings, std::vector{shape}, std::vector{slots}, std::vector{ring}, profile)
              .value());
    return *planner;
  }
  // Plans, copies and completes one micro-batch: "0h 1u -3" is a hit on 0 and an upload of 1, and 3 was
  // evicted; j joined, s streamed, c computed on the CPU.
  std::string run(std::vector<Use> uses, uint32_t n_tokens = 1, LayerId layer = 0) {
    const Plan& plan = made().plan({layer, n_tokens, uses});
    std::string text;
    for (const PlanEntry& entry : plan.entries) {
      text += fmt::format("{}{}{}", text.empty() ? "" : " ", entry.expert,
                          decision_name(entry.decision).substr(0, 1));
      if (entry.decision == Decision::kUpload) made().arrived(entry.ticket);
    }
    for (const ExpertKey& key : plan.evicted) text += fmt::format(" -{}", key.expert);
    made().complete(plan.id, {});
    return text;
  }
  std::string run(ExpertId a, ExpertId b) { return run({{a, 1}, {b, 1}}); }
};

// 3 slots, a share of 0.5, worked by hand from the description of the reference.
TEST(Planner, TheReferenceStepByStep) {
  Bench bench;
  bench.settings.policy.kind = PolicyKind::kB12191;
  bench.settings.cpu_share = Choice::number(0.5);
  EXPECT_EQ(bench.run(0, 1), "0u 1u");
  // A slot is free still, so no share yet: 2 takes it, 3 the slot of 0, the head of the only list.
  EXPECT_EQ(bench.run(2, 3), "2u 3u -0");
  // Full. One miss, remainder 0.5: none for the CPU. 2 is the oldest that is not needed.
  EXPECT_EQ(bench.run(0, 1), "1h 0u -2");
  // Two misses, 1.5: one for the CPU, 4, which is wanted less than 2; remainder 0.5. 3 is the oldest.
  EXPECT_EQ(bench.run(2, 4), "2u 4c -3");
  // 4 was not inserted. Two misses, 1.5 again: 5 for the CPU. 1 was a hit before 0 was uploaded.
  EXPECT_EQ(bench.run(4, 5), "4u 5c -1");
  EXPECT_EQ(bench.run(0, 2), "0h 2h");
  // More than 32 tokens only read the cache; all they miss goes through the ring, whatever the share.
  EXPECT_EQ(bench.run({{0, 20}, {1, 5}, {3, 30}, {5, 11}}, 33), "0h 3s 5s 1s");
  // And they leave no trace, in the order either: 4 is the oldest. 0.5 + 0.5: the miss is the CPU's.
  EXPECT_EQ(bench.run(0, 1), "0h 1c");
  EXPECT_EQ(bench.run(0, 1), "0h 1u -4");
  // More experts than slots: read only as well.
  EXPECT_EQ(bench.run({{0, 1}, {1, 1}, {3, 1}, {5, 1}}, 2), "0h 1h 3s 5s");
  EXPECT_EQ(bench.planner->total().cold.plans, 2u);
  EXPECT_EQ(bench.planner->total().warm.plans, 8u);
  EXPECT_EQ(bench.planner->total().warm.cpu, 3u);
}

// An expert that is used often is in a higher class, where age counts for less.
TEST(Planner, TheReferenceKeepsWhatIsUsedOften) {
  Bench bench;
  bench.settings.policy.kind = PolicyKind::kB12191;
  bench.settings.cpu_share = Choice::number(0.0);
  bench.shape.n_used = 1;
  bench.slots = 2;
  for (int i = 0; i < 5; ++i) bench.run({{0, 1}});  // 4.9 uses: class 2
  EXPECT_EQ(bench.run({{1, 1}}), "1u");             // class 0
  EXPECT_EQ(bench.run({{2, 1}}), "2u -1");          // ages 2 / 4 against 1 / 1
  EXPECT_EQ(bench.run({{3, 1}}), "3u -2");          // 3 / 4 against 1 / 1
  EXPECT_EQ(bench.run({{0, 1}}), "0h");
}

TEST(Planner, ANumberKeepsItsShareInTheLongRun) {
  for (const double share : {0.0, 0.1, 0.25, 0.95, 1.0}) {
    Bench bench;
    bench.settings.cpu_share = Choice::number(share);
    bench.shape = {{0}, 64, 4, kBytes};
    bench.slots = 8;
    bench.made();
    uint64_t x = 1;
    for (int token = 0; token < 3000; ++token) {
      std::vector<Use> uses;
      for (uint32_t i = 0; i < 4; ++i) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        uses.push_back({16 * i + static_cast<uint32_t>(x >> 60), 1});
      }
      bench.run(uses);
    }
    const Counters warm = bench.planner->total().warm;
    ASSERT_GT(warm.misses, 5000u);
    EXPECT_LE(std::abs(double(warm.cpu) - share * double(warm.misses)), 1.0) << share;
    EXPECT_EQ(warm.streamed, 0u);  // every upload is kept
    EXPECT_EQ(warm.promoted, 0u);
  }
}

// auto, with rates that make each choice the best one.
TEST(Planner, AutoTakesWhatFinishesSoonest) {
  const auto warmed = [](double link, double cpu, double device) {
    Bench bench;
    bench.shape = {{0}, 16, 4, kBytes};
    bench.slots = 6;
    bench.profile.link_gb_s = {link};
    bench.profile.cpu_gb_s = {cpu};
    bench.profile.dram_gb_s = {100};
    bench.profile.device_gb_s = {device};
    bench.settings.admit = Choice::number(0.0);
    bench.made();
    return bench;
  };
  // Fast link, slow CPU: everything is copied.
  Bench link = warmed(50, 1, 500);
  EXPECT_EQ(link.run({{0, 1}, {1, 1}, {2, 1}, {3, 1}}), "0u 1u 2u 3u");
  // Slow link, fast CPU: nothing is.
  Bench cpu = warmed(1, 60, 500);
  EXPECT_EQ(cpu.run({{0, 1}, {1, 1}, {2, 1}, {3, 1}}), "0c 1c 2c 3c");
  // Equal rates: half and half.
  Bench both = warmed(25, 25, 500);
  EXPECT_EQ(both.run({{0, 1}, {1, 1}, {2, 1}, {3, 1}}), "0u 1u 2c 3c");
  // An expert with many tokens is worth a copy where one with a token is not.
  Bench batch = warmed(10, 60, 500);
  EXPECT_EQ(batch.run({{0, 1}, {1, 2}, {2, 90}, {3, 1}}, 64), "2u 1c 0c 3c");
  // A device slower than the CPU gets none, even of what it holds.
  Bench device = warmed(50, 60, 500);
  EXPECT_EQ(device.run({{0, 1}, {1, 1}, {2, 1}, {3, 1}}).substr(0, 4), "0u 1");
  Bench slow = warmed(50, 60, 4);
  EXPECT_EQ(slow.run({{0, 1}, {1, 1}, {2, 1}, {3, 1}}), "0c 1c 2c 3c");
}

TEST(Planner, APromptDoesNotFlushTheCache) {
  Bench bench;
  bench.shape = {{0}, 16, 2, kBytes};
  bench.slots = 4;
  bench.profile.link_gb_s = {40};
  bench.profile.cpu_gb_s = {1};
  for (int i = 0; i < 100; ++i) {
    bench.run(0, 1);
    bench.run(2, 3);
  }
  std::vector<Use> all;
  for (ExpertId e = 0; e < 16; ++e) all.push_back({e, 4});
  EXPECT_EQ(bench.run(all, 32), "0h 1h 2h 3h 4s 5s 6s 7s 8s 9s 10s 11s 12s 13s 14s 15s");
  EXPECT_EQ(bench.run(0, 1), "0h 1h");
  EXPECT_EQ(bench.run(2, 3), "2h 3h");
  // A prompt that speaks of something else for long enough does.
  std::vector<Use> other = {{8, 500}, {9, 500}};
  bench.run(other, 500);
  EXPECT_EQ(bench.run(8, 9), "8h 9h");
}

TEST(Planner, PromotionsUseIdleLinkTimeOnly) {
  Bench bench;
  bench.profile.link_gb_s = {1};  // a copy takes 1000 us and 5 us for itself
  bench.profile.cpu_gb_s = {40};
  bench.settings.admit = Choice::number(1.5);
  bench.settings.explore = false;
  EXPECT_EQ(bench.run(0, 1), "0c 1c");
  EXPECT_FALSE(bench.planner->next_promotion(0, 400));
  EXPECT_FALSE(bench.planner->next_promotion(0, 400));
  const auto first = bench.planner->next_promotion(0, 400);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->key, (ExpertKey{0, 0}));
  EXPECT_FALSE(first->evicted);
  EXPECT_FALSE(bench.planner->next_promotion(0, 0));
  // Under way: not resident, and not worth waiting for here.
  EXPECT_EQ(bench.planner->resident({0, 0}), kNoSlot);
  EXPECT_EQ(bench.run(0, 1), "0c 1c");
  bench.planner->arrived(first->ticket);
  EXPECT_EQ(bench.run(0, 1), "0h 1c");
  // Idle time is not saved up beyond two copies, and no more than two are under way.
  const auto second = bench.planner->next_promotion(0, 1e9);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->key, (ExpertKey{0, 1}));
  EXPECT_FALSE(bench.planner->in_use(second->ticket));
  bench.planner->cancelled(second->ticket);
  EXPECT_EQ(bench.planner->total().cold.promoted, 1u);
  EXPECT_EQ(bench.planner->total().cold.bytes_promoted, kBytes);
  for (const ExpertId e : {1u, 2u}) {
    bench.run(0, e);
    const auto copy = bench.planner->next_promotion(0, 1e9);
    ASSERT_TRUE(copy) << e;
    bench.planner->arrived(copy->ticket);
  }
  // Full: 0, 1, 2 were used 4, 4 and 1 times. 3 has to be wanted 1.5 times as much as 2.
  bench.run(0, 3);
  EXPECT_FALSE(bench.planner->next_promotion(0, 1e9));
  bench.run(0, 3);
  const auto last = bench.planner->next_promotion(0, 1e9);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->key, (ExpertKey{0, 3}));
  EXPECT_EQ(last->evicted, (ExpertKey{0, 2}));
}

TEST(Planner, SaysWhatIsNotInForce) {
  const auto notes_of = [](Bench bench) {
    std::string all;
    for (const std::string& note : bench.made().notes()) all += note + "\n";
    return all;
  };
  EXPECT_EQ(notes_of({}), "");
  Bench fixed;
  fixed.settings.cpu_share = Choice::number(0.5);
  EXPECT_NE(notes_of({.settings = fixed.settings}).find("fixed at 0.5, so nothing is promoted"),
            std::string::npos);
  Bench small;
  small.shape.layers = {3, 4, 5, 6};
  small.slots = 7;
  const std::string notes = notes_of({.shape = small.shape, .slots = 7});
  EXPECT_NE(notes.find("7 slots are too few for 4 layers at 3 slots each; 2 take part"), std::string::npos)
      << notes;
  EXPECT_NE(notes.find("12 slots would serve all"), std::string::npos);
  EXPECT_TRUE(small.made().takes_part(4));
  EXPECT_FALSE(small.made().takes_part(5));
  EXPECT_NE(notes_of({.slots = 0}).find("no slots"), std::string::npos);
  EXPECT_NE(notes_of({.ring = 0}).find("no ring"), std::string::npos);
}

TEST(Planner, RefusesContradictions) {
  const auto refused = [](const PlannerSettings& settings, std::string_view word) {
    const auto made = Planner::create(settings, std::vector{GroupShape{{0}, 6, 2, kBytes}}, std::vector{3u},
                                      std::vector{1u}, default_profile());
    return !made && made.error().message.find(word) != std::string::npos;
  };
  PlannerSettings settings;
  settings.cpu_share = Choice::number(1.5);
  EXPECT_TRUE(refused(settings, "1.5"));
  settings = {.admit = Choice::number(-1)};
  EXPECT_TRUE(refused(settings, "-1"));
  settings = {.policy = {.half_life = 0.5}};
  EXPECT_TRUE(refused(settings, "0.5"));
  settings = {.policy = {.kind = PolicyKind::kBelady}};
  EXPECT_TRUE(refused(settings, "future"));
  EXPECT_FALSE(Planner::create({}, std::vector{GroupShape{{0}, 6, 2, kBytes}}, std::vector{3u, 4u},
                               std::vector{1u}, default_profile()));
}

// A copy that fails leaves no trace; whoever waited for it has to do without.
TEST(Planner, AFailedCopyIsNeverAHit) {
  Bench bench;
  bench.settings.cpu_share = Choice::number(0.0);
  const Plan& first = bench.made().plan({0, 1, std::vector<Use>{{0, 1}, {1, 1}}});
  const Ticket ticket = first.entries[0].ticket;
  bench.planner->failed(ticket);
  bench.planner->arrived(first.entries[1].ticket);
  EXPECT_EQ(bench.planner->resident({0, 0}), kNoSlot);
  bench.planner->complete(first.id, {});
  EXPECT_EQ(bench.run(0, 1), "1h 0u");
  EXPECT_EQ(bench.planner->total().cold.failed, 1u);
}

}  // namespace
}  // namespace experts
}  // namespace spillway
