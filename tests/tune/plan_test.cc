#include "tune/plan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "experts/bounds.h"
#include "experts/machines.h"
#include "gguf/reader.h"
#include "support/model_maker.h"

namespace spillway::tune {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// The header of a model of any size: nothing of it is ever read but that.
Result<PlanModel> model_of(const test_support::ModelSpec& spec) {
  const test_support::MadeModel made = test_support::make_model(spec);
  auto bytes = gguf::write_file(made.source());
  if (!bytes) return std::unexpected(bytes.error());
  const auto open = [&](const std::string&) { return gguf::parse_header(*bytes, bytes->size()); };
  SW_ASSIGN(const gguf::Model file, gguf::open_model("made.gguf", open));
  return describe_for_plan(file);
}

// 12 layers of 32 experts, 4 used, of 3 x 64 x 256 x 4 bytes: 196,608.
test_support::ModelSpec small_spec() {
  return {.layers = 12,
          .hidden = 64,
          .experts = 32,
          .used = 4,
          .expert_width = 256,
          .context = 4096,
          .distinct = 2};
}

PlanMachine a_machine(uint64_t device_bytes, std::string_view name = "rtx3060-pcie3-ddr4") {
  PlanMachine machine = *known_plan_machine(name);
  machine.device_bytes = device_bytes;
  return machine;
}

bool go_on() { return true; }

class PlanTest : public testing::Test {
 protected:
  PlanTest()
      : model_(*model_of(small_spec())),
        use_({.context = 256, .ubatch = 64}),
        routes_(*routes_from_statistic(model_, use_, go_on)) {}

  // Device memory that holds all but this part of the experts.
  uint64_t memory_for(double part) const {
    return (256 << 20) + (3 << 20) + static_cast<uint64_t>(part * static_cast<double>(model_.expert_bytes));
  }
  MachinePlan plan(const PlanMachine& machine) const {
    auto result = plan_on_machine(model_, machine, use_, routes_, go_on);
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return *std::move(result);
  }
  double speed(const PlanMachine& machine) const {
    const auto layout = lay_out(model_, machine, use_);
    EXPECT_TRUE(layout);
    return estimate_speed(model_, *layout, machine, routes_[1])->decode_tok_s;
  }

  const PlanModel model_;
  const PlanUse use_;
  const RoutesByRepetition routes_;
};

// Everything on the device: dense and used experts at the device's rate, a step's fixed time, and each
// expert's start.
TEST_F(PlanTest, WhereEverythingFitsItIsTheSumByHand) {
  const PlanMachine machine = a_machine(12 * kGiB);
  const auto layout = lay_out(model_, machine, use_);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->placement.n_resident_layers(), 12u);
  EXPECT_EQ(model_.token_expert_bytes, 12u * 4 * 196608);
  const double bytes = static_cast<double>(layout->device_dense_bytes + model_.token_expert_bytes);
  const double by_hand_us = bytes / (0.8 * 360e3) + 3000 + 12 * 4 * 1.0;
  const auto speed = estimate_speed(model_, *layout, machine, routes_[1]);
  ASSERT_TRUE(speed);
  EXPECT_NEAR(1e6 / speed->decode_tok_s, by_hand_us, 1e-3);
  EXPECT_DOUBLE_EQ(speed->hit_rate, 1);
  EXPECT_EQ(speed->resources.link_us, 0);
}

// The fixed costs taken away, and a slow link and CPU: what is left is the closed form, which nothing beats.
TEST_F(PlanTest, NothingBeatsTheClosedForm) {
  for (const experts::HardwareProfile& profile : experts::known_machines())
    for (const double part : {0.05, 0.2, 0.5, 0.9})
      for (const double fixed : {1.0, 1e-6}) {
        PlanMachine machine = a_machine(memory_for(part), profile.name);
        experts::HardwareProfile& p = machine.profile;
        for (experts::Quantity* time :
             {&p.step_us, &p.layer_us, &p.cpu_start_us, &p.copy_us, &p.device_expert_us})
          time->value *= fixed;
        const auto layout = lay_out(model_, machine, use_);
        ASSERT_TRUE(layout);
        EXPECT_GT(layout->placement.n_planned_layers(), 0u);
        const double limit = decode_limit(model_, *layout, p);
        for (const PlanRoutes& routes : routes_)
          EXPECT_LE(estimate_speed(model_, *layout, machine, routes)->decode_tok_s, limit)
              << profile.name << part;
      }
}

// Better parts never make it slower, but for what the order of the controller's tries does (kNoDifference).
TEST_F(PlanTest, IsMonotoneInEachResource) {
  for (const experts::HardwareProfile& profile : experts::known_machines()) {
    const PlanMachine machine = a_machine(memory_for(0.3), profile.name);
    const double base = speed(machine);
    for (const Change& change : changes_of(machine))
      EXPECT_GE(speed(change.machine), (1 - kNoDifference) * base) << change.name;
    double last = 0;
    for (const double part : {0.02, 0.1, 0.2, 0.4, 0.6, 0.8, 1.2}) {
      const double now = speed(a_machine(memory_for(part), profile.name));
      EXPECT_GE(now, (1 - kNoDifference) * last) << part;
      last = std::max(now, last);
    }
  }
}

