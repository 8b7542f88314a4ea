#include "experts/controller.h"

#include <gtest/gtest.h>

#include "experts/simulator.h"
#include "support/synthetic_routes.h"

namespace spillway {
namespace experts {
namespace {

struct Regime {
  const char* name;
  double link, cpu, dram, device, cache_share;
};

SimulationSetup setup_of(const Regime& regime) {
  SimulationSetup setup;
  setup.machine = default_profile();
  setup.machine.name = regime.name;
  setup.machine.link_gb_s = {regime.link};
  setup.machine.cpu_gb_s = {regime.cpu};
  setup.machine.dram_gb_s = {regime.dram};
  setup.machine.device_gb_s = {regime.device};
  setup.believed = default_profile();  // the planner has to find out
  setup.cache_share = regime.cache_share;
  setup.dense_bytes = 200'000'000;
  return setup;
}

constexpr Regime kRegimes[] = {
    {"fast link, slow CPU", 60, 4, 100, 500, 0.2},
    {"slow link, fast CPU", 2, 60, 100, 500, 0.2},
    {"everything fits", 12, 36, 42, 500, 1.0},
    {"the cache never pays", 12, 60, 100, 12, 0.2},
    // And where the best is in between.
    {"equal rates, plenty of memory", 25, 25, 100, 500, 0.2},
    {"equal rates, memory shared", 25, 25, 30, 500, 0.2},
};

// With rates that make each of the choices the best in turn, and a planner that starts from wrong ones, auto
// ends within 5 % of the best fixed share and admission factor, and looking costs what it may.
TEST(Controller, EndsNearTheBestFixedSetting) {
  const Routes routes = synthetic_routes({.tokens = 800});
  for (const Regime& regime : kRegimes) {
    SCOPED_TRACE(regime.name);
    const SimulationSetup setup = setup_of(regime);
    double best = 1e300;
    std::string winner;
    for (const double share : {0.0, 0.25, 0.5, 0.75, 0.95, 1.0})
      for (const double admit : {0.0, 1.0, 2.0, 3.0}) {
        SimulationSetup fixed = setup;
        fixed.settings.cpu_share = Choice::number(share);
        fixed.settings.admit = Choice::number(admit);
        const double us = simulate(routes, fixed).value().late_us;
        if (us < best) best = us, winner = fmt::format("share {} admit {}", share, admit);
      }
    const SimulationResult found = simulate(routes, setup).value();
    const ControllerReport& report = found.report.value();
    fmt::print("{}: auto {:.3f} of the best fixed ({}); hits {:.1f} %, {} changes, {} probes for {:.3f} %\n",
               regime.name, found.late_us / best, winner, 100 * found.warm.hit_rate(), report.changes,
               report.probes, 100 * report.probes_us / report.watched_us);
    EXPECT_LE(found.late_us, 1.05 * best) << winner;

    // Promise 2: looking costs at most 1 % of the time, half for probes and half for rehearsals (at 1 us a
    // plan, beyond the first stretch), and no probe makes a step 1.5 times the median.
    EXPECT_LE(report.probes_us, 0.005 * report.watched_us + report.dearest_probe_us);
    EXPECT_LE(report.dearest_probe_us, 0.5 * found.median_step_us);
    // Of whole steps, in the half where the cache is warm; one with many misses may be as long as it would
    // have been without looking.
    SimulationSetup quiet = setup;
    quiet.settings.explore = false;
    quiet.believed = setup.machine;
    const double unavoidable = simulate(routes, quiet).value().longest_step_us;
    fmt::print("  longest step {:.2f} medians, without looking {:.2f}\n",
               found.longest_step_us / found.median_step_us, unavoidable / found.median_step_us);
    EXPECT_LE(found.longest_step_us, std::max(1.5 * found.median_step_us, unavoidable));
    const double first_stretch = 64.0 * 4 * static_cast<double>(report.alternatives.size());
    EXPECT_LE(static_cast<double>(report.rehearsed_plans), first_stretch + 0.005 * report.watched_us);
  }
}

// What the statistics say.
TEST(Controller, ReportsWhatItFound) {
  const Routes routes = synthetic_routes({.tokens = 400});
  const SimulationResult found = simulate(routes, setup_of(kRegimes[0])).value();
  const ControllerReport& report = found.report.value();
  ASSERT_EQ(report.alternatives.size(), 6u);  // factors 2, 1, 4 with promotions, 1, 2 without, and no cache
  const Alternative& none = report.alternatives.back();
  EXPECT_FALSE(none.cache);
  const Alternative& chosen = report.alternatives[report.chosen];
  EXPECT_TRUE(chosen.cache);
  EXPECT_GT(chosen.rehearsed, 100u);
  EXPECT_LT(chosen.layer_us, 0.8 * none.layer_us);
  for (const Alternative& alternative : report.alternatives)
    EXPECT_GE(alternative.layer_us, 0.99 * chosen.layer_us);

  const std::vector<std::string> lines = describe(report);
  ASSERT_GE(lines.size(), 2u);
  EXPECT_NE(lines[0].find(fmt::format("In force: admission factor {}", chosen.admit)), std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find(fmt::format("no cache {:.0f}", none.layer_us)), std::string::npos) << lines[0];
  EXPECT_NE(lines.back().find("Measured / predicted time of layers with"), std::string::npos) << lines.back();
  ControllerReport fresh;
  fresh.alternatives = {{.admit = 2.0, .promote = true}};
  EXPECT_EQ(describe(fresh),
            std::vector<std::string>{"In force: admission factor 2 with promotions, the default; "
                                     "nothing was rehearsed yet."});
}

TEST(Controller, LooksForWhatIsLeftToItOnly) {
  const Routes routes = synthetic_routes({.tokens = 100});
  SimulationSetup setup = setup_of(kRegimes[4]);
  setup.settings.explore = false;
  EXPECT_FALSE(simulate(routes, setup)->report);
  setup.settings.explore = true;
  setup.settings.cpu_share = Choice::number(0.5);
  EXPECT_FALSE(simulate(routes, setup)->report);  // a number turns the rest off
  setup.settings.admit = Choice::automatic();
  const auto found = simulate(routes, setup);
  ASSERT_TRUE(found->report);
  EXPECT_EQ(found->report->probes, 0u);
  for (const Alternative& alternative : found->report->alternatives) EXPECT_FALSE(alternative.promote);
  // A fixed share keeps its cache even where it does not pay.
  SimulationSetup never = setup_of(kRegimes[3]);
  never.settings.cpu_share = Choice::number(0.5);
  never.settings.promote = Promotion::kAuto;
  const auto kept = simulate(routes, never);
  EXPECT_TRUE(kept->report->alternatives[kept->report->chosen].cache);
  EXPECT_GT(kept->warm.hits, 0u);
  setup.settings = {.admit = Choice::number(3.0), .promote = Promotion::kOn};
  EXPECT_EQ(simulate(routes, setup)->report->alternatives.size(), 2u);  // that, or no cache
}

// A kind of split that takes twice what the model says, for a reason that the model has no rate for, is seen
// by its factor and left alone.
TEST(Controller, CorrectsKindsOfSplits) {
  const std::vector<GroupShape> groups = {{{0, 1, 2, 3, 4, 5, 6, 7}, 16, 4, 1'000'000}};
  HardwareProfile profile = default_profile();
  profile.cpu_gb_s = profile.link_gb_s = {20};
  profile.dram_gb_s = {100};
  auto planner = std::move(Planner::create({}, groups, std::vector{0u}, std::vector{4u}, profile).value());
  std::array<uint32_t, kSplitKinds> kinds{};
  double extra = 0.0, total = 0.0;
  for (uint32_t i = 0; i < 8000; ++i) {
    const Plan& plan = planner->plan({i % 8, 1, std::vector<Use>{{0, 1}, {1, 1}, {2, 1}, {3, 1}}});
    const Work work = work_of(plan.entries, 1'000'000, planner->cost_model(), 0.0);
    const SplitKind kind = split_kind(work);
    Observation seen = CostModel(profile).observe(work).seen;
    if (kind == SplitKind::kBoth) seen.total_ns *= 3;
    total += double(seen.total_ns);
    if (i >= 4000) {
      ++kinds[static_cast<size_t>(kind)];
      if (kind == SplitKind::kBoth) extra += double(seen.total_ns);
    }
    planner->complete(plan.id, seen);
  }
  EXPECT_NEAR(planner->report()->corrections[static_cast<size_t>(SplitKind::kBoth)], 2.0, 0.05);
  EXPECT_GT(kinds[static_cast<size_t>(SplitKind::kCopies)] + kinds[static_cast<size_t>(SplitKind::kCpu)],
            3900u);
  EXPECT_LT(extra, 0.02 * total);
}

}  // namespace
}  // namespace experts
}  // namespace spillway
