// The start-up self-test: devices that keep the promise pass, and a device that is wrong in one bit does not.
#include "backend/self_test.h"

#include "backend/host/host_device.h"
#include "numerics/all_types.h"
#include "numerics/float_bits.h"
#include "vulkan/rig.h"

namespace spillway::vulkan {
namespace {

SelfTestOptions everything(KvTypes kv_types = {}) {
  return {{numerics::kAllTypes.begin(), numerics::kAllTypes.end()}, kv_types};
}

TEST_F(Rig, PassesTheSelfTest) {
  for (const KvTypes& kv_types : {KvTypes{}, KvTypes{KvType::kF32, KvType::kF32}}) {
    const auto device = open();
    const auto faults = self_test(*device, everything(kv_types));
    ASSERT_TRUE(faults) << faults.error().message;
    for (const std::string& fault : *faults) ADD_FAILURE() << fault;
  }
}

// Everything as the host device does it, but for one bit of the n-th result that is read.
class WrongInOneBit final : public Device {
 public:
  explicit WrongInOneBit(uint32_t wrong) : wrong_(wrong), device_(std::move(*open_host({}))) {}
  const DeviceInfo& info() const override { return device_->info(); }
  DeviceBytes bytes(const DeviceSpec& spec) const override { return device_->bytes(spec); }
  Result<void> prepare(const DeviceSpec& spec) override { return device_->prepare(spec); }
  uint64_t pin(std::span<const std::byte> range, std::string* why) override {
    return device_->pin(range, why);
  }
  Result<void> upload(WeightId id, const Matrix& from) override { return device_->upload(id, from); }
  void submit() override { device_->submit(); }
  Point mark() override { return device_->mark(); }
  void stream_wait(Point p) override { device_->stream_wait(p); }
  bool reached(Point p) override { return device_->reached(p); }
  Result<void> wait(Point p) override { return device_->wait(p); }
  Interval interval(Point p) override { return device_->interval(p); }
  Point copy_expert(uint32_t pool, uint32_t slot, const ExpertMatrices& from, Point after) override {
    return device_->copy_expert(pool, slot, from, after);
  }
  void set_slot(uint32_t l, uint32_t e, uint32_t s) override { device_->set_slot(l, e, s); }
  void route(BufferId x, const MoeSpec& s, ForHost f) override { device_->route(x, s, f); }
  Routed routed() override { return device_->routed(); }
  std::span<const uint32_t> chosen(uint32_t l) override { return device_->chosen(l); }
  void experts_in_table(BufferId x, const MoeSpec& s) override { device_->experts_in_table(x, s); }
  void experts_in_slots(BufferId x, const MoeSpec& s, std::span<const ExpertSlot> e) override {
    device_->experts_in_slots(x, s, e);
  }
  void take_outputs(const MoeSpec& s, std::span<const uint32_t> p, const float* r) override {
    device_->take_outputs(s, p, r);
  }
  void combine(const MoeSpec& s, BufferId out) override { device_->combine(s, out); }
  void copy_kv_page(uint32_t from, uint32_t to) override { device_->copy_kv_page(from, to); }
  void write_buffer(BufferId id, const float* from) override { device_->write_buffer(id, from); }
  void read_buffer(BufferId id, float* to) override {
    device_->read_buffer(id, to);
    if (++reads_ == wrong_) spoiled_ = to + 1;
  }
  void begin(const Step& step) override { device_->begin(step); }
  void embed(WeightId table, BufferId out) override { device_->embed(table, out); }
  void rms_norm(BufferId x, uint32_t n, WeightId w, float e, BufferId y) override {
    device_->rms_norm(x, n, w, e, y);
  }
  void head_norm(BufferId x, uint32_t h, uint32_t n, WeightId w, float e) override {
    device_->head_norm(x, h, n, w, e);
  }
  void linear(BufferId x, std::span<const Linear> t) override { device_->linear(x, t); }
  void rope(BufferId x, const RopeSpec& s) override { device_->rope(x, s); }
  void store_kv(BufferId k, BufferId v, const AttentionSpec& s) override { device_->store_kv(k, v, s); }
  void attention(BufferId q, const AttentionSpec& s, BufferId out) override { device_->attention(q, s, out); }
  void silu_mul(BufferId g, BufferId u, uint32_t n) override { device_->silu_mul(g, u, n); }
  void add(BufferId y, BufferId x, uint32_t n) override { device_->add(y, x, n); }
  void add_gated(BufferId y, BufferId x, BufferId g, uint32_t n) override { device_->add_gated(y, x, g, n); }
  void logits(BufferId x, std::span<const uint32_t> rows, WeightId norm, float e, WeightId output, float* out,
              size_t stride) override {
    device_->logits(x, rows, norm, e, output, out, stride);
  }
  Result<void> finish() override {
    auto done = device_->finish();
    if (spoiled_ != nullptr) *spoiled_ = numerics::float_of(numerics::bits_of(*spoiled_) ^ 1u);
    spoiled_ = nullptr;
    return done;
  }
  uint32_t reads() const { return reads_; }

 private:
  const uint32_t wrong_;
  std::unique_ptr<Device> device_;
  uint32_t reads_ = 0;
  float* spoiled_ = nullptr;
};

TEST(SelfTest, FindsEveryWrongBit) {
  WrongInOneBit right(UINT32_MAX);
  auto faults = self_test(right, everything());
  ASSERT_TRUE(faults) << faults.error().message;
  for (const std::string& fault : *faults) ADD_FAILURE() << fault;
  ASSERT_EQ(right.reads(), 2 * numerics::kAllTypes.size() + 3);
  for (const uint32_t wrong : {1u, 9u, 20u, right.reads() - 2, right.reads() - 1, right.reads()}) {
    WrongInOneBit device(wrong);
    faults = self_test(device, everything());
    ASSERT_TRUE(faults);
    EXPECT_EQ(faults->size(), 1u) << "result " << wrong;
  }
}

}  // namespace
}  // namespace spillway::vulkan
