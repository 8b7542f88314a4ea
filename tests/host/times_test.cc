// Simulated times are worked out by hand here; measured ones need only make sense.
#include "host/fixture.h"

namespace spillway::backend {
namespace {

constexpr uint64_t kOperationNs = 10'000, kCopyNs = 5'000;

// 4 bytes or 8 multiply-adds a nanosecond; copies of 2 bytes, or of 1 from memory that isn't pinned.
constexpr HostRates kRates{.device_gb_per_s = 4,
                           .device_gmac_per_s = 8,
                           .operation_us = 10,
                           .link_gb_per_s = 2,
                           .link_pageable_gb_per_s = 1,
                           .copy_us = 5};

class HostTimes : public testing::Test {
 protected:
  HostTimes() {
    device->begin(step.step());  // one operation
    device->mark();
    EXPECT_TRUE(device->finish());
  }
  void expect(Interval interval, uint64_t begin_ns, uint64_t end_ns) {
    EXPECT_EQ(interval.begin_ns, begin_ns);
    EXPECT_EQ(interval.end_ns, end_ns);
  }
  ExpertMatrices pinned_expert(uint32_t e) {
    const ExpertMatrices expert = model.expert(0, e);
    std::string why_not;
    for (const Matrix* m : {&expert.gate, &expert.up, &expert.down})
      EXPECT_GT(device->pin({m->data, m->rows * row_bytes(m->type, m->cols)}, &why_not), 0u);
    return expert;
  }

