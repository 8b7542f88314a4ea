// This machine as a probe's target: the engine's CPU kernels and thread pools, its device and its link.
#pragma once

#include "sys/usage.h"
#include "tune/probe_cpu_bench.h"
#include "tune/probe_device_bench.h"
#include "tune/profile_file.h"

namespace spillway::tune {

struct MachineTargetOptions {
  uint32_t threads = 1;
  uint64_t memory_bytes = 0;  // to read from; 0: 512 MiB, or an eighth of what is free
  // The device's clock where it is a pretended one with a clock of its own; null: the real one. Outlives the
  // target.
  const sys::Clock* device_clock = nullptr;
};

class MachineTarget final : public ProbeTarget {
 public:
  // Null: without a device.
  static Result<std::unique_ptr<MachineTarget>> create(const MachineTargetOptions& options,
                                                       std::unique_ptr<backend::Device> device);

  double now_us() override { return static_cast<double>(clock_.now_ns()) / 1000; }
  uint32_t threads() const override { return cpu_->threads(); }
  uint64_t read_bytes() const override { return cpu_->read_bytes(); }
  uint32_t cpu_experts() const override { return CpuBench::kExperts; }
  uint32_t cpu_tokens() const override { return CpuBench::kTokens; }
  uint64_t cpu_expert_bytes(TensorType type) const override { return cpu_->expert_bytes(type); }
  double other_cores() override;
  Result<double> read_us(uint32_t threads) override { return cpu_->read_us(threads); }
  Result<double> cpu_us(const CpuLoad& load) override { return cpu_->experts_us(load); }

  bool has_device() const override { return device_ != nullptr; }
  bool software_device() const override { return device_->info().software; }
  std::string why_no_copies(HostMemory memory) const override { return device_->why_no_copies(memory); }
  std::vector<uint64_t> copy_sizes(Direction direction) const override {
    return device_->copy_sizes(direction);
  }
  std::vector<uint64_t> device_expert_sizes() const override { return device_->expert_sizes(); }
  uint32_t device_experts() const override { return DeviceBench::kExperts; }
  uint32_t device_tokens() const override { return device_->tokens(); }
  Result<double> copy_us(const CopyLoad& load) override { return device_->copy_us(load); }
  Result<double> device_us(const DeviceLoad& load) override { return device_->experts_us(load); }
  Result<double> wait_us(Wait what) override;
  Result<BothTimes> both_us(const CpuLoad& cpu, const CopyLoad& copy) override;

  const backend::DeviceInfo* device() const { return device_ ? &device_->info() : nullptr; }

 private:
  MachineTarget() = default;

  const sys::MonotonicClock clock_;
  sys::Usage usage_;
  double usage_us_ = 0;
  std::unique_ptr<CpuBench> cpu_;
  std::unique_ptr<DeviceBench> device_;  // after it, as it copies from the other's memory
};

// The limits that this process runs under.
MachineLimits read_machine_limits();

}  // namespace spillway::tune
