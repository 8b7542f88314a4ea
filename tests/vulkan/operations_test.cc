// Every operation against the CPU's, bit for bit, on the model of the host device's tests.
#include <deque>
#include <thread>

#include "host/fixture.h"
#include "host/random_runner.h"
#include "numerics/elementary.h"
#include "vulkan/rig.h"

namespace spillway::vulkan {
namespace {

namespace host = spillway::backend;  // the model and its CPU reference

using Link = VulkanOptions::Link;

class Operations : public Rig, public testing::WithParamInterface<std::tuple<Layout, Link>> {
 protected:
  Device& ready_with(const host::Model& model, uint32_t slots) {
    Device& device = ready(model.spec(slots), std::get<1>(GetParam()));
    const auto uploaded = host::upload_all(device, model);
    EXPECT_TRUE(uploaded) << uploaded.error().message;
    return device;
  }
  const host::Model& model() const { return host::test_model(std::get<0>(GetParam())); }
};

TEST_P(Operations, EqualTheCpu) {
  host::Reference reference(model());
  Device& device = ready_with(model(), host::kLayers * host::kExperts);
  const auto runner = std::make_unique<host::ResidentRunner>(device, model());
  device.set_runner(runner.get());
  for (const auto& [first_rows, second_rows] : {std::pair(5u, 2u), {1u, 0u}, {1u, 0u}, {9u, 2u}, {1u, 0u}}) {
    const host::TestStep step(first_rows, second_rows, first_rows);
    std::vector<std::vector<float>> expected;
    host::run_all(*reference.compute, model(), step.step(), host::kLayers,
                  [&](BufferId id) { expected.push_back(reference.rows(id)); });
    std::deque<std::vector<float>> got;
    host::run_all(device, model(), step.step(), host::kLayers, [&](BufferId id) {
      got.emplace_back(step.tokens.size() * host::kWidths[id]);
      device.read_buffer(id, got.back().data());
    });
    const auto finished = device.finish();
    ASSERT_TRUE(finished) << finished.error().message;
    ASSERT_EQ(expected.size(), got.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(same_bits(expected[i], got[i])) << "result " << i;

    const std::vector<uint32_t> wanted =
        first_rows == 1 ? std::vector<uint32_t>{0} : std::vector<uint32_t>{0, first_rows, first_rows + 1};
    constexpr size_t kStride = host::kVocabulary + 3;
    std::vector<float> logits(3 * kStride, 7), device_logits(3 * kStride, 7);
    reference.compute->logits(host::kX, wanted, host::kNorm, 1e-6f, host::kLogits, logits.data(), kStride);
    device.logits(host::kX, wanted, host::kNorm, 1e-6f, host::kLogits, device_logits.data(), kStride);
    ASSERT_TRUE(device.finish());
    EXPECT_TRUE(same_bits(logits, device_logits));
  }
}

// A cache of few slots, driven at random: hits, uploads, the CPU and promotions in one sum.
TEST_P(Operations, AnyPlacementGivesTheSameBits) {
  host::Reference reference(model());
  for (const uint32_t slots : {2u, 5u}) {
    Device& device = ready_with(model(), slots);
    const auto runner = std::make_unique<host::RandomRunner>(device, model(), slots, slots);
    device.set_runner(runner.get());
    for (uint32_t i = 0; i < 24; ++i) {
      const host::TestStep step(1 + i % 5, i % 3, i);
      const auto nothing = [](BufferId) {};
      host::run_all(*reference.compute, model(), step.step(), host::kLayers, nothing);
      host::run_all(device, model(), step.step(), host::kLayers, nothing);
      std::vector<float> rows(step.tokens.size() * host::kHidden);
      device.read_buffer(host::kX, rows.data());
      const auto finished = device.finish();
      ASSERT_TRUE(finished) << finished.error().message;
      ASSERT_TRUE(same_bits(reference.rows(host::kX), rows)) << "step " << i << ", " << slots << " slots";
    }
    EXPECT_GT(runner->hit, 0u);
    EXPECT_GT(runner->upload, 0u);
    EXPECT_GT(runner->cpu, 0u);
    EXPECT_GT(runner->promoted, 0u);
    // Time stamps: a point's work ends after it began, and points follow one another.
    for (const Point point : runner->points) {
      if (!device.reached(point)) continue;
      const Interval interval = device.interval(point);
      EXPECT_GT(interval.end_ns, 0u);
      EXPECT_GE(interval.end_ns, interval.begin_ns);
    }
  }
}

TEST_P(Operations, NothingRunsBeforeItIsHandedOver) {
  Device& device = ready_with(model(), 1);
  const host::TestStep step(7, 0);
  Random random(3);
  const std::vector<float> x = random.values(7 * host::kHidden);
  device.begin(step.step());
  device.write_buffer(host::kNormed, x.data());
  std::vector<float> rows(x.size(), -1.0f);
  device.read_buffer(host::kNormed, rows.data());
  const Point behind = device.mark();
  const Point copy = device.copy_expert(0, 0, model().expert(0, 0), behind);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(device.reached(behind));
  EXPECT_FALSE(device.reached(copy));
  EXPECT_TRUE(device.reached({}));
  EXPECT_EQ(rows[0], -1.0f);
  device.stream_wait(copy);
  device.write_buffer(host::kNormed, x.data());
  EXPECT_TRUE(device.wait(copy));
  EXPECT_TRUE(device.reached(copy));
  EXPECT_TRUE(device.reached(behind));
  EXPECT_TRUE(device.finish());
  EXPECT_TRUE(same_bits(x, rows));
}

TEST_P(Operations, PagesAreCopied) {
  Device& device = ready_with(model(), host::kLayers * host::kExperts);
  const auto runner = std::make_unique<host::ResidentRunner>(device, model());
  device.set_runner(runner.get());
  const host::TestStep step(6, 0);
  const auto nothing = [](BufferId) {};
  host::run_all(device, model(), step.step(), host::kLayers, nothing);
  device.copy_kv_page(2, 4);
  std::vector<float> results[2];
  const std::vector<uint32_t> pages[] = {{2}, {4}};
  host::TestStep next(1, 0);
  next.positions[0] = 6;
  for (int i = 0; i < 2; ++i) {
    next.pieces[0] = {0, 1, 6, pages[i]};
    host::run_all(device, model(), next.step(), host::kLayers, nothing);
    results[i].resize(host::kHidden);
    device.read_buffer(host::kX, results[i].data());
    ASSERT_TRUE(device.finish());
  }
  EXPECT_TRUE(same_bits(results[0], results[1]));
}

// Copies from pinned memory go without staging, and bring the same.
TEST_P(Operations, PinnedMemory) {
  Device& device = ready_with(model(), host::kExperts);
  std::string why_not;
  uint64_t pinned = 0, wanted = 0;
  for (uint32_t e = 0; e < host::kExperts; ++e)
    for (const Matrix& m : {model().expert(0, e).gate, model().expert(0, e).up, model().expert(0, e).down}) {
      const size_t bytes = m.groups() * 16 * row_bytes(m.type, m.cols);
      wanted += bytes;
      pinned += device.pin({m.data, bytes}, &why_not);
    }
  EXPECT_EQ(pinned, wanted) << why_not;
  Point last;
  for (uint32_t e = 0; e < host::kExperts; ++e) {
    last = device.copy_expert(0, e, model().expert(0, e), {});
    device.set_slot(0, e, e);
  }
  device.stream_wait(last);
  const host::TestStep step(7, 0);
  Random random(3);
  const std::vector<float> x = random.values(7 * host::kHidden);
  device.begin(step.step());
  device.write_buffer(host::kNormed, x.data());
  const MoeSpec spec = model().moe(0);
  device.route(host::kNormed, spec, Device::ForHost::kLater);
  device.experts_in_table(host::kNormed, spec);
  device.combine(spec, host::kBranch);
  std::vector<float> rows(x.size());
  device.read_buffer(host::kBranch, rows.data());
  ASSERT_TRUE(device.finish());
  host::Reference reference(model());
  reference.compute->begin(step.step());
  std::ranges::copy(x, reference.compute->buffer_rows(host::kNormed).begin());
  reference.compute->moe(host::kNormed, spec, host::kBranch);
  EXPECT_TRUE(same_bits(reference.rows(host::kBranch), rows));
  EXPECT_TRUE(std::ranges::equal(device.chosen(0), reference.compute->expert_input(host::kNormed, spec).ids));
}

// An expert larger than the staging memory (16 MiB) arrives in several pieces.
TEST_P(Operations, LargeExperts) {
  constexpr uint32_t kWide = 1600;
  Random random(9);
  const TestMatrix gate = random_matrix(random, TensorType::kF32, kWide, kWide),
                   up = random_matrix(random, TensorType::kF32, kWide, kWide),
                   down = random_matrix(random, TensorType::kF32, kWide, kWide),
                   router = random_matrix(random, TensorType::kF32, 2, kWide);
  DeviceSpec spec = small_spec({kWide, kWide}, 1);
  spec.weights = {router.shape()};
  spec.pools = {{{gate.shape(), up.shape(), down.shape()}, 1}};
  spec.layers = {{.on_device = true, .pool = 0, .n_experts = 2}};
  spec.sizes.experts = 2;
  spec.sizes.max_experts_used = 1;
  spec.sizes.expert_width = kWide;
  const auto& [layout, link] = GetParam();
  Device& device = ready(spec, link);
  ASSERT_TRUE(device.upload(0, router.in_file()));
  const auto matrix = [&](const TestMatrix& m) {
    return layout == Layout::kFile ? m.in_file() : m.in_groups();
  };
  const TestStep step(1);
  const std::vector<float> x = random.values(kWide);
  const MoeSpec moe{.routing = {.gating = numerics::Gating::kSoftmaxOfTopK, .n_experts = 2, .n_used = 1},
                    .router = 0};
  device.begin(step.step());
  device.write_buffer(0, x.data());
  device.route(0, moe, Device::ForHost::kNow);
  const Point routed = device.mark();
  ASSERT_TRUE(device.wait(routed));
  const uint32_t chosen = device.routed().ids[0];
  const Point arrived = device.copy_expert(0, 0, {matrix(gate), matrix(up), matrix(down)}, routed);
  device.stream_wait(arrived);
  const ExpertSlot slot = {chosen, 0};
  device.experts_in_slots(0, moe, {&slot, 1});
  device.combine(moe, 1);
  std::vector<float> got(kWide);
  device.read_buffer(1, got.data());
  const auto finished = device.finish();
  ASSERT_TRUE(finished) << finished.error().message;
  std::vector<float> hidden = reference_product(gate, x, 1, kWide);
  const std::vector<float> upper = reference_product(up, x, 1, kWide);
  cpu::kernels(cpu::InstructionSet::kScalar).silu_mul(hidden.data(), upper.data(), kWide);
  const std::vector<float> out = reference_product(down, hidden, 1, kWide);
  std::vector<float> expected(kWide);
  // The softmax of a single logit: exp(0) times reciprocal(1).
  const float weight = numerics::exp(0.0f) * numerics::reciprocal(1.0f);
  cpu::kernels(cpu::InstructionSet::kScalar).add_scaled(expected.data(), out.data(), weight, kWide);
  EXPECT_TRUE(same_bits(expected, got));
}

INSTANTIATE_TEST_SUITE_P(All, Operations,
                         testing::Values(std::tuple(Layout::kInterleaved, Link::kInStream),
                                         std::tuple(Layout::kFile, Link::kBeside)),
                         [](const testing::TestParamInfo<Operations::ParamType>& param) {
                           return std::get<1>(param.param) == Link::kBeside ? "Beside" : "InStream";
                         });

}  // namespace
}  // namespace spillway::vulkan
