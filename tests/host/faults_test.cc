// Everything that can fail does, one at a time: the error says so, every call returns, and nothing hangs.
#include "host/fixture.h"

namespace spillway::backend {
namespace {

constexpr uint32_t kSlots = kLayers * kExperts;

TEST(HostFaults, MemoryThatDoesNotSuffice) {
  const Model& model = test_model();
  const DeviceSpec spec = model.spec(kSlots);
  const uint64_t needed = open_device()->bytes(spec).total();
  const auto exact = open_device({.memory_bytes = needed});
  EXPECT_EQ(exact->info().memory_bytes, needed);
  EXPECT_TRUE(exact->prepare(spec));

  const auto device = open_device({.memory_bytes = needed - 1});
  const auto refused = device->prepare(spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::Kind::kNoMemory);
  for (const uint64_t number : {needed, needed - 1})
    EXPECT_NE(refused.error().message.find(std::to_string(number)), std::string::npos)
        << refused.error().message;
  // A smaller cache fits, on the same device.
  const DeviceSpec smaller = model.spec(kSlots - 1);
  EXPECT_EQ(needed - device->bytes(smaller).total(), spec.pools[0].layout.slot_bytes());
  EXPECT_TRUE(device->prepare(smaller));
  EXPECT_TRUE(upload_all(*device, model));
}

TEST(HostFaults, EachAllocation) {
  const Model& model = test_model();
  for (uint32_t number = 1; number <= 4; ++number) {
    const auto device = open_device({.faults = {.fail_allocation = number}});
    const auto refused = device->prepare(model.spec(kSlots));
    ASSERT_FALSE(refused) << "allocation " << number;
    EXPECT_EQ(refused.error().kind, Error::Kind::kNoMemory);
    EXPECT_TRUE(device->prepare(model.spec(2)));
    EXPECT_TRUE(upload_all(*device, model));
  }
}

TEST(HostFaults, AnUpload) {
  const Model& model = test_model();
  const auto device = open_device({.faults = {.fail_upload = 4}});
  ASSERT_TRUE(device->prepare(model.spec(1)));
  const auto refused = upload_all(*device, model);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("upload 4, of weight 3, failed"), std::string::npos)
      << refused.error().message;
}

TEST(HostFaults, AWeightThatIsMissing) {
  const Model& model = test_model();
  const auto device = open_device();
  ASSERT_TRUE(device->prepare(model.spec(1)));
  const TestStep step;
  device->begin(step.step());
  device->embed(kEmbedding, kX);
  const auto finished = device->finish();
  ASSERT_FALSE(finished);
  EXPECT_NE(finished.error().message.find("weight 0 is used and was never uploaded"), std::string::npos);
}

TEST(HostFaults, Pinning) {
  const std::vector<std::byte> memory(1000);
  std::string why_not;
  EXPECT_EQ(open_device()->pin(memory, &why_not), 1000u);
  EXPECT_EQ(why_not, "");
  EXPECT_EQ(open_device({.faults = {.refuse_pinning = true}})->pin(memory, &why_not), 0u);
  EXPECT_NE(why_not.find("refused"), std::string::npos);
  const auto limited = open_device({.faults = {.pin_limit_bytes = 1500}});
  EXPECT_EQ(limited->pin(memory, &why_not), 1000u);
  EXPECT_EQ(limited->pin(memory, &why_not), 500u);
  EXPECT_NE(why_not.find("500 of 1000"), std::string::npos) << why_not;
}

// All calls of a step on a device that is lost at some moment of it. Memory that the step lent to the device
// goes away as soon as the error is known.
void run_step_and_lose(const HostDeviceOptions& options, const std::string& text) {
  const Model& model = test_model();
  const auto device = ready_device(model, kSlots, options);
  const auto runner = std::make_unique<ResidentRunner>(*device, model);
  device->set_runner(runner.get());
  std::string first_error;
  for (int round = 0; round < 2; ++round) {
    const TestStep step;
    std::vector<float> rows(step.tokens.size() * kHidden), logits(kVocabulary);
    run_all(*device, model, step.step(), kLayers, [](BufferId) {});
    device->copy_kv_page(2, 4);
    device->read_buffer(kX, rows.data());
    device->write_buffer(kX, rows.data());
    const uint32_t wanted = 0;
    device->logits(kX, {&wanted, 1}, kNorm, 1e-6f, kLogits, logits.data(), kVocabulary);
    const Point mark = device->mark();
    const Point copy = device->copy_expert(0, 0, model.expert(0, 0), mark);
    device->stream_wait(copy);
    device->submit();
    for (const Point point : {copy, mark}) {
      const auto waited = device->wait(point);
      ASSERT_FALSE(waited);
      EXPECT_NE(waited.error().message.find(text), std::string::npos) << waited.error().message;
      if (first_error.empty()) first_error = waited.error().message;
      EXPECT_EQ(waited.error().message, first_error);
      EXPECT_TRUE(device->reached(point));  // whoever looks in a loop comes out of it
    }
    const auto finished = device->finish();
    ASSERT_FALSE(finished);
    EXPECT_EQ(finished.error().message, first_error);
    EXPECT_FALSE(device->upload(kNorm, model.weights()[kNorm]));
  }
}

TEST(HostFaults, LostAfterEveryNumberOfOperations) {
  // Before the first wait there are 17 operations for the tables, 36 of the step and 4 more.
  for (uint64_t operations = 0; operations < 57; operations += operations < 20 ? 1 : 3)
    run_step_and_lose({.faults = {.lose_after_operations = operations}},
                      fmt::format("lost after operation {}", operations));
}

TEST(HostFaults, EveryCopy) {
  for (const uint64_t copy : {1u, 2u, kSlots, kSlots + 1})
    run_step_and_lose({.faults = {.fail_copy = copy}}, fmt::format("copy {} failed", copy));
}

TEST(HostFaults, ADeviceMayGoAwayWithWorkLeft) {
  const Model& model = test_model();
  const TestStep step;
  std::vector<float> rows(step.tokens.size() * kHidden);
  for (const bool submitted : {false, true}) {
    const auto device = ready_device(model, kSlots);
    const auto runner = std::make_unique<ResidentRunner>(*device, model);
    device->set_runner(runner.get());
    for (int i = 0; i < 5; ++i) run_all(*device, model, step.step(), kLayers, [](BufferId) {});
    device->read_buffer(kX, rows.data());
    device->stream_wait(device->copy_expert(0, 0, model.expert(0, 0), device->mark()));
    if (submitted) device->submit();
  }
}

}  // namespace
}  // namespace spillway::backend
