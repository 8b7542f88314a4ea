// What `tune` found for a model on a machine, kept so that later runs begin with it, and when it no longer
// holds. It holds for seven things together: the content of the model file, the build, the CPU, the device,
// its driver, the memory and the loading mode; and for the flags that say what lies where. When one of them
// is another, it is not used, and what changed is said.
//
//   {"schema": 1, "kind": "tuned settings", "model_path": "...", "load_mode": "none", "context": 4096,
//    "placement": {"-cmoe": ""}, "flags": {"--moe-cache-mib": "4096", ...}, "gain": 1.18,
//    "facts": {...}}       facts: a result (report/result.h) of kind tune, without its runs and rows
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/result.h"
#include "tune/settings.h"

namespace spillway::tune {

inline constexpr uint32_t kTunedSchema = 1;

// The conditions under which something was, or is to be, run.
struct Conditions {
  report::Build build;
  report::Model model;
  report::Machine machine;
  std::string load_mode;                         // in force, as -lm takes it; not auto
  std::map<std::string, std::string> placement;  // flags of what lies where, those that were given
};

struct TunedProfile {
  Conditions made_for;
  std::string model_path;  // absolute
  std::string created;     // UTC, ISO 8601
  uint32_t context = 0;    // positions of the KV cache: with more, the cache may not fit
  Settings settings;
  double gain = 1;  // against the default, measured, by the goal
  std::string conclusion;
};

// Any bytes give a profile or an error that says what is wrong.
Result<TunedProfile> parse_tuned_profile(std::string_view json);
std::string to_json(const TunedProfile& profile);

// "1.06 times as good as the default then, measured", for people.
std::string gain_text(double gain);

// What is another now, a phrase each: "the driver was '550', now it is '555'". Empty: the profile holds. (The
// operating system's version is not among the seven.)
std::vector<std::string> stale_because(const Conditions& was, const Conditions& is);

// One file for each model path and device, which replaces the one before. Returns its path.
Result<std::string> save_tuned_profile(const TunedProfile& profile, const std::string& folder);

// All that lie in a folder, by name.
struct KeptProfile {
  std::string file;
  Result<TunedProfile> profile;
};
std::vector<KeptProfile> read_tuned_profiles(const std::string& folder);

// Of the profiles in a folder: one that holds, or else the one made for this path or this content, with why
// it does not hold. Nothing where there is none. Files that can't be read are passed over and named.
struct FoundProfile {
  std::string file;
  TunedProfile profile;
  std::vector<std::string> stale;
};
struct ProfileSearch {
  std::optional<FoundProfile> found;
  std::vector<std::string> unreadable;  // a sentence each
};
ProfileSearch find_tuned_profile(const std::string& folder, const std::string& model_path,
                                 const Conditions& now);
// Cheaply: whether the search could find anything at all.
bool has_tuned_profiles(const std::string& folder);

}  // namespace spillway::tune
