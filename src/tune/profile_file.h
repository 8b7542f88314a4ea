// A hardware profile as a file: what `probe` writes and `run`, `plan`, `tune` and `trace replay` read.
// docs/hardware-profile.md describes every key.
//
//   {"schema": 1, "kind": "hardware profile", "name": "...", "source": "...",
//    "quantities": {"link_gb_s": {"value": 24.1, "label": "measured", "low": 23.9, "high": 24.2}, ...},
//    "machine": {...}, "cpu_kernels": [...], ...}
//
// The quantities are those of experts/profile.h by their names there; a missing one keeps its default, and
// that label. All else is detail beside them: what is missing or not known is passed over.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experts/profile.h"
#include "report/result.h"
#include "tune/probe_fit.h"

namespace spillway::tune {

inline constexpr uint32_t kProfileSchema = 1;

// Any bytes give a profile that passes check(), or an error that names the place.
Result<experts::HardwareProfile> parse_profile(std::string_view json);
std::string to_json(const experts::HardwareProfile& profile);

// What a rate or time was measured with. Samples of rates are in GB/s, of times in microseconds.
struct ReadRate {
  uint32_t threads = 0;
  Sample gb_s;
};
struct CpuRate {
  std::string type;
  uint32_t threads = 0, tokens = 0;
  Sample gb_s;  // of weights, each counted once however many tokens use it
};
struct LinkRate {
  std::string direction, memory;  // "up" or "down"; "pinned", "pageable", "mapped"
  double gb_s = 0, copy_us = 0;   // both 0 where `why_not` is set
  std::string why_not;
};
struct DeviceTime {
  uint64_t expert_bytes = 0;
  uint32_t experts = 0, tokens = 0;
  Sample us;  // of one operation
};
struct MachineLimits {
  std::optional<uint64_t> group_memory_bytes;  // of the control group
  std::optional<double> group_cpus;
  std::optional<uint64_t> locked_bytes;  // that may be locked (ulimit -l)
};

struct ProfileFile {
  experts::HardwareProfile profile;
  report::Machine machine;                     // that was measured
  std::string created;                         // UTC, ISO 8601
  double seconds = 0;                          // that it took
  double other_cores = 0;                      // that others kept busy meanwhile
  std::map<std::string, Sample> spreads;       // of quantities, by name
  std::map<std::string, std::string> reasons;  // of those that were not measured
  std::vector<ReadRate> memory;
  std::vector<CpuRate> cpu_kernels;
  std::vector<LinkRate> link;
  std::vector<DeviceTime> device;
  std::map<std::string, Sample> waits_us;
  MachineLimits limits;
  std::vector<std::string> notes;  // whole sentences: what to know before believing it
};

// Whether it is meant to be one: a JSON object of that kind, whatever else is wrong with it.
bool is_profile_file(std::string_view json);
Result<ProfileFile> parse_profile_file(std::string_view json);
std::string to_json(const ProfileFile& file);

}  // namespace spillway::tune
