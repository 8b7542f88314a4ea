// The CPU's experts and copies of experts at the same time: the rates that both keep when they pull on the
// same memory. Three times are taken in turn, so that a machine that gets slower meanwhile slows them alike:
// the CPU's work alone, the copies alone, both started together.
#include "tune/probe_steps.h"

namespace spillway::tune {
namespace {

// The copies should end a little after the CPU: then the host sees both ends, and the CPU was never alone.
// Those that seem to end with the CPU may have ended earlier.
constexpr double kSeemsTogether = 1.05, kLater = 1.15, kTooLate = 1.4;
constexpr int kTrials = 8;
constexpr uint32_t kMostCopies = 4096, kMostRegionsBeside = 256;
constexpr size_t kFewest = 3, kMost = 25;

struct Round {
  double cpu_alone, link_alone, cpu, link;
};

double median_of(const std::vector<Round>& rounds, double Round::* field) {
  std::vector<double> values;
  values.reserve(rounds.size());
  for (const Round& round : rounds) values.push_back(round.*field);
  return sample_of(std::move(values)).median;
}

// The rate with the slowdown of the medians; its spread is that of the rounds.
Sample contended(double rate, double slowdown, std::vector<double> of_rounds) {
  const Sample spread = sample_of(std::move(of_rounds)).inverse(rate);
  Sample sample = spread.scaled(rate / slowdown / spread.median);
  sample.median = std::min(sample.median, rate);  // rounding
  return sample;
}

}  // namespace

// Finds how much of each makes them end as they should.
Result<void> ProbeSteps::balance(double slice_us, CpuLoad& cpu, CopyLoad& copy) {
  SW_ASSIGN(const double region_us, target_.cpu_us(cpu));
  SW_ASSIGN(const double one_us, target_.copy_us(copy));
  // Long enough that what starting costs is a percent; short enough for fifteen rounds of three.
  const double wanted_us = std::clamp(slice_us / 50, 1e3, 2e4);
  cpu.regions = static_cast<uint32_t>(
      std::clamp(wanted_us / std::max(region_us, 1.0), 1.0, double{kMostRegionsBeside}));
  const auto set_copies = [&](double n) {
    copy.copies = static_cast<uint32_t>(std::clamp(n, 1.0, double{kMostCopies}));
  };
  set_copies(kLater * cpu.regions * region_us / std::max(one_us, 0.1));
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> ratios;  // of three, so that one outlier does not decide
    for (size_t i = 0; i < kFewest; ++i) {
      SW_ASSIGN(const BothTimes times, target_.both_us(cpu, copy));
      ratios.push_back(times.link_us / std::max(times.cpu_us, 0.1));
    }
    const double later = sample_of(std::move(ratios)).median;
    if (later > kSeemsTogether && later < kTooLate) break;
    const uint32_t before = copy.copies;
    set_copies(later <= kSeemsTogether ? copy.copies * 1.5 + 1 : copy.copies * kLater / later);
    if (copy.copies == before) break;
    SW_TRY(meter_.pass(0));
  }
  return {};
}

Result<void> ProbeSteps::both(double share) {
  experts::HardwareProfile& p = file_.profile;
  const auto unknown = [&](const char* why) {
    for (const char* name : {"cpu_contended_gb_s", "link_contended_gb_s"}) keep_default(name, why);
    return meter_.pass(share);
  };
  if (p.link_gb_s.label != Label::kMeasured || p.cpu_gb_s.label != Label::kMeasured)
    return unknown("the lone rates of link and CPU were not both measured");
  CpuLoad cpu{.type = main_type(), .threads = target_.threads(), .experts = target_.cpu_experts()};
  CopyLoad copy{.size = static_cast<uint32_t>(target_.copy_sizes(Direction::kUp).size() - 1)};
  if (!target_.why_no_copies(HostMemory::kPinned).empty()) copy.memory = HostMemory::kPageable;
  const double begin_us = target_.now_us(), slice_us = share * meter_.total_us();
  SW_TRY(balance(slice_us, cpu, copy));

  std::vector<Round> rounds;
  std::vector<double> cpu_slower, link_slower;
  while (rounds.size() < kFewest || (rounds.size() < kMost && target_.now_us() - begin_us < slice_us)) {
    SW_ASSIGN(const double cpu_us, target_.cpu_us(cpu));
    SW_ASSIGN(const double link_us, target_.copy_us(copy));
    SW_ASSIGN(const BothTimes times, target_.both_us(cpu, copy));
    if (!(cpu_us > 0 && link_us > 0 && times.cpu_us > 0 && times.link_us > 0))
      return unknown("the clock saw no time pass");
    rounds.push_back({cpu_us, link_us, times.cpu_us, times.link_us});
    const Slowdown slower = slowdown_of(cpu_us, link_us, times.cpu_us, times.link_us);
    cpu_slower.push_back(slower.cpu);
    link_slower.push_back(slower.link);
    SW_TRY(meter_.pass(0));
  }
  const Slowdown slower =
      slowdown_of(median_of(rounds, &Round::cpu_alone), median_of(rounds, &Round::link_alone),
                  median_of(rounds, &Round::cpu), median_of(rounds, &Round::link));
  set("cpu_contended_gb_s", p.cpu_contended_gb_s, contended(p.cpu_gb_s.value, slower.cpu, cpu_slower));
  set("link_contended_gb_s", p.link_contended_gb_s, contended(p.link_gb_s.value, slower.link, link_slower));
  return meter_.pass(share);
}

}  // namespace spillway::tune
