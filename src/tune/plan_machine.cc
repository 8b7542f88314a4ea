#include "tune/plan_machine.h"

#include <algorithm>

#include "experts/machines.h"

namespace spillway::tune {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

struct Memories {
  std::string_view name;
  uint64_t device_gib, host_gib;
};
constexpr Memories kMemories[] = {
    {"rtx3060-pcie3-ddr4", 12, 64},
    {"rtx3060-pcie4-ddr4", 12, 64},
    {"rtx4090-pcie4-ddr5", 24, 96},
    {"rtx3090-pcie4-epyc", 24, 256},
};

// Rates are multiplied and fixed times divided: `faster` of 2 is a part that is twice as fast.
void speed_up(experts::Quantity& rate, double faster) { rate.value *= faster; }
void shorten(experts::Quantity& time, double faster) { time.value /= faster; }

}  // namespace

Result<PlanMachine> known_plan_machine(std::string_view name) {
  SW_ASSIGN(experts::HardwareProfile profile, experts::find_machine(name));
  for (const Memories& memories : kMemories)
    if (memories.name == name)
      return PlanMachine{.profile = std::move(profile),
                         .device_bytes = memories.device_gib * kGiB,
                         .host_bytes = memories.host_gib * kGiB};
  return PlanMachine{.profile = std::move(profile)};
}

PlanMachine plan_machine_of(const ProfileFile& file) {
  PlanMachine machine{.profile = file.profile,
                      .device_bytes = file.machine.device_bytes,
                      .host_bytes = file.machine.memory_bytes,
                      .has_no_device = file.machine.device == "none",
                      .notes = file.notes};
  if (machine.has_no_device)
    machine.notes.emplace_back(
        "It was measured without a device: the rates of device and link are default, nobody measured them.");
  const experts::HardwareProfile& p = file.profile;
  if (p.device_gb_s.label != Label::kMeasured || p.cpu_gb_s.label != Label::kMeasured ||
      p.link_gb_s.label != Label::kMeasured)
    return machine;
  constexpr double kLeast = 0.05, kMost = 0.5;
  machine.uncertainty = kLeast;
  for (const char* rate : {"device_gb_s", "dram_gb_s", "cpu_gb_s", "link_gb_s"})
    if (const auto spread = file.spreads.find(rate); spread != file.spreads.end())
      machine.uncertainty = std::clamp(spread->second.relative_spread() / 2, machine.uncertainty, kMost);
  return machine;
}

PlanMachine with_rates(PlanMachine machine, double rates) {
  experts::HardwareProfile& p = machine.profile;
  for (experts::Quantity* rate : {&p.device_gb_s, &p.dram_gb_s, &p.cpu_gb_s, &p.link_gb_s,
                                  &p.cpu_contended_gb_s, &p.link_contended_gb_s})
    speed_up(*rate, rates);
  for (experts::Quantity* time : {&p.step_us, &p.layer_us, &p.cpu_start_us, &p.copy_us, &p.device_expert_us})
    shorten(*time, rates);
  return machine;
}

std::vector<Change> changes_of(const PlanMachine& machine) {
  std::vector<Change> all;
  const auto change = [&](const char* name, const char* part, const char* assumption = "") -> PlanMachine& {
    all.push_back({name, part, assumption, machine});
    return all.back().machine;
  };
  all.reserve(5);  // what change() gives stays where it is
  change("device memory + 4 GiB", "the size of the device's memory").device_bytes += 4 * kGiB;
  {
    // The CPU's contended rate is what memory leaves beside the link; it is kept where it was measured.
    experts::HardwareProfile& p = change("link x 2", "the link").profile;
    speed_up(p.link_gb_s, 2);
    speed_up(p.link_contended_gb_s, 2);
  }
  {
    experts::HardwareProfile& p =
        change("memory channels x 2", "the host's memory and CPU",
               "With twice the memory channels the CPU is taken to compute experts twice as fast.")
            .profile;
    for (experts::Quantity* rate : {&p.dram_gb_s, &p.cpu_gb_s, &p.cpu_contended_gb_s}) speed_up(*rate, 2);
  }
  {
    experts::HardwareProfile& p = change("device x 2", "the device").profile;
    speed_up(p.device_gb_s, 2);
    shorten(p.device_expert_us, 2);
  }
  {
    experts::HardwareProfile& p = change("fixed costs / 2", "the fixed costs of steps and layers").profile;
    for (experts::Quantity* time : {&p.step_us, &p.layer_us, &p.cpu_start_us, &p.copy_us}) shorten(*time, 2);
  }
  return all;
}

}  // namespace spillway::tune
