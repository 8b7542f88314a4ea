// What the device and the link to it do.
#include <array>

#include "tune/probe_steps.h"

namespace spillway::tune {
namespace {

constexpr uint32_t kMostCopies = 512, kMostOperations = 64;
constexpr double kBytesPerUs = 1000;  // of 1 GB/s

// Of no memory or link: the clock did not move.
constexpr double kMostGbS = 1e6;
constexpr const char* kNoTime = "the clock saw no time pass";

// A line that grows: where noise hides what size costs, all of the largest one's time is put down to it.
Line growing_line(std::span<const double> x, std::span<const double> y) {
  const Line line = fit_line(x, y);
  return line.per_unit > 0 ? line : Line{0, y.back() / x.back()};
}

const char* name_of(Direction direction) { return direction == Direction::kUp ? "up" : "down"; }
const char* name_of(HostMemory memory) { return memory == HostMemory::kPinned ? "pinned" : "pageable"; }

}  // namespace

// Without what the host waited at its end. The low end of those waits, as a busy machine makes most of them
// longer, and the rest of the time as well.
Result<double> ProbeSteps::without_wait(Result<double> us) const {
  if (us) *us = std::max(*us - file_.waits_us["device_wait"].low, 0.0);
  return us;
}

Result<void> ProbeSteps::link_of(double share, Direction direction, HostMemory memory) {
  LinkRate rate;
  rate.direction = name_of(direction);
  rate.memory = name_of(memory);
  experts::HardwareProfile& p = file_.profile;
  // Copies up go from where the experts lie: pinned memory where the system allows it.
  const bool of_experts =
      direction == Direction::kUp && (memory == HostMemory::kPinned || p.link_gb_s.label != Label::kMeasured);
  if (direction == Direction::kUp) rate.why_not = target_.why_no_copies(memory);
  if (!rate.why_not.empty()) {
    file_.link.push_back(std::move(rate));
    return meter_.pass(share);
  }
  const std::vector<uint64_t> sizes = target_.copy_sizes(direction);
  std::vector<double> x, y;
  Sample last, first;
  for (uint32_t size = 0; size < sizes.size(); ++size) {
    CopyLoad load{.direction = direction, .memory = memory, .size = size};
    SW_ASSIGN(last,
              meter_.sample(share / static_cast<double>(sizes.size()), kMostCopies, [&](uint32_t copies) {
                load.copies = copies;
                return without_wait(target_.copy_us(load));
              }));
    if (size == 0) first = last;
    x.push_back(static_cast<double>(sizes[size]));
    y.push_back(last.median);
  }
  const Line line = growing_line(x, y);
  rate.copy_us = line.fixed;
  rate.gb_s = 1 / (line.per_unit * kBytesPerUs);
  if (rate.gb_s > kMostGbS) rate = {rate.direction, rate.memory, 0, 0, kNoTime};
  if (of_experts && rate.why_not.empty()) {
    set("link_gb_s", p.link_gb_s,
        last.scaled(line.per_unit * x.back() / last.median).inverse(x.back() / kBytesPerUs));
    set("copy_us", p.copy_us, first.scaled(line.fixed / first.median));
  }
  file_.link.push_back(std::move(rate));
  return {};
}

Result<void> ProbeSteps::link(double share) {
  SW_TRY(link_of(0.5 * share, Direction::kUp, HostMemory::kPinned));
  SW_TRY(link_of(0.25 * share, Direction::kUp, HostMemory::kPageable));
  SW_TRY(link_of(0.25 * share, Direction::kDown, HostMemory::kPageable));
  file_.link.push_back({.direction = "up",
                        .memory = "mapped",
                        .why_not = "experts are always copied; the engine stores nothing into mapped device "
                                   "memory"});
  for (const char* name : {"link_gb_s", "copy_us"})
    if (!file_.spreads.contains(name)) keep_default(name, file_.link.front().why_not);
  return {};
}

Result<Sample> ProbeSteps::device_time(double share, uint32_t size, uint32_t experts, uint32_t tokens) {
  DeviceLoad load{.size = size, .experts = experts, .tokens = tokens};
  SW_ASSIGN(const Sample us, meter_.sample(share, kMostOperations, [&](uint32_t operations) {
    load.operations = operations;
    return without_wait(target_.device_us(load));
  }));
  file_.device.push_back({target_.device_expert_sizes()[size], experts, tokens, us});
  return us;
}

// Two lines: the time of an operation over its experts gives its fixed cost and the time of one expert of
// each size; that over the size gives an expert's fixed cost and the rate of the memory.
Result<void> ProbeSteps::device(double share) {
  const std::vector<uint64_t> sizes = target_.device_expert_sizes();
  const std::array<uint32_t, 3> counts{1, std::max(2u, target_.device_experts() / 4),
                                       target_.device_experts()};
  const double each = 0.6 * share / static_cast<double>(sizes.size() * counts.size());
  std::vector<double> bytes, expert_us, operations_us;
  Sample last;
  for (uint32_t size = 0; size < sizes.size(); ++size) {
    std::vector<double> x, y;
    for (const uint32_t experts : counts) {
      SW_ASSIGN(last, device_time(each, size, experts, 1));
      x.push_back(experts);
      y.push_back(last.median);
    }
    const Line line = growing_line(x, y);
    bytes.push_back(static_cast<double>(sizes[size]));
    expert_us.push_back(line.per_unit);
    operations_us.push_back(line.fixed);
  }
  const Sample operation = sample_of(operations_us);
  operation_us_ = operation.median;
  file_.waits_us["device_operation"] = operation;
  const Line line = growing_line(bytes, expert_us);
  experts::HardwareProfile& p = file_.profile;
  if (line.per_unit * kBytesPerUs * kMostGbS > 1) {
    const double bytes_us = bytes.back() * line.per_unit;
    set("device_gb_s", p.device_gb_s,
        last.scaled(bytes_us / last.median).inverse(bytes.back() / kBytesPerUs));
    p.device_expert_us = {line.fixed, Label::kMeasured};
    return device_tokens(0.4 * share, bytes_us);
  }
  for (const char* name : {"device_gb_s", "device_expert_us", "device_tokens"}) keep_default(name, kNoTime);
  return meter_.pass(0.4 * share);
}

Result<void> ProbeSteps::device_tokens(double share, double bytes_us) {
  std::vector<uint32_t> counts;
  for (uint32_t n = 1; n <= target_.device_tokens(); n *= 4) counts.push_back(n);
  const auto size = static_cast<uint32_t>(target_.device_expert_sizes().size() - 1);
  const double experts = target_.device_experts();
  std::vector<double> x, y;
  for (const uint32_t tokens : counts) {
    SW_ASSIGN(const Sample us, device_time(share / static_cast<double>(counts.size()), size,
                                           target_.device_experts(), tokens));
    const double each = (us.median - operation_us_) / experts - file_.profile.device_expert_us.value;
    x.push_back(tokens);
    y.push_back(std::max(each, 1e-6) / bytes_us);
  }
  file_.profile.device_tokens = {fit_tokens(x, y), Label::kMeasured};
  return {};
}

Result<void> ProbeSteps::device_wait(double share) {
  SW_ASSIGN(file_.waits_us["device_wait"],
            meter_.sample(share, [&] { return target_.wait_us(Wait::kDevice); }));
  return {};
}

Result<void> ProbeSteps::waits(double share) {
  static constexpr std::pair<const char*, Wait> kWaits[] = {
      {"hand_over", Wait::kHandOver}, {"planned_layer", Wait::kPlanned}, {"resident_layer", Wait::kResident}};
  for (const auto& [name, wait] : kWaits) {
    SW_ASSIGN(file_.waits_us[name],
              meter_.sample(share / std::size(kWaits), [&] { return target_.wait_us(wait); }));
  }
  const Sample& planned = file_.waits_us["planned_layer"];
  const double layer_us = std::max(0.0, planned.median - file_.waits_us["resident_layer"].median);
  set("layer_us", file_.profile.layer_us, planned.scaled(layer_us / planned.median));
  const Sample start = file_.spreads["cpu_start_us"].plus(file_.waits_us["hand_over"].median);
  set("cpu_start_us", file_.profile.cpu_start_us, start);
  return {};
}

}  // namespace spillway::tune
