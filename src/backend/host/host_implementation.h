// The pretended device itself (host_device.h says what it is). Fields say which thread may touch them.
#pragma once

#include <memory>
#include <vector>

#include "backend/cpu/cpu_compute.h"
#include "backend/host/host_device.h"
#include "backend/host/host_memory.h"
#include "backend/host/host_queues.h"
#include "backend/host/slot_watch.h"

namespace spillway::backend {

class HostDevice final : public Device {
 public:
  HostDevice(const HostDeviceOptions& options, DeviceInfo info, const cpu::Kernels& kernels,
             std::unique_ptr<sys::ThreadPool> pool, std::unique_ptr<HostQueues> queues);

  const DeviceInfo& info() const override { return info_; }

  // host_load.cc (and copy_expert)
  DeviceBytes bytes(const DeviceSpec& spec) const override;
  Result<void> prepare(const DeviceSpec& spec) override;
  uint64_t pin(std::span<const std::byte> range, std::string* why_not) override;
  Result<void> upload(WeightId id, const Matrix& from) override;

  void submit() override { queues_->submit(); }
  Point mark() override { return queues_->mark(); }
  void stream_wait(Point link_point) override { queues_->stream_wait(link_point); }
  bool reached(Point point) override { return queues_->reached(point); }
  Result<void> wait(Point point) override { return queues_->wait(point); }
  Interval interval(Point point) override { return queues_->interval(point); }
  Result<void> finish() override { return queues_->finish(); }

  // host_experts.cc
  Point copy_expert(uint32_t pool, uint32_t slot, const ExpertMatrices& from, Point after) override;
  void set_slot(uint32_t layer, uint32_t expert, uint32_t slot) override;
  void route(BufferId x, const MoeSpec& spec, ForHost for_host) override;
  Routed routed() override;
  std::span<const uint32_t> chosen(uint32_t layer) override { return chosen_[layer]; }
  void experts_in_table(BufferId x, const MoeSpec& spec) override;
  void experts_in_slots(BufferId x, const MoeSpec& spec, std::span<const ExpertSlot> experts) override;
  void take_outputs(const MoeSpec& spec, std::span<const uint32_t> pairs, const float* rows) override;
  void combine(const MoeSpec& spec, BufferId out) override;

  // host_operations.cc
  void copy_kv_page(uint32_t from, uint32_t to) override;
  void write_buffer(BufferId id, const float* from) override;
  void read_buffer(BufferId id, float* to) override;
  void begin(const Step& step) override;
  void embed(WeightId table, BufferId out) override;
  void rms_norm(BufferId x, uint32_t width, WeightId weight, float epsilon, BufferId y) override;
  void head_norm(BufferId x, uint32_t heads, uint32_t head_length, WeightId weight, float epsilon) override;
  void linear(BufferId x, std::span<const Linear> targets) override;
  void rope(BufferId x, const RopeSpec& spec) override;
  void store_kv(BufferId key, BufferId value, const AttentionSpec& spec) override;
  void attention(BufferId q, const AttentionSpec& spec, BufferId out) override;
  void silu_mul(BufferId gate, BufferId up, uint32_t width) override;
  void add(BufferId y, BufferId x, uint32_t width) override;
  void add_gated(BufferId y, BufferId x, BufferId gate, uint32_t width) override;
  void logits(BufferId x, std::span<const uint32_t> rows, WeightId norm, float epsilon, WeightId output,
              float* out, size_t out_stride) override;

 private:
  // Enqueues body() as an operation that takes `work`.
  template <class Body>
  void enqueue(const Work& work, Body body) {
    queues_->enqueue([work, body = std::move(body)]() -> Result<Work> {
      body();
      return work;
    });
  }
  uint32_t rows() const { return step_.rows(); }
  // Loses the device where the weight was never uploaded.
  void need(WeightId id);
  Work product_work(WeightId id, uint64_t tokens) const;
  bool is_pinned(const Matrix& matrix) const;
  void copy_matrix(const Matrix& from, std::byte* to) const;

  // In the stream's thread.
  struct Reading {  // what the watch wants to know of an operation
    uint64_t operation;
    uint64_t after_copy;
  };
  Reading reading() const { return {queues_->next_operation(), queues_->copies_before_operation()}; }
  Result<Work> run_experts(BufferId x, const MoeSpec& spec, std::span<const ExpertSlot> experts,
                           Reading reading);
  Result<Work> run_combine(const MoeSpec& spec, BufferId out);
  void bring_to_host(BufferId x, const MoeSpec& spec);

  const HostDeviceOptions options_;
  const DeviceInfo info_;
  const cpu::Kernels& kernels_;
  const std::unique_ptr<sys::ThreadPool> pool_;

  // Fixed by prepare().
  DeviceSpec spec_;
  HostMemory memory_;
  std::unique_ptr<SlotWatch> watch_;

  // Of the engine's thread.
  Step step_;
  std::vector<bool> uploaded_;
  uint32_t allocations_ = 0;
  uint32_t uploads_ = 0;
  std::vector<std::span<const std::byte>> pinned_;
  uint64_t pinned_bytes_ = 0;
  struct {
    uint64_t operation = 0;  // the last route() that brought something; 0 = the last one did not
    uint32_t rows = 0;
    uint32_t used = 0;
  } routed_;

  // Of the stream's thread once prepare() is done.
  std::unique_ptr<cpu::CpuCompute> compute_;
  std::vector<std::vector<uint32_t>> tables_;  // by layer: the slot of each expert
  AlignedArray<float> outputs_;                // (max_rows * used, hidden), by pair
  std::vector<uint8_t> have_output_;           // by pair
  std::vector<uint8_t> is_chosen_;             // by expert, while an operation runs
  std::vector<ExpertSlot> in_table_;
  std::vector<cpu::ExpertPart> parts_;

  // Written by the stream, read by the engine after it waited.
  std::vector<uint32_t> routed_ids_;           // (max_rows, used)
  AlignedArray<float> routed_x_;               // (max_rows, hidden)
  std::vector<std::vector<uint32_t>> chosen_;  // by layer, (rows, used)

  const std::unique_ptr<HostQueues> queues_;  // last: its threads end before what they use
};

}  // namespace spillway::backend
