#include "tune/probe_simulated.h"

#include <algorithm>
#include <cmath>

namespace spillway::tune {
namespace {

constexpr double kBytesPerUs = 1000;  // of 1 GB/s
constexpr uint32_t kHidden = 2048, kWidth = 768;

}  // namespace

double SimulatedTarget::noisy(double us) {
  std::normal_distribution<double> normal(0.0, m_.noise);
  std::uniform_real_distribution<double> uniform;
  const double factor = std::max(0.5, 1 + normal(random_));
  const bool outlier = m_.noise > 0 && uniform(random_) < 0.05;
  return us * factor * (outlier ? 1 + 2 * uniform(random_) : 1);
}

double SimulatedTarget::spend(double us) {
  const double took = noisy(us);
  clock_.advance_ns(static_cast<uint64_t>(took * 1000));
  return took;
}

double SimulatedTarget::by_threads(double rate, uint32_t threads) const {
  return rate * std::sqrt(static_cast<double>(std::min(threads, m_.threads)) / m_.threads);
}

uint64_t SimulatedTarget::cpu_expert_bytes(TensorType type) const {
  return 2 * kWidth * row_bytes(type, kHidden) + kHidden * row_bytes(type, kWidth);
}

std::vector<uint64_t> SimulatedTarget::copy_sizes(Direction) const { return {100'000, 450'000, 3'500'000}; }

std::vector<uint64_t> SimulatedTarget::device_expert_sizes() const { return {450'000, 3'500'000}; }

double SimulatedTarget::exact_cpu_us(const CpuLoad& load) const {
  const double bytes = static_cast<double>(cpu_expert_bytes(load.type)) * load.experts;
  const double rate = by_threads(m_.cpu_gb_s, load.threads) * kBytesPerUs;
  return load.regions * (m_.region_us + bytes / rate * std::max(1.0, load.tokens / m_.cpu_tokens));
}

double SimulatedTarget::exact_copy_us(const CopyLoad& load) const {
  const double rate = load.direction == Direction::kDown     ? m_.down_gb_s
                      : load.memory == HostMemory::kPageable ? m_.pageable_gb_s
                                                             : m_.link_gb_s;
  const auto bytes = static_cast<double>(copy_sizes(load.direction)[load.size]);
  return m_.wait_us + load.copies * (m_.copy_us + bytes / (rate * kBytesPerUs));
}

Result<double> SimulatedTarget::read_us(uint32_t threads) {
  return spend(static_cast<double>(read_bytes()) / (by_threads(m_.dram_gb_s, threads) * kBytesPerUs));
}

Result<double> SimulatedTarget::cpu_us(const CpuLoad& load) { return spend(exact_cpu_us(load)); }
Result<double> SimulatedTarget::copy_us(const CopyLoad& load) { return spend(exact_copy_us(load)); }

Result<double> SimulatedTarget::device_us(const DeviceLoad& load) {
  const auto bytes = static_cast<double>(device_expert_sizes()[load.size]);
  const double each = bytes / (m_.device_gb_s * kBytesPerUs) * std::max(1.0, load.tokens / m_.device_tokens) +
                      m_.device_expert_us;
  return spend(m_.wait_us + load.operations * (m_.operation_us + load.experts * each));
}

Result<double> SimulatedTarget::wait_us(Wait what) {
  switch (what) {
    case Wait::kPool:
      return spend(m_.wake_us);
    case Wait::kDevice:
      return spend(m_.wait_us);
    case Wait::kHandOver:
      return spend(m_.hand_over_us);
    case Wait::kPlanned:
      return spend(m_.operation_us + m_.layer_us);
    case Wait::kResident:
      break;
  }
  return spend(m_.operation_us);
}

Result<BothTimes> SimulatedTarget::both_us(const CpuLoad& cpu, const CopyLoad& copy) {
  const double cpu_slower = m_.cpu_gb_s / m_.cpu_contended_gb_s;
  const double link_slower = m_.link_gb_s / m_.link_contended_gb_s;
  const double cpu_alone = noisy(exact_cpu_us(cpu)), link_alone = noisy(exact_copy_us(copy));
  BothTimes times{cpu_alone * cpu_slower, link_alone * link_slower};
  if (times.cpu_us <= times.link_us)
    times.link_us = times.cpu_us + (link_alone - times.cpu_us / link_slower);
  else
    times.cpu_us = times.link_us + (cpu_alone - times.link_us / cpu_slower);
  // The host looks at the link when its own work is done.
  times.link_us = std::max(times.link_us, times.cpu_us);
  clock_.advance_ns(static_cast<uint64_t>(times.link_us * 1000));
  return times;
}

}  // namespace spillway::tune
