// A machine as a plan needs it: its rates and its memories.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experts/profile.h"
#include "tune/profile_file.h"

namespace spillway::tune {

struct PlanMachine {
  experts::HardwareProfile profile;
  uint64_t device_bytes = 0;  // of device memory in all
  uint64_t host_bytes = 0;    // that programs may use
  // How well the rates are known, as a part of their values. Data sheets and other people's benchmarks differ
  // from a machine by 15 % and more.
  double uncertainty = 0.15;
  bool has_no_device = false;      // where it was measured: the rates of device and link are default
  std::vector<std::string> notes;  // what to know of the rates, whole sentences
};

// Those of experts/machines.h with the memories that their kind has: the devices' as sold, the hosts' typical
// ones, which people should replace by their own.
Result<PlanMachine> known_plan_machine(std::string_view name);

// The one that was measured; its memories are 0 where the file does not tell them. What was measured is known
// to a few percent, or to half of what the widest of its rates varied by.
PlanMachine plan_machine_of(const ProfileFile& file);

// The machine with every rate times `rates`, and every fixed time divided by it.
PlanMachine with_rates(PlanMachine machine, double rates);

// What a person could buy: a name and the machine with it.
struct Change {
  std::string name;        // "link x 2"
  std::string part;        // what is relieved by it: "the link"
  std::string assumption;  // a whole sentence, or empty
  PlanMachine machine;
};
std::vector<Change> changes_of(const PlanMachine& machine);

}  // namespace spillway::tune
