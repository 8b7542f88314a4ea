#include "experts/cost_model.h"

#include <algorithm>

#include "experts/arithmetic.h"

namespace spillway {
namespace experts {
namespace {

constexpr double kBytesPerUs = 1000.0;  // of 1 GB/s
constexpr double kMostSlowdown = 16.0;
constexpr double kMostLayerUs = 10000.0;
// What waking and signalling may add to a device's end: tens of microseconds in public measurements.
constexpr double kMostLatencyUs = 100.0;

// The link keeps its rate and the CPU gets the rest, but each at least a tenth of its lone rate.
double contended(double given, double alone, double rest) {
  if (given > 0.0) return given;
  return std::clamp(rest, alone / 10, alone);
}

uint32_t bucket_of(uint32_t tokens) { return std::min(16u, floor_log2(std::max(tokens, 1u))); }

double us(uint64_t ns) { return static_cast<double>(ns) / 1000.0; }
// At most 31 years, so that sums stay within 64 bits.
uint64_t ns(double us) { return round_up_half(std::clamp(us, 0.0, 1e15) * 1000.0); }

}  // namespace

void CostModel::Average::follow(double ratio) {
  ++n;
  const double rate = std::max(kLearningRate, 1.0 / static_cast<double>(n + 1));
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
  Times times;
  if (work.cpu_us > 0.0)
    times.cpu_us = overlap(work.cpu_us, work.ahead_us + work.link_us + work.behind_us).cpu_us + cpu_start_us_;
  if (work.last_upload_us > 0.0) times.link_us = overlap(work.cpu_us, work.ahead_us + work.link_us).link_us;
  times.device_us = work.last_upload_us > 0.0 ? std::max(work.device_us, times.link_us + work.last_upload_us)
                                              : work.device_us;
  times.total_us = std::max(times.device_us, times.cpu_us) + (work.waits ? layer_us_ : 0.0);
  return times;
}

CostModel::Outcome CostModel::observe(const Work& work) const {
  const Times times = finish(work);
  const double all = work.ahead_us + work.link_us + work.behind_us;
  const Overlap both = overlap(work.cpu_us, all);
  // The link runs at its contended rate while the CPU does, then alone, until the end.
  const double contended = std::min({both.cpu_us, both.link_us, times.total_us});
  const double alone = std::clamp(times.total_us - contended, 0.0, both.link_us - contended);
  const double own = work.link_us > 0.0 ? times.link_us - overlap(work.cpu_us, work.ahead_us).link_us : 0.0;
  return {{ns(times.device_us), ns(own), ns(contended + alone - own), ns(times.cpu_us), ns(times.total_us)},
          std::max(0.0, all - (contended / (work.cpu_us > 0.0 ? link_slowdown_ : 1.0) + alone))};
}

void CostModel::learn(const Work& work, std::span<const uint32_t> cpu_tokens,
                      std::span<const uint32_t> device_tokens, const Observation& seen) {
  // What is below a microsecond says more about the clock than about the machine.
  const bool cpu = work.cpu_us > 1.0 && seen.cpu_ns > 1000;
  const bool link = work.link_us > 1.0 && seen.link_ns > 1000;
  const double cpu_seen = cpu ? std::max(us(seen.cpu_ns) - cpu_start_us_, 0.0) : 0.0;
  const double link_busy = us(seen.link_ns) + us(seen.background_ns);
  // How long something took that does `alone` microseconds of work, the first `met` of them beside the other:
  // observed / expected is the error of its contended rate if that was at least half the time, else of its
  // lone rate.
  const auto ratio = [](double took, double alone, double met, double slowdown) {
    return took / std::max(met + alone - met / slowdown, 0.5 * took);
  };
  const auto slow_down = [](double& slowdown, double error) {
    slowdown = std::clamp(slowdown * (1.0 + kLearningRate * (std::clamp(error, 0.5, 2.0) - 1.0)), 1.0,
                          kMostSlowdown);
  };
  if (cpu && cpu_seen > 0.0) {
    const double met = std::min(cpu_seen, link_busy);
    const double error = ratio(cpu_seen, work.cpu_us, met, cpu_slowdown_);
    if (met * 2 >= cpu_seen) {
      slow_down(cpu_slowdown_, error);
      ++n_contended_;
    } else {
      cpu_.follow(cpu_tokens, error);
    }
  }
  if (link) {
    // The plan's copies come first, so they meet the CPU's part from its start.
    const double met = std::min(cpu_seen, us(seen.link_ns));
    const double error = ratio(us(seen.link_ns), work.link_us, met, link_slowdown_);
    if (met * 2 >= us(seen.link_ns)) {
      slow_down(link_slowdown_, error);
    } else {
      link_.follow(error);
    }
  }
  // The device's end tells of its rate where it did not wait for the link: as predicted, or because it was
  // done so long after the copies that nothing but its rate explains it.
  if (work.device_us > 1.0 && seen.device_ns > 1000) {
    const double after_link = us(seen.device_ns) - link_busy;
    if (finish(work).device_us == work.device_us && seen.device_ns > seen.link_ns) {
      device_.follow(device_tokens, us(seen.device_ns) / work.device_us);
    } else if (after_link > 2.0 * work.last_upload_us + kMostLatencyUs) {
      device_.follow(device_tokens,
                     std::min(us(seen.device_ns) / work.device_us, after_link / work.last_upload_us));
    }
  }
  if (work.waits && seen.total_ns > 0) {
    const double rest = us(seen.total_ns) - us(std::max(seen.device_ns, seen.cpu_ns));
    layer_us_ =
        std::clamp(layer_us_ + kLearningRate * (std::clamp(rest, 0.0, 2.0 * layer_us_ + 10.0) - layer_us_),
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
