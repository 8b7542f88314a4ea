#include "experts/cost_model.h"

#include <algorithm>

#include "experts/arithmetic.h"

namespace spillway {
namespace experts {
namespace {

constexpr double kBytesPerUs = 1000.0;  // of 1 GB/s
// An average of about the last 32 observations: a token of a 48-layer model gives up to 48 of them.
constexpr double kRate = 1.0 / 32;
constexpr double kMostSlowdown = 16.0;
constexpr double kMostLayerUs = 10000.0;

// The link keeps its rate and the CPU gets the rest, but each at least a tenth of its lone rate.
double contended(double given, double alone, double rest) {
  if (given > 0.0) return given;
  return std::clamp(rest, alone / 10, alone);
}

uint32_t bucket_of(uint32_t tokens) { return std::min(16u, floor_log2(std::max(tokens, 1u))); }

double us(uint64_t ns) { return static_cast<double>(ns) / 1000.0; }

}  // namespace

void CostModel::Average::follow(double ratio) {
  ++n;
  const double rate = std::max(kRate, 1.0 / static_cast<double>(n + 1));
  factor = std::clamp(factor * (1.0 + rate * (std::clamp(ratio, 0.5, 2.0) - 1.0)), 1.0 / 32, 32.0);
}

double CostModel::ByTokens::factor(uint32_t tokens) const {
  const Average& average = bucket[bucket_of(tokens)];
  return average.n > 0 ? average.factor : all.factor;
}

void CostModel::ByTokens::follow(std::span<const uint32_t> tokens, double ratio) {
  uint32_t seen = 0;
  for (const uint32_t n : tokens) seen |= 1u << bucket_of(n);
  for (uint32_t i = 0; i < kBuckets; ++i) {
    if ((seen >> i & 1) == 0) continue;
    if (bucket[i].n == 0) bucket[i].factor = all.factor;
    bucket[i].follow(ratio);
  }
  all.follow(ratio);
}

CostModel::CostModel(const HardwareProfile& p)
    : device_bytes_per_us_(p.device_gb_s.value * kBytesPerUs),
      cpu_bytes_per_us_(std::min(p.cpu_gb_s.value, p.dram_gb_s.value) * kBytesPerUs),
      link_bytes_per_us_(std::min(p.link_gb_s.value, p.dram_gb_s.value) * kBytesPerUs),
      cpu_tokens_(p.cpu_tokens.value),
      device_tokens_(p.device_tokens.value),
      cpu_start_us_(p.cpu_start_us.value),
      copy_us_(p.copy_us.value),
      device_expert_us_(p.device_expert_us.value),
      layer_us_(p.layer_us.value) {
  const double dram = p.dram_gb_s.value * kBytesPerUs;
  const double link =
      contended(p.link_contended_gb_s.value * kBytesPerUs, link_bytes_per_us_, link_bytes_per_us_);
  const double cpu = contended(p.cpu_contended_gb_s.value * kBytesPerUs, cpu_bytes_per_us_, dram - link);
  cpu_slowdown_ = std::max(1.0, cpu_bytes_per_us_ / cpu);
  link_slowdown_ = std::max(1.0, link_bytes_per_us_ / link);
}

double CostModel::cpu_us(uint64_t bytes, uint32_t tokens) const {
  return static_cast<double>(bytes) / cpu_bytes_per_us_ * std::max(1.0, tokens / cpu_tokens_) *
         cpu_.factor(tokens);
}

double CostModel::device_us(uint64_t bytes, uint32_t tokens) const {
  return (static_cast<double>(bytes) / device_bytes_per_us_ * std::max(1.0, tokens / device_tokens_) +
          device_expert_us_) *
         device_.factor(tokens);
}

double CostModel::link_us(uint64_t bytes) const {
  return (static_cast<double>(bytes) / link_bytes_per_us_ + copy_us_) * link_.factor;
}

CostModel::Overlap CostModel::overlap(double cpu, double link) const {
  if (cpu == 0.0 || link == 0.0) return {cpu, link};
  const double cpu_all = cpu * cpu_slowdown_;
  const double link_all = link * link_slowdown_;
  if (link_all <= cpu_all) return {link_all + (cpu - link_all / cpu_slowdown_), link_all};
  return {cpu_all, cpu_all + (link - cpu_all / link_slowdown_)};
}

Times CostModel::finish(const Work& work) const {
  const Overlap both = overlap(work.cpu_us, work.link_us);
  Times times;
  times.link_us = both.link_us;
  times.cpu_us = work.cpu_us > 0.0 ? both.cpu_us + cpu_start_us_ : 0.0;
  times.device_us =
      work.link_us > 0.0 ? std::max(work.device_us, both.link_us + work.last_upload_us) : work.device_us;
  times.total_us = std::max({times.device_us, times.link_us, times.cpu_us}) + (work.waits ? layer_us_ : 0.0);
  return times;
}

void CostModel::learn(const Work& work, std::span<const uint32_t> cpu_tokens,
                      std::span<const uint32_t> device_tokens, const Observation& seen) {
  const Times predicted = finish(work);
  // What is below a microsecond says more about the clock than about the machine.
  const bool cpu = work.cpu_us > 1.0 && seen.cpu_ns > 1000;
  const bool link = work.link_us > 1.0 && seen.link_ns > 1000;
  const double cpu_seen = std::max(us(seen.cpu_ns) - cpu_start_us_, 0.0);
  const double cpu_predicted = predicted.cpu_us - cpu_start_us_;
  if (cpu && work.link_us == 0.0) cpu_.follow(cpu_tokens, cpu_seen / work.cpu_us);
  if (link && work.cpu_us == 0.0) link_.follow(us(seen.link_ns) / work.link_us);
  if (cpu && link) {
    // The resource that overlapped for at least half its time tells of its contended rate, the other one
    // mostly of its lone rate.
    ++n_contended_;
    const double overlapped = std::min(cpu_seen, us(seen.link_ns));
    const auto slow_down = [](double& slowdown, double ratio) {
      slowdown =
          std::clamp(slowdown * (1.0 + kRate * (std::clamp(ratio, 0.5, 2.0) - 1.0)), 1.0, kMostSlowdown);
    };
    if (overlapped * 2 >= cpu_seen) {
      slow_down(cpu_slowdown_, cpu_seen / cpu_predicted);
    } else {
      cpu_.follow(cpu_tokens, cpu_seen / cpu_predicted);
    }
    if (overlapped * 2 >= us(seen.link_ns)) {
      slow_down(link_slowdown_, us(seen.link_ns) / predicted.link_us);
    } else {
      link_.follow(us(seen.link_ns) / predicted.link_us);
    }
  }
  // The device's end tells of its own rate only where it did not wait for the link.
  if (work.device_us > 1.0 && seen.device_ns > 1000 && seen.device_ns > seen.link_ns &&
      predicted.device_us == work.device_us)
    device_.follow(device_tokens, us(seen.device_ns) / work.device_us);
  if (work.waits && seen.total_ns > 0) {
    const double rest = us(seen.total_ns) - us(std::max({seen.device_ns, seen.link_ns, seen.cpu_ns}));
    layer_us_ = std::clamp(layer_us_ + kRate * (std::clamp(rest, 0.0, 2.0 * layer_us_ + 10.0) - layer_us_),
                           0.0, kMostLayerUs);
  }
}

CostModel::Rates CostModel::rates() const {
  const double cpu = cpu_bytes_per_us_ / cpu_.factor(1) / kBytesPerUs;
  const double link = link_bytes_per_us_ / link_.factor / kBytesPerUs;
  return {device_bytes_per_us_ / device_.factor(1) / kBytesPerUs,
          cpu,
          link,
          cpu / cpu_slowdown_,
          link / link_slowdown_,
          layer_us_,
          device_.all.n,
          cpu_.all.n,
          link_.n,
          n_contended_};
}

}  // namespace experts
}  // namespace spillway
