// The MoE layer taken apart: tables, slots, outputs from elsewhere, and a cache that is driven at random with
// the waits that it needs.
#include <algorithm>
#include <thread>

#include "host/fixture.h"
#include "host/random_runner.h"

namespace spillway::backend {
namespace {

// The CPU's MoE result of some rows of random numbers.
class HostExperts : public testing::Test {
 protected:
  void begin(Device& on, uint32_t rows = 7) {
    step = std::make_unique<TestStep>(rows, 0);
    x.resize(rows * kHidden);
    std::normal_distribution<float> normal;
    for (float& value : x) value = normal(random);
    on.begin(step->step());
    on.write_buffer(kNormed, x.data());
  }

  std::vector<float> expected(uint32_t layer) {
    reference.compute->begin(step->step());
    std::ranges::copy(x, reference.compute->buffer_rows(kNormed).begin());
    reference.compute->moe(kNormed, model.moe(layer), kBranch);
    return reference.rows(kBranch);
  }

  std::vector<float> result(Device& on) {
    std::vector<float> rows(x.size());
    on.read_buffer(kBranch, rows.data());
    const auto finished = on.finish();
    EXPECT_TRUE(finished) << finished.error().message;
    return rows;
  }

  void fill(Device& on, uint32_t slot, uint32_t layer, uint32_t expert) {
    on.stream_wait(on.copy_expert(0, slot, model.expert(layer, expert), {}));
  }

