// What is tuned, and how a person would type it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experts/planner.h"
#include "report/result.h"

namespace spillway::tune {

// The defaults are those of a command line without flags.
struct Settings {
  std::optional<uint64_t> cache_bytes;  // of the expert cache; unset: auto, all that the device has left
  experts::Choice cpu_share = experts::Choice::automatic();
  experts::Choice admit;  // unset: what goes with the share (experts/planner.h)
  experts::Promotion promote = experts::Promotion::kUnset;
  uint32_t ubatch = 0;    // 0: the program's own
  uint32_t threads = 0;   // 0: chosen by the program
  std::string load_mode;  // "" : not tuned; else as -lm takes it
  bool operator==(const Settings&) const = default;

  bool has_cache() const { return !cache_bytes || *cache_bytes > 0; }
};

// By flag; what is left to the program is there only where the flag has a word for it (auto).
std::map<std::string, std::string> flags_of(const Settings& settings);
// The way back. An error names a flag that is not tuned, or a value that it does not take.
Result<Settings> settings_of(const std::map<std::string, std::string>& flags);
// "--moe-cache-mib 512 --moe-cache-cpu-share auto", as it is typed.
std::string command_text(const Settings& settings);

// "512 MiB, share 0.5": for tables.
std::string short_name(const Settings& settings);
std::string share_text(const Settings& settings);

experts::PlannerSettings planner_settings(const Settings& settings);

// The slots that a cache of so many bytes has, (groups): its bytes are shared out as the experts' are.
std::vector<uint32_t> slots_for(std::span<const experts::GroupShape> groups, uint64_t cache_bytes);
// Of all experts of these groups.
uint64_t expert_bytes(std::span<const experts::GroupShape> groups);
// The nearest size, at least as large where that is not above `most`, that --moe-cache-mib can be given in
// few digits.
uint64_t round_cache_bytes(double bytes, uint64_t most);

}  // namespace spillway::tune
