#include "tune/probe_machine.h"

#include "sys/cpu.h"
#include "sys/memory_limits.h"

namespace spillway::tune {
namespace {

// Beyond the last-level cache of any machine this runs on (the largest have 1 GiB; those read it in parts per
// thread); on a small machine an eighth of what is free, and at least what no small machine's cache holds.
constexpr uint64_t kArenaBytes = uint64_t{512} << 20, kLeastArenaBytes = uint64_t{64} << 20;

}  // namespace

Result<std::unique_ptr<MachineTarget>> MachineTarget::create(const MachineTargetOptions& options,
                                                             std::unique_ptr<backend::Device> device) {
  static const sys::MonotonicClock kRealClock;
  SW_ASSIGN(const sys::MemoryLimits limits, sys::read_memory_limits());
  const uint64_t bytes = options.memory_bytes != 0 ? std::max(options.memory_bytes, kLeastArenaBytes)
                                                   : std::clamp(limits.available_bytes / 8 >> 21 << 21,
                                                                kLeastArenaBytes, kArenaBytes);
  std::unique_ptr<MachineTarget> target(new MachineTarget());
  SW_ASSIGN(target->cpu_, CpuBench::create(options.threads, bytes));
  if (device) {
    SW_ASSIGN(target->device_,
              DeviceBench::create(std::move(device), *target->cpu_,
                                  options.device_clock ? *options.device_clock : kRealClock));
  }
  target->other_cores();
  return target;
}

double MachineTarget::other_cores() {
  const sys::Usage before = usage_;
  const double seconds = (now_us() - usage_us_) * 1e-6;
  usage_ = sys::read_usage();
  usage_us_ = now_us();
  const double busy = usage_.machine_cpu_s - before.machine_cpu_s;
  return std::max(0.0, (busy - (usage_.process_cpu_s - before.process_cpu_s)) / seconds);
}

Result<double> MachineTarget::wait_us(Wait what) {
  if (what == Wait::kPool) return cpu_->wake_us();
  return device_->wait_us(what);
}

Result<BothTimes> MachineTarget::both_us(const CpuLoad& cpu, const CopyLoad& copy) {
  BothTimes times;
  SW_ASSIGN(times.link_us, device_->copy_beside_us(copy, [&]() -> Result<void> {
    SW_ASSIGN(times.cpu_us, cpu_->experts_us(cpu));
    return {};
  }));
  return times;
}

MachineLimits read_machine_limits() {
  MachineLimits limits;
  if (const auto memory = sys::read_memory_limits()) limits.group_memory_bytes = memory->group_limit_bytes;
  if (const auto topology = sys::read_cpu_topology()) limits.group_cpus = topology->quota_cpus;
  limits.locked_bytes = sys::locked_memory_limit();
  return limits;
}

}  // namespace spillway::tune