  std::mt19937_64 random{5};
  const Model& model = test_model();
  Reference reference{model};
  std::unique_ptr<TestStep> step;
  std::vector<float> x;
};

TEST_F(HostExperts, RoutedBringsWhatTheRouterChose) {
  const auto device = ready_device(model, 1);
  begin(*device);
  device->route(kNormed, model.moe(1), Device::ForHost::kNow);
  ASSERT_TRUE(device->wait(device->mark()));
  const Routed routed = device->routed();
  expected(1);
  const cpu::ExpertInput input = reference.compute->expert_input(kNormed, model.moe(1));
  EXPECT_TRUE(std::ranges::equal(routed.ids, input.ids));
  EXPECT_TRUE(same_bits(x, routed.x));
}

TEST_F(HostExperts, ChosenIsThereAfterTheStepForEachLayer) {
  const auto device = ready_device(model, 1);
  begin(*device);
  for (const uint32_t layer : {0u, 1u}) device->route(kNormed, model.moe(layer), Device::ForHost::kLater);
  ASSERT_TRUE(device->finish());
  for (const uint32_t layer : {0u, 1u}) {
    expected(layer);
    const cpu::ExpertInput input = reference.compute->expert_input(kNormed, model.moe(layer));
    EXPECT_TRUE(std::ranges::equal(device->chosen(layer), input.ids)) << layer;
  }
}

// Some experts by the table, some by slots, the rest on the CPU.
TEST_F(HostExperts, ThreeWaysGiveOneSum) {
  const auto device = ready_device(model, kExperts);
  cpu::ExpertCompute on_cpu(*reference.pool, cpu::kernels(cpu::InstructionSet::kScalar), Model::sizes(), {});
  for (int round = 0; round < 6; ++round) {
    const uint32_t layer = round % kLayers;
    begin(*device);
    const MoeSpec spec = model.moe(layer);
    device->route(kNormed, spec, Device::ForHost::kNow);
    std::vector<ExpertSlot> by_slot;
    std::vector<cpu::ExpertPart> by_cpu;
    for (uint32_t e = 0; e < kExperts; ++e) {
      const uint32_t slot = (e + round) % kExperts, way = (e * 5 + round) % 3;
      if (way < 2) fill(*device, slot, layer, e);
      device->set_slot(layer, e, way == 0 ? slot : Device::kNoSlot);
      if (way == 1) by_slot.push_back({e, slot});
      if (way == 2) by_cpu.push_back({e, model.expert(layer, e)});
    }
    ASSERT_TRUE(device->wait(device->mark()));
    device->experts_in_table(kNormed, spec);
    device->experts_in_slots(kNormed, spec, by_slot);
    device->submit();
    const Routed routed = device->routed();
    on_cpu.run({.x = routed.x.data(), .x_stride = kHidden, .rows = 7, .used = kUsed, .ids = routed.ids},
               by_cpu);
    device->take_outputs(spec, on_cpu.pairs(), on_cpu.outputs());
    device->combine(spec, kBranch);
    EXPECT_TRUE(same_bits(expected(layer), result(*device))) << "round " << round;
  }
}

TEST_F(HostExperts, TheTableChangesInStreamOrder) {
  const auto device = ready_device(model, kExperts + 1);
  begin(*device);
  const MoeSpec spec = model.moe(0);
  for (uint32_t e = 0; e < kExperts; ++e) {
    fill(*device, e, 0, e);
    device->set_slot(0, e, e);
  }
  fill(*device, kExperts, 1, 3);  // another layer's expert 3: other numbers
  device->route(kNormed, spec, Device::ForHost::kNo);
  device->experts_in_table(kNormed, spec);  // before
  device->set_slot(0, 3, kExperts);
  device->combine(spec, kBranch);
  EXPECT_TRUE(same_bits(expected(0), result(*device)));
  device->route(kNormed, spec, Device::ForHost::kNo);
  device->experts_in_table(kNormed, spec);  // after
  device->combine(spec, kBranch);
  EXPECT_FALSE(same_bits(expected(0), result(*device)));
  device->set_slot(0, 3, 3);
  device->route(kNormed, spec, Device::ForHost::kNo);
  device->experts_in_table(kNormed, spec);
  device->combine(spec, kBranch);
  EXPECT_TRUE(same_bits(expected(0), result(*device)));
}

TEST_F(HostExperts, NothingRunsBeforeItIsHandedOver) {
  const auto device = ready_device(model, 1);
  begin(*device);
  std::vector<float> rows(x.size(), -1.0f);
  device->read_buffer(kNormed, rows.data());
  const Point behind = device->mark();
  const Point copy = device->copy_expert(0, 0, model.expert(0, 0), behind);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(device->reached(behind));
  EXPECT_FALSE(device->reached(copy));
  EXPECT_TRUE(device->reached({}));
  EXPECT_EQ(rows[0], -1.0f);
  EXPECT_TRUE(device->wait(copy));
  EXPECT_TRUE(device->reached(copy));
  EXPECT_TRUE(device->reached(behind));
  EXPECT_TRUE(same_bits(x, rows));
}

TEST(HostCache, AnyPlacementGivesTheSameBits) {
  const Model& model = test_model();
  Reference reference(model);
  for (const uint32_t slots : {2u, 5u, 16u}) {
    const auto device = ready_device(model, slots, {.threads = 1 + slots % 2});
    const auto runner = std::make_unique<RandomRunner>(*device, model, slots, slots);
    device->set_runner(runner.get());
    for (uint32_t i = 0; i < 30; ++i) {
      const TestStep step(1 + i % 5, i % 3, i);
      const auto nothing = [](BufferId) {};
      run_all(*reference.compute, model, step.step(), kLayers, nothing);
      run_all(*device, model, step.step(), kLayers, nothing);
      std::vector<float> rows(step.tokens.size() * kHidden);
      device->read_buffer(kX, rows.data());
      const auto finished = device->finish();
      ASSERT_TRUE(finished) << finished.error().message;
      ASSERT_TRUE(same_bits(reference.rows(kX), rows)) << "step " << i << ", " << slots << " slots";
    }
    EXPECT_GT(runner->hit, 0u);
    EXPECT_GT(runner->upload, 0u);
    EXPECT_GT(runner->cpu, 0u);
    EXPECT_GT(runner->promoted, 0u);
  }
}

// The same calls take the same simulated time, whatever the threads do.
TEST(HostCache, SimulatedTimesAreTheSameInEveryRun) {
  const Model& model = test_model();
  const HostRates rates{
      .device_gb_per_s = 4, .device_gmac_per_s = 8, .operation_us = 3, .link_gb_per_s = 1, .copy_us = 5};
  std::vector<std::vector<uint64_t>> runs(3);
  for (std::vector<uint64_t>& times : runs) {
    sys::FakeClock clock;
    const auto device = ready_device(model, 5, {.rates = rates, .clock = &clock});
    const auto runner = std::make_unique<RandomRunner>(*device, model, 5, 77);
    runner->cpu_clock = &clock;
    device->set_runner(runner.get());
    for (uint32_t i = 0; i < 20; ++i) {
      const TestStep step(1 + i % 5, i % 3, i);
      run_all(*device, model, step.step(), kLayers, [](BufferId) {});
      const Point end = device->mark();
      ASSERT_TRUE(device->finish());
      times.push_back(clock.now_ns());
      times.push_back(device->interval(end).begin_ns);
      times.push_back(device->interval(end).end_ns);
    }
    for (const Point point : runner->points) times.push_back(device->interval(point).end_ns);
    EXPECT_GT(runner->promoted, 0u);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(runs[0], runs[2]);
}

TEST(HostCache, ALostDeviceIsNoticedAtTheNextWait) {
  const Model& model = test_model();
  const auto device = ready_device(model, 5, {.faults = {.lose_after_operations = 150}});
  const auto runner = std::make_unique<RandomRunner>(*device, model, 5, 3);
  device->set_runner(runner.get());
  uint32_t steps = 0;
  for (Result<void> finished; finished; ++steps) {
    const TestStep step(1 + steps % 5, steps % 3, steps);
    run_all(*device, model, step.step(), kLayers, [](BufferId) {});
    finished = device->finish();
    ASSERT_LT(steps, 20u);
    if (!finished) {
      EXPECT_NE(finished.error().message.find("lost after operation 150"), std::string::npos);
    }
  }
  EXPECT_GT(steps, 2u);
}

}  // namespace
}  // namespace spillway::backend