  const Model& model = test_model();
  sys::FakeClock clock;
  const std::unique_ptr<Device> device = ready_device(model, kExperts, {.rates = kRates, .clock = &clock});
  const TestStep step{2, 0};
  const uint64_t slot_bytes = model.spec(1).pools[0].layout.slot_bytes();
};

TEST_F(HostTimes, FinishSetsTheClock) {
  EXPECT_EQ(clock.now_ns(), kOperationNs);
  device->add(kX, kBranch, kHidden);
  device->add(kX, kBranch, kHidden);
  ASSERT_TRUE(device->finish());
  EXPECT_EQ(clock.now_ns(), 3 * kOperationNs);
}

TEST_F(HostTimes, AnOperationStartsWhenItIsHandedOver) {
  device->add(kX, kBranch, kHidden);
  const Point first = device->mark();
  clock.advance_ns(1'000);
  device->submit();
  clock.advance_ns(2'000);
  device->add(kX, kBranch, kHidden);
  const Point second = device->mark();
  ASSERT_TRUE(device->wait(second));
  expect(device->interval(first), 11'000, 21'000);
  expect(device->interval(second), 21'000, 31'000);
  EXPECT_EQ(clock.now_ns(), 31'000u);
}

TEST_F(HostTimes, ProductsTakeTheirBytesOrTheirWork) {
  const Linear q[] = {{kQuery, kNoWeight, kQ}};
  device->linear(kNormed, q);
  const Point two_rows = device->mark();
  const TestStep wide(12, 0);
  device->begin(wide.step());
  device->mark();
  device->linear(kNormed, q);
  const Point twelve_rows = device->mark();
  ASSERT_TRUE(device->finish());
  const uint64_t bytes = 256 * row_bytes(TensorType::kQ4_K, 256);  // 36,864: 9,216 ns
  EXPECT_EQ(device->interval(two_rows).length_ns(), kOperationNs + std::max(bytes / 4, 2 * 256 * 256 / 8ul));
  EXPECT_EQ(device->interval(twelve_rows).length_ns(), kOperationNs + 12 * 256 * 256 / 8);
}

TEST_F(HostTimes, QueuesWaitForEachOther) {
  const uint64_t start = clock.now_ns();
  device->write_buffer(kNormed, std::vector<float>(2 * kHidden, 1.0f).data());
  const Point written = device->mark();
  const Point pageable = device->copy_expert(0, 0, model.expert(0, 0), {});
  const Point pinned = device->copy_expert(0, 1, pinned_expert(1), written);
  device->stream_wait(pinned);
  device->add(kX, kBranch, kHidden);
  const Point added = device->mark();
  ASSERT_TRUE(device->finish());
  const uint64_t first_end = start + kCopyNs + slot_bytes, second_end = first_end + kCopyNs + slot_bytes / 2;
  expect(device->interval(written), start, start + kOperationNs);
  expect(device->interval(pageable), start, first_end);
  expect(device->interval(pinned), first_end, second_end);
  expect(device->interval(added), second_end, second_end + kOperationNs);
}

TEST_F(HostTimes, CopiesStartAfterTheirPoint) {
  for (int i = 0; i < 30; ++i) device->add(kX, kBranch, kHidden);
  const Point behind = device->mark();
  const Point copy = device->copy_expert(0, 0, pinned_expert(0), behind);
  ASSERT_TRUE(device->wait(copy));
  const uint64_t start = device->interval(behind).end_ns;
  EXPECT_EQ(start, 31 * kOperationNs);
  expect(device->interval(copy), start, start + kCopyNs + slot_bytes / 2);
  EXPECT_EQ(clock.now_ns(), device->interval(copy).end_ns);
}

TEST_F(HostTimes, ReachedFollowsTheClock) {
  const uint64_t length = kCopyNs + slot_bytes / 2;
  const Point copy = device->copy_expert(0, 0, pinned_expert(0), {});
  EXPECT_FALSE(device->reached(copy));
  clock.advance_ns(length - 1);
  EXPECT_FALSE(device->reached(copy));
  clock.advance_ns(1);
  EXPECT_TRUE(device->reached(copy));
}

TEST_F(HostTimes, ExpertsTakeWhatTheyRead) {
  device->write_buffer(kNormed, std::vector<float>(2 * kHidden, 1.0f).data());
  Point last;
  std::vector<ExpertSlot> all;
  for (uint32_t e = 0; e < kExperts; ++e) {
    last = device->copy_expert(0, e, model.expert(0, e), {});
    all.push_back({e, e});
  }
  device->stream_wait(last);
  const MoeSpec spec = model.moe(0);
  device->route(kNormed, spec, Device::ForHost::kNo);
  device->mark();
  device->experts_in_slots(kNormed, spec, all);
  const Point computed = device->mark();
  ASSERT_TRUE(device->finish());
  // Both rows are the same, and so are their three experts.
  EXPECT_EQ(device->interval(computed).length_ns(),
            kOperationNs + std::max(3 * slot_bytes / 4, 2 * kUsed * 3 * 256 * 256 / 8ul));
}

TEST(HostMeasuredTimes, Ascend) {
  const Model& model = test_model();
  const auto device = ready_device(model, kLayers * kExperts);
  const auto runner = std::make_unique<ResidentRunner>(*device, model);
  device->set_runner(runner.get());
  const TestStep step;
  std::vector<Point> points;
  for (int i = 0; i < 3; ++i) {
    run_all(*device, model, step.step(), kLayers, [](BufferId) {});
    points.push_back(device->mark());
  }
  ASSERT_TRUE(device->finish());
  uint64_t before = 0;
  for (const Point point : points) {
    const Interval interval = device->interval(point);
    EXPECT_GE(interval.begin_ns, before);
    EXPECT_GT(interval.end_ns, interval.begin_ns);
    before = interval.end_ns;
  }
}

TEST(HostMeasuredTimes, AreKeptForManyPoints) {
  const auto device = ready_device(test_model(), 1);
  std::vector<Point> points;
  for (uint64_t i = 0; i < Device::kTimedPoints + 10; ++i) points.push_back(device->mark());
  ASSERT_TRUE(device->finish());
  EXPECT_GT(device->interval(points.back()).end_ns, 0u);
  EXPECT_GT(device->interval(points[10]).end_ns, 0u);
  EXPECT_EQ(device->interval(points[9]).end_ns, 0u);
}

}  // namespace
}  // namespace spillway::backend
