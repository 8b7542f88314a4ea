// The parts of a probe, in the order in which they run: later ones use what earlier ones found.
#pragma once

#include "tune/probe_meter.h"

namespace spillway::tune {

class ProbeSteps {
 public:
  ProbeSteps(ProbeTarget& target, Meter& meter, std::span<const TensorType> types, ProfileFile& file)
      : target_(target), meter_(meter), types_(types), file_(file) {}

  // Each uses its share of the time.
  Result<void> memory(double share);
  Result<void> cpu_kernels(double share);
  Result<void> wake(double share);
  Result<void> device_wait(double share);
  Result<void> link(double share);
  Result<void> device(double share);
  Result<void> waits(double share);
  Result<void> both(double share);
  void without_device();
  void finish();  // what follows from several

 private:
  void set(std::string_view name, experts::Quantity& quantity, const Sample& sample);
  void keep_default(std::string_view name, std::string why);
  std::vector<uint32_t> thread_counts() const;  // one, half and all
  Result<Sample> cpu_rate(double share, TensorType type, uint32_t threads, uint32_t tokens);
  Result<void> cpu_start(double share);
  Result<void> cpu_tokens(double share);
  Result<double> without_wait(Result<double> us) const;
  Result<void> link_of(double share, Direction direction, HostMemory memory);
  Result<Sample> device_time(double share, uint32_t size, uint32_t experts, uint32_t tokens);
  Result<void> device_tokens(double share, double bytes_us);
  Result<void> balance(double slice_us, CpuLoad& cpu, CopyLoad& copy);

  TensorType main_type() const { return types_.front(); }

  ProbeTarget& target_;
  Meter& meter_;
  const std::span<const TensorType> types_;
  ProfileFile& file_;
  double region_us_ = 0;     // fixed cost of a parallel region of experts
  double operation_us_ = 0;  // and of an operation of experts on the device
};

}  // namespace spillway::tune
