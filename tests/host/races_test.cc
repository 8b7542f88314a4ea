// Misuse of slots is found in every run, and correct use never accused.
#include <algorithm>

#include "backend/host/slot_watch.h"
#include "host/fixture.h"

namespace spillway::backend {
namespace {

constexpr SlotId kSlot{0, 1};

std::string why(const Result<void>& result) { return result ? "" : result.error().message; }

TEST(SlotWatch, ReadsNeedAFilledSlot) {
  SlotWatch watch({2});
  EXPECT_NE(why(watch.read(kSlot, 1, 0)).find("never filled"), std::string::npos);
  EXPECT_NE(why(watch.enter_table(kSlot)).find("never filled"), std::string::npos);
  ASSERT_TRUE(watch.copy(kSlot, 1, 4, 0, 0));
  EXPECT_TRUE(watch.enter_table(kSlot));
  // Enqueued before the copy was called.
  EXPECT_NE(why(watch.read(kSlot, 4, 9)).find("never filled"), std::string::npos);
  EXPECT_NE(why(watch.read(kSlot, 5, 0)).find("may still be under way"), std::string::npos);
  EXPECT_TRUE(watch.read(kSlot, 5, 1));
}

TEST(SlotWatch, CopiesWaitForReaders) {
  // The copy is called before the operation runs, and after.
  for (const bool copy_first : {true, false})
    for (const uint64_t after : {4u, 5u}) {
      SlotWatch watch({2});
      ASSERT_TRUE(watch.copy(kSlot, 1, 0, 0, 0));
      std::string text;
      if (copy_first) text += why(watch.copy(kSlot, 2, 7, after, 0));
      text += why(watch.read(kSlot, 5, 1));
      if (!copy_first) text += why(watch.copy(kSlot, 2, 7, after, 5));
      if (after == 5)
        EXPECT_EQ(text, "");
      else
        EXPECT_NE(text.find("race: copy 2 overwrites slot 1 of pool 0 while operation 5"), std::string::npos)
            << text;
    }
}

TEST(SlotWatch, AnOperationReadsTheCopyCalledBeforeIt) {
  SlotWatch watch({2});
  ASSERT_TRUE(watch.copy(kSlot, 1, 0, 0, 0));
  ASSERT_TRUE(watch.copy(kSlot, 2, 3, 3, 0));
  EXPECT_TRUE(watch.read(kSlot, 2, 1));   // the first copy is its own
  EXPECT_FALSE(watch.read(kSlot, 4, 1));  // this one needs the second
  EXPECT_TRUE(watch.read(kSlot, 4, 2));
}

class HostRaces : public testing::Test {
 protected:
  void SetUp() override {
    device->begin(step.step());
    const std::vector<float> x(3 * kHidden, 0.5f);
    device->write_buffer(kNormed, x.data());
    device->route(kNormed, spec, Device::ForHost::kNo);
  }
  Point copy(uint32_t slot, uint32_t expert, Point after = {}) {
    return device->copy_expert(0, slot, model.expert(0, expert), after);
  }
  // All experts, each from its slot.
  void read_all() {
    std::vector<ExpertSlot> all;
    for (uint32_t e = 0; e < kExperts; ++e) all.push_back({e, e});
    device->experts_in_slots(kNormed, spec, all);
  }
  std::string error() {
    const auto finished = device->finish();
    return finished ? "" : finished.error().message;
  }

  const Model& model = test_model();
  const MoeSpec spec = model.moe(0);
  const TestStep step{3, 0};
  const std::unique_ptr<Device> device = ready_device(model, kExperts);
};

TEST_F(HostRaces, HalfArrived) {
  for (uint32_t e = 0; e < kExperts; ++e) copy(e, e);
  read_all();
  EXPECT_NE(error().find("race: operation"), std::string::npos);
  EXPECT_NE(error().find("may still be under way"), std::string::npos);
}

TEST_F(HostRaces, TheStreamOrTheHostWaits) {
  Point last;
  for (uint32_t e = 0; e < kExperts; ++e) last = copy(e, e);
  device->stream_wait(last);
  read_all();
  EXPECT_EQ(error(), "");
  for (uint32_t e = 0; e < kExperts; ++e) last = copy(e, e);  // after finish(): nobody reads
  EXPECT_TRUE(device->wait(last));
  read_all();
  EXPECT_EQ(error(), "");
}

TEST_F(HostRaces, OverwrittenTooEarly) {
  Point last;
  for (uint32_t e = 0; e < kExperts; ++e) last = copy(e, e);
  device->stream_wait(last);
  const Point before = device->mark();
  read_all();
  for (uint32_t e = 0; e < kExperts; ++e) copy(e, 0, before);
  EXPECT_NE(error().find("overwrites slot"), std::string::npos) << error();
}

TEST_F(HostRaces, OverwrittenInTime) {
  Point last;
  for (uint32_t e = 0; e < kExperts; ++e) last = copy(e, e);
  device->stream_wait(last);
  read_all();
  const Point behind = device->mark();
  for (uint32_t e = 0; e < kExperts; ++e) last = copy(e, 7 - e, behind);
  device->stream_wait(last);
  read_all();
  EXPECT_EQ(error(), "");
}

// An expert that no row chose isn't read: its slot may be filled meanwhile.
TEST_F(HostRaces, OnlyChosenExpertsAreRead) {
  device->route(kNormed, spec, Device::ForHost::kNow);
  ASSERT_TRUE(device->wait(device->mark()));
  const auto ids = device->routed().ids;
  const auto is_chosen = [&](uint32_t e) { return std::ranges::find(ids, e) != ids.end(); };
  Point last;
  for (uint32_t e = 0; e < kExperts; ++e)
    if (is_chosen(e)) last = copy(e, e);
  device->stream_wait(last);
  for (uint32_t e = 0; e < kExperts; ++e)
    if (!is_chosen(e)) copy(e, e);
  for (uint32_t e = 0; e < kExperts; ++e) device->set_slot(0, e, e);
  device->experts_in_table(kNormed, spec);
  device->combine(spec, kBranch);
  EXPECT_EQ(error(), "");
}

TEST_F(HostRaces, ASlotThatWasNeverFilled) {
  device->set_slot(0, 2, 5);
  EXPECT_NE(error().find("race: slot 5 of pool 0 is put into a table"), std::string::npos) << error();
}

TEST_F(HostRaces, RoutedTooEarly) {
  device->route(kNormed, spec, Device::ForHost::kNow);
  device->mark();
  device->submit();
  device->routed();
  EXPECT_NE(error().find("race: routed()"), std::string::npos) << error();
}

TEST_F(HostRaces, RoutedWithoutAsking) {
  EXPECT_TRUE(device->wait(device->mark()));
  device->routed();
  EXPECT_NE(error().find("race: routed()"), std::string::npos) << error();
}

TEST_F(HostRaces, CombinedTooEarly) {
  device->combine(spec, kBranch);
  EXPECT_NE(error().find("race: layer 0 is combined before the output of row 0, rank 0"), std::string::npos)
      << error();
}

}  // namespace
}  // namespace spillway::backend
