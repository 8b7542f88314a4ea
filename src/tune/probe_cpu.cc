// What the CPU and its memory do.
#include <cmath>
#include <set>

#include "tune/probe_steps.h"

namespace spillway::tune {
namespace {

constexpr uint32_t kMostRegions = 64;
constexpr double kBytesPerUs = 1000;  // of 1 GB/s

// 1, 2, 4, ... up to `most`.
std::vector<uint32_t> powers_of_two(uint32_t most) {
  std::vector<uint32_t> list;
  for (uint32_t n = 1; n <= most; n *= 2) list.push_back(n);
  return list;
}

}  // namespace

void ProbeSteps::set(std::string_view name, experts::Quantity& quantity, const Sample& sample) {
  quantity = {sample.median, Label::kMeasured};
  file_.spreads[std::string(name)] = sample;
}

void ProbeSteps::keep_default(std::string_view name, std::string why) {
  file_.reasons[std::string(name)] = std::move(why);
}

std::vector<uint32_t> ProbeSteps::thread_counts() const {
  const uint32_t all = target_.threads();
  const std::set<uint32_t> counts{1, std::max(1u, all / 2), all};
  return {counts.begin(), counts.end()};
}

Result<void> ProbeSteps::memory(double share) {
  const std::vector<uint32_t> counts = thread_counts();
  for (const uint32_t threads : counts) {
    SW_ASSIGN(const Sample us, meter_.sample(share / static_cast<double>(counts.size()),
                                             [&] { return target_.read_us(threads); }));
    const Sample rate = us.inverse(static_cast<double>(target_.read_bytes()) / kBytesPerUs);
    file_.memory.push_back({threads, rate});
    // What the memory gives: few threads can be faster than all of them.
    if (threads == counts.front() || rate.median > file_.profile.dram_gb_s.value)
      set("dram_gb_s", file_.profile.dram_gb_s, rate);
  }
  return {};
}

Result<Sample> ProbeSteps::cpu_rate(double share, TensorType type, uint32_t threads, uint32_t tokens) {
  CpuLoad load{.type = type, .threads = threads, .tokens = tokens, .experts = target_.cpu_experts()};
  SW_ASSIGN(const Sample us, meter_.sample(share, kMostRegions, [&](uint32_t regions) {
    load.regions = regions;
    return target_.cpu_us(load);
  }));
  const double bytes = static_cast<double>(target_.cpu_expert_bytes(type)) * load.experts;
  file_.cpu_kernels.push_back(
      {std::string(info(type).name), threads, tokens, us.inverse(bytes / kBytesPerUs)});
  return us;
}

// The time of a region over its experts: what starting it costs, and the rate.
Result<void> ProbeSteps::cpu_start(double share) {
  const std::vector<uint32_t> counts = powers_of_two(target_.cpu_experts());
  std::vector<double> x, y;
  Sample last;
  for (const uint32_t experts : counts) {
    CpuLoad load{.type = main_type(), .threads = target_.threads(), .experts = experts};
    SW_ASSIGN(last,
              meter_.sample(share / static_cast<double>(counts.size()), kMostRegions, [&](uint32_t regions) {
                load.regions = regions;
                return target_.cpu_us(load);
              }));
    x.push_back(experts);
    y.push_back(last.median);
  }
  const Line line = fit_line(x, y);
  region_us_ = line.fixed;
  const double bytes = static_cast<double>(target_.cpu_expert_bytes(main_type()));
  if (!(line.per_unit > 0)) {
    keep_default("cpu_gb_s", "the time of a parallel region does not grow with its experts");
    return {};
  }
  set("cpu_gb_s", file_.profile.cpu_gb_s,
      last.scaled(line.per_unit / last.median).inverse(bytes / kBytesPerUs));
  return {};
}

// From how many tokens on an expert takes longer than reading it.
Result<void> ProbeSteps::cpu_tokens(double share) {
  const std::vector<uint32_t> counts = powers_of_two(target_.cpu_tokens());
  const double experts = target_.cpu_experts();
  std::vector<double> x, y;
  double one = 0;
  for (const uint32_t tokens : counts) {
    SW_ASSIGN(const Sample us,
              cpu_rate(share / static_cast<double>(counts.size()), main_type(), target_.threads(), tokens));
    const double each = std::max((us.median - region_us_) / experts, 1e-6);
    if (tokens == 1) one = each;
    x.push_back(tokens);
    y.push_back(each / one);
  }
  file_.profile.cpu_tokens = {fit_tokens(x, y), Label::kMeasured};
  return {};
}

Result<void> ProbeSteps::cpu_kernels(double share) {
  SW_TRY(cpu_start(0.3 * share));  // a few microseconds are to be told from the time of an expert
  SW_TRY(cpu_tokens(0.25 * share));
  // The other types at one token, at a prompt's, and with fewer threads.
  const std::vector<uint32_t> threads = thread_counts();
  const uint32_t most = target_.cpu_tokens();
  const double items = static_cast<double>(types_.size() * (threads.size() + 1) - 2);
  const double each = 0.45 * share / items;
  for (const TensorType type : types_) {
    for (const uint32_t n : threads)
      if (type != main_type() || n != target_.threads()) SW_TRY(cpu_rate(each, type, n, 1));
    if (type != main_type()) SW_TRY(cpu_rate(each, type, target_.threads(), most));
  }
  return {};
}

Result<void> ProbeSteps::wake(double share) {
  SW_ASSIGN(const Sample us, meter_.sample(share, [&] { return target_.wait_us(Wait::kPool); }));
  file_.waits_us["pool_wake"] = us;
  set("cpu_start_us", file_.profile.cpu_start_us, us.plus(region_us_));
  return {};
}

void ProbeSteps::without_device() {
  for (const char* name : {"device_gb_s", "link_gb_s", "cpu_contended_gb_s", "link_contended_gb_s",
                           "device_tokens", "layer_us", "copy_us", "device_expert_us"})
    keep_default(name, "no device was measured");
  for (const char* memory : {"pinned", "pageable", "mapped"})
    file_.link.push_back({.direction = "up", .memory = memory, .why_not = "no device was measured"});
}

void ProbeSteps::finish() {
  keep_default("step_us", "it depends on the model: it is what a step takes besides its layers");
  experts::HardwareProfile& p = file_.profile;
  // Whatever read the memory fastest shows what it can do.
  const double seen = std::max(p.cpu_gb_s.label == Label::kMeasured ? p.cpu_gb_s.value : 0,
                               p.link_contended_gb_s.label == Label::kMeasured
                                   ? p.cpu_contended_gb_s.value + p.link_contended_gb_s.value
                                   : 0);
  if (seen <= p.dram_gb_s.value) return;
  constexpr double kNoticeable = 1.1;  // both scatter
  if (seen > kNoticeable * p.dram_gb_s.value)
    file_.notes.push_back(
        fmt::format("Memory was read at {:.1f} GB/s, and experts at {:.1f}: they came from the CPU's caches, "
                    "or the machine was busy "
                    "while memory was read. The faster one stands for dram_gb_s.",
                    p.dram_gb_s.value, seen));
  p.dram_gb_s.value = seen;
  file_.spreads.erase("dram_gb_s");  // it was that of the other
}

}  // namespace spillway::tune