TEST_F(PlanTest, RangesHoldTheTypicalValueAndTheBottleneckIsWhatHelpsMost) {
  const MachinePlan p = plan(a_machine(memory_for(0.3)));
  ASSERT_TRUE(p.estimate);
  const Estimate& e = *p.estimate;
  EXPECT_LT(e.low.decode_tok_s, e.typical.decode_tok_s);
  EXPECT_LT(e.typical.decode_tok_s, e.high.decode_tok_s);
  EXPECT_LE(e.low.prefill_tok_s, e.typical.prefill_tok_s);
  EXPECT_LE(e.typical.prefill_tok_s, e.high.prefill_tok_s);
  EXPECT_LT(e.low.hit_rate, e.high.hit_rate);
  ASSERT_EQ(p.changes.size(), 5u);
  const auto best = std::ranges::max_element(
      p.changes, {}, [](const ChangedEstimate& c) { return c.estimate.typical.decode_tok_s; });
  EXPECT_EQ(p.bottleneck, best->change.part);
}

TEST_F(PlanTest, WhatDoesNotFitIsSaidInBytes) {
  PlanMachine machine = a_machine(memory_for(0.1));
  machine.host_bytes = kGiB;  // less than what the system keeps
  const MachinePlan p = plan(machine);
  EXPECT_FALSE(p.estimate);
  EXPECT_GT(p.layout.host_missing_bytes, 0u);
  machine.host_bytes += p.layout.host_missing_bytes;
  EXPECT_TRUE(plan(machine).estimate);
  machine.device_bytes = 1;
  const MachinePlan none = plan(machine);
  EXPECT_TRUE(none.device_too_small);
  EXPECT_FALSE(none.estimate);
}

TEST_F(PlanTest, StopsWhenAsked) {
  const auto stopped = plan_on_machine(model_, a_machine(kGiB), use_, routes_, [] { return false; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, Error::Kind::kCancelled);
}

TEST_F(PlanTest, RowsSayThatTheyAreEstimatedAndOfWhichMachine) {
  report::ResultFile result;
  add_to_result(result, plan(a_machine(memory_for(0.3))));
  ASSERT_EQ(result.rows.size(), 6u);
  for (const report::Row& row : result.rows) {
    EXPECT_EQ(row.label, Label::kEstimated);
    EXPECT_EQ(row.machine, "rtx3060-pcie3-ddr4");
    EXPECT_LE(*row.decode_low, row.decode_tok_s);
    EXPECT_GE(*row.decode_high, row.decode_tok_s);
    EXPECT_TRUE(row.resources && row.resources->total_us > 0);
  }
}

// The hit rates that plan_routes.h names, and those of public traces that the typical one is made after.
TEST(PlanRoutes, StatisticsHaveTheirHitRates) {
  experts::GroupShape group{{0, 1, 2, 3, 4, 5}, 128, 8, 2'850'000};
  const auto hits = [&](Repetition repetition, double share) {
    experts::SyntheticRouter router(std::span(&group, 1), routing_statistic(repetition), 1);
    for (int i = 0; i < 500; ++i) router.step(1);
    experts::SimulationSetup setup{.cache_share = share, .machine = experts::known_machines()[0]};
    setup.settings.cpu_share = experts::Choice::number(0);
    return 100 * experts::simulate(router.routes(), setup)->warm.hit_rate();
  };
  constexpr double kShares[] = {0.12, 0.20, 0.30};
  constexpr double kExpected[kRepetitions][3] = {{57, 70, 80}, {65, 78, 86}, {72, 84, 92}};
  for (uint32_t r = 0; r < kRepetitions; ++r)
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(hits(static_cast<Repetition>(r), kShares[i]), kExpected[r][i], 2.5)
          << r << " " << kShares[i];
}

TEST(PlanRoutes, OfATraceFillLayersThatItLacks) {
  const PlanModel model = *model_of(small_spec());
  experts::Trace trace;
  // Two layers were planned when it was recorded.
  trace.head.groups = {{{0, 1}, 32, 4, 196608}};
  uint64_t id = 0;
  for (int step = 0; step < 4; ++step) {
    const uint32_t tokens = step == 0 ? 8 : 1;
    trace.events.push_back({experts::Trace::Kind::kStep, tokens});
    for (experts::LayerId layer = 0; layer < 2; ++layer) {
      experts::Trace::Planned planned{.id = ++id, .layer = layer, .n_tokens = tokens};
      for (experts::ExpertId e = 0; e < 4; ++e)
        planned.entries.push_back({.expert = 4 * layer + e, .tokens = tokens});
      trace.plans.push_back(planned);
      trace.events.push_back({experts::Trace::Kind::kPlan, trace.plans.size() - 1});
    }
    trace.events.push_back({experts::Trace::Kind::kStepEnd, 1000});
  }
  const auto routes = routes_from_trace(model, trace);
  ASSERT_TRUE(routes) << routes.error().message;
  EXPECT_EQ(routes->decode.n_tokens(), 3u);
  EXPECT_EQ(routes->prefill.n_tokens(), 8u);
  const auto layers = routes->decode.layers(routes->decode.steps()[0]);
  ASSERT_EQ(layers.size(), 12u);
  for (const experts::Routes::Layer& layer : layers)
    EXPECT_EQ(routes->decode.routing(layer).uses[0].expert, 4 * (layer.layer % 2));

  trace.head.groups[0].n_used = 2;
  EXPECT_NE(routes_from_trace(model, trace).error().message.find("32 and uses 4"), std::string::npos);
}

}  // namespace
}  // namespace spillway::tune
