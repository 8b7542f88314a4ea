// Every operation of the pretended device against the CPU's, bit for bit.
#include <deque>

#include "host/fixture.h"

namespace spillway::backend {
namespace {

class HostOperations : public testing::TestWithParam<std::tuple<Layout, uint32_t>> {};

TEST_P(HostOperations, EqualTheCpu) {
  const auto& [layout, threads] = GetParam();
  const Model& model = test_model(layout);
  Reference reference(model);
  const auto device = ready_device(model, kLayers * kExperts, {.threads = threads});
  const auto runner = std::make_unique<ResidentRunner>(*device, model);
  device->set_runner(runner.get());

  for (const uint32_t first_rows : {5u, 1u, 9u}) {
    const TestStep step(first_rows);
    std::vector<std::vector<float>> expected;
    run_all(*reference.compute, model, step.step(), kLayers,
            [&](BufferId id) { expected.push_back(reference.rows(id)); });
    std::deque<std::vector<float>> got;
    run_all(*device, model, step.step(), kLayers, [&](BufferId id) {
      got.emplace_back(step.tokens.size() * kWidths[id]);
      device->read_buffer(id, got.back().data());
    });
    ASSERT_TRUE(device->finish());
    ASSERT_EQ(expected.size(), got.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(expected[i], got[i])) << "result " << i;

    const std::vector<uint32_t> wanted = {0, first_rows, first_rows + 1};
    constexpr size_t kStride = kVocabulary + 3;
    std::vector<float> logits(3 * kStride, 7), device_logits(3 * kStride, 7);
    reference.compute->logits(kX, wanted, kNorm, 1e-6f, kLogits, logits.data(), kStride);
    device->logits(kX, wanted, kNorm, 1e-6f, kLogits, device_logits.data(), kStride);
    ASSERT_TRUE(device->finish());
    EXPECT_TRUE(same_bits(logits, device_logits));
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostOperations,
                         testing::Values(std::tuple(Layout::kInterleaved, 1u),
                                         std::tuple(Layout::kFile, 2u)));

TEST(HostBuffers, AreWrittenAndRead) {
  const Model& model = test_model();
  const auto device = ready_device(model, 1);
  const TestStep step(3, 0);
  device->begin(step.step());
  std::vector<float> values(3 * kHidden), before(3 * kHidden), after(3 * kHidden);
  std::iota(values.begin(), values.end(), 1.0f);
  const std::vector<float> copy = values;
  device->write_buffer(kBranch, values.data());
  std::ranges::fill(values, 0.0f);  // copied before the call returned
  device->read_buffer(kBranch, before.data());
  device->write_buffer(kBranch, values.data());
  device->read_buffer(kBranch, after.data());
  ASSERT_TRUE(device->finish());
  EXPECT_TRUE(same_bits(copy, before));
  EXPECT_TRUE(same_bits(values, after));
}

// A page that is copied answers like the one it came from.
TEST(HostKv, PagesAreCopied) {
  const Model& model = test_model();
  const auto device = ready_device(model, kLayers * kExperts);
  const auto runner = std::make_unique<ResidentRunner>(*device, model);
  device->set_runner(runner.get());
  TestStep step(6, 0);
  const auto nothing = [](BufferId) {};
  run_all(*device, model, step.step(), kLayers, nothing);
  device->copy_kv_page(2, 4);

  std::vector<float> results[2];
  const std::vector<uint32_t> pages[] = {{2}, {4}};
  TestStep next(1, 0);
  next.positions[0] = 6;
  for (int i = 0; i < 2; ++i) {
    next.pieces[0] = {0, 1, 6, pages[i]};
    run_all(*device, model, next.step(), kLayers, nothing);
    results[i].resize(kHidden);
    device->read_buffer(kX, results[i].data());
    ASSERT_TRUE(device->finish());
  }
  EXPECT_TRUE(same_bits(results[0], results[1]));
  // And a page that nobody wrote answers otherwise: the test sees a difference.
  next.first_pages = {0};
  next.pieces[0] = {0, 1, 6, next.first_pages};
  run_all(*device, model, next.step(), kLayers, nothing);
  std::vector<float> other(kHidden);
  device->read_buffer(kX, other.data());
  ASSERT_TRUE(device->finish());
  EXPECT_FALSE(same_bits(results[0], other));
}

}  // namespace
}  // namespace spillway::backend
