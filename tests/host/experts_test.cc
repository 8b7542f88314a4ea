// The MoE layer taken apart: tables, slots, outputs from elsewhere, and a cache that is driven at random with
// the waits that it needs.
#include <set>
#include <thread>

#include "host/fixture.h"

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
  device->route(kNormed, model.moe(1), Device::ForHost::kYes);
  ASSERT_TRUE(device->wait(device->mark()));
  const Routed routed = device->routed();
  expected(1);
  const cpu::ExpertInput input = reference.compute->expert_input(kNormed, model.moe(1));
  EXPECT_TRUE(std::ranges::equal(routed.ids, input.ids));
  EXPECT_TRUE(same_bits(x, routed.x));
}

// Some experts by the table, some by slots, the rest on the CPU.
TEST_F(HostExperts, ThreeWaysGiveOneSum) {
  const auto device = ready_device(model, kExperts);
  cpu::ExpertCompute on_cpu(*reference.pool, cpu::kernels(cpu::InstructionSet::kScalar), Model::sizes(), {});
  for (int round = 0; round < 6; ++round) {
    const uint32_t layer = round % kLayers;
    begin(*device);
    const MoeSpec spec = model.moe(layer);
    device->route(kNormed, spec, Device::ForHost::kYes);
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

// A cache of few slots, driven as an engine would: what is missing is uploaded into a victim's slot or
// computed on the CPU, at random; now and then an expert is promoted in the background.
class RandomRunner final : public ExpertRunner {
 public:
  RandomRunner(Device& device, const Model& model, uint32_t slots, uint64_t seed)
      : device_(device),
        model_(model),
        random_(seed),
        pool_(*sys::ThreadPool::create(1)),
        on_cpu_(*pool_, cpu::kernels(cpu::best_instruction_set()), Model::sizes(), {}),
        slots_(slots) {}

  void moe(BufferId x, const MoeSpec& spec, BufferId out) override {
    device_.route(x, spec, Device::ForHost::kYes);
    const Point routed_point = device_.mark();
    EXPECT_TRUE(device_.wait(routed_point));
    take_promotion();
    const Routed routed = device_.routed();
    const std::set<uint32_t> chosen(routed.ids.begin(), routed.ids.end());
    std::vector<cpu::ExpertPart> by_cpu;
    std::vector<ExpertSlot> hits, uploaded;
    Point last_copy;
    for (const uint32_t e : chosen) {
      if (const auto slot = find(spec.layer, e)) {
        hits.push_back({e, *slot});
        continue;
      }
      const auto slot =
          random_() % 2 == 0 && !is_on_its_way(spec.layer, e) ? victim(spec.layer, chosen) : std::nullopt;
      if (!slot) {
        by_cpu.push_back({e, model_.expert(spec.layer, e)});
        continue;
      }
      last_copy = put(*slot, spec.layer, e, routed_point);
      uploaded.push_back({e, *slot});
    }
    hit += static_cast<uint32_t>(hits.size());
    if (random_() % 2 == 0)
      device_.experts_in_slots(x, spec, hits);
    else
      device_.experts_in_table(x, spec);  // it knows the hits, and not yet what was just assigned
    device_.submit();
    const uint32_t rows = static_cast<uint32_t>(routed.ids.size()) / kUsed;
    on_cpu_.run({.x = routed.x.data(), .x_stride = kHidden, .rows = rows, .used = kUsed, .ids = routed.ids},
                by_cpu);
    cpu += static_cast<uint32_t>(by_cpu.size());
    device_.take_outputs(spec, on_cpu_.pairs(), on_cpu_.outputs());
    device_.stream_wait(last_copy);
    device_.experts_in_slots(x, spec, uploaded);
    for (const ExpertSlot& e : uploaded) device_.set_slot(spec.layer, e.expert, e.slot);
    device_.combine(spec, out);
    if (random_() % 3 == 0) promote(spec.layer, static_cast<uint32_t>(random_() % kExperts));
  }

  uint32_t hit = 0, upload = 0, cpu = 0, promoted = 0;

 private:
  struct Slot {
    uint32_t layer = UINT32_MAX, expert = 0;
    bool filling = false;
  };

  std::optional<uint32_t> find(uint32_t layer, uint32_t expert) const {
    for (uint32_t s = 0; s < slots_.size(); ++s)
      if (slots_[s].layer == layer && slots_[s].expert == expert && !slots_[s].filling) return s;
    return std::nullopt;
  }

  bool is_on_its_way(uint32_t layer, uint32_t expert) const {
    return promotion_slot_ && slots_[*promotion_slot_].layer == layer &&
           slots_[*promotion_slot_].expert == expert;
  }

  // Neither one that this layer needs nor one on its way.
  std::optional<uint32_t> victim(uint32_t layer, const std::set<uint32_t>& chosen) {
    const uint32_t s = static_cast<uint32_t>(random_() % slots_.size());
    if (slots_[s].filling) return std::nullopt;
    if (slots_[s].layer == layer && chosen.contains(slots_[s].expert)) return std::nullopt;
    return s;
  }

  Point put(uint32_t s, uint32_t layer, uint32_t expert, Point after) {
    if (slots_[s].layer != UINT32_MAX) device_.set_slot(slots_[s].layer, slots_[s].expert, Device::kNoSlot);
    slots_[s] = {layer, expert, false};
    ++upload;
    return device_.copy_expert(0, s, model_.expert(layer, expert), after);
  }

  void promote(uint32_t layer, uint32_t expert) {
    if (promotion_slot_ || find(layer, expert)) return;  // one at a time
    const auto slot = victim(UINT32_MAX, {});
    if (!slot) return;
    if (slots_[*slot].layer != UINT32_MAX)
      device_.set_slot(slots_[*slot].layer, slots_[*slot].expert, Device::kNoSlot);
    slots_[*slot] = {layer, expert, true};
    promotion_slot_ = slot;
    promotion_ = device_.copy_expert(0, *slot, model_.expert(layer, expert), device_.mark());
    device_.submit();
  }

  void take_promotion() {
    if (!promotion_slot_ || !device_.reached(promotion_)) return;
    Slot& slot = slots_[*promotion_slot_];
    slot.filling = false;
    device_.set_slot(slot.layer, slot.expert, *promotion_slot_);
    promotion_slot_.reset();
    ++promoted;
  }

  Device& device_;
  const Model& model_;
  std::mt19937_64 random_;
  std::unique_ptr<sys::ThreadPool> pool_;
  cpu::ExpertCompute on_cpu_;
  std::vector<Slot> slots_;
  std::optional<uint32_t> promotion_slot_;
  Point promotion_;
};

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

}  // namespace
}  // namespace spillway::backend
