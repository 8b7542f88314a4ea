// A machine of set rates for the probe's tests: every time is worked out from them, then made noisy from a
// seed, and a clock of its own goes on by it.
#pragma once

#include <random>

#include "sys/clock.h"
#include "tune/probe_target.h"

namespace spillway::tune {

// Rates in GB/s, times in microseconds, as in experts/profile.h. Overlapping work follows the rule of
// experts/cost_model.h: both go at their contended rate until one is done.
struct SimulatedMachine {
  uint32_t threads = 8;
  double dram_gb_s = 42, cpu_gb_s = 36, cpu_tokens = 4, region_us = 5, wake_us = 8;
  double link_gb_s = 12, pageable_gb_s = 6, down_gb_s = 11, copy_us = 5;
  double cpu_contended_gb_s = 30, link_contended_gb_s = 12;
  double device_gb_s = 300, device_tokens = 16, device_expert_us = 2, operation_us = 6;
  double wait_us = 12, hand_over_us = 3, layer_us = 20;
  bool device = true;
  // A time is off by this share (standard deviation), and one of twenty is up to three times as long.
  double noise = 0.03;
  uint64_t seed = 1;
  double other_cores = 0;
};

class SimulatedTarget final : public ProbeTarget {
 public:
  explicit SimulatedTarget(const SimulatedMachine& machine) : m_(machine), random_(machine.seed) {}

  double now_us() override { return static_cast<double>(clock_.now_ns()) / 1000; }
  uint32_t threads() const override { return m_.threads; }
  uint64_t read_bytes() const override { return uint64_t{32} << 20; }
  uint32_t cpu_experts() const override { return 8; }
  uint32_t cpu_tokens() const override { return 32; }
  uint64_t cpu_expert_bytes(TensorType type) const override;
  double other_cores() override { return m_.other_cores; }
  Result<double> read_us(uint32_t threads) override;
  Result<double> cpu_us(const CpuLoad& load) override;

  bool has_device() const override { return m_.device; }
  bool software_device() const override { return false; }
  std::string why_no_copies(HostMemory) const override { return {}; }
  std::vector<uint64_t> copy_sizes(Direction) const override;
  std::vector<uint64_t> device_expert_sizes() const override;
  uint32_t device_experts() const override { return 8; }
  uint32_t device_tokens() const override { return 64; }
  Result<double> copy_us(const CopyLoad& load) override;
  Result<double> device_us(const DeviceLoad& load) override;
  Result<double> wait_us(Wait what) override;
  Result<BothTimes> both_us(const CpuLoad& cpu, const CopyLoad& copy) override;

 private:
  // Work that takes `us` without noise is done; how long it seems to have taken.
  double spend(double us);
  double noisy(double us);
  // Few threads reach less: half of them, three quarters.
  double by_threads(double rate, uint32_t threads) const;
  double exact_cpu_us(const CpuLoad& load) const;
  double exact_copy_us(const CopyLoad& load) const;

  const SimulatedMachine m_;
  sys::FakeClock clock_;
  std::mt19937_64 random_;
};

}  // namespace spillway::tune
