// Hardware profiles that were measured here, and those that are named on a command line.
#pragma once

#include <string>
#include <vector>

#include "tune/profile_file.h"

namespace spillway::cli {

struct SavedProfile {
  std::string path;
  tune::ProfileFile file;
  // What of this host (processor, cores, memory) is otherwise than when it was measured, a phrase
  // each. Device and driver are not compared: which one is used is not known yet.
  std::vector<std::string> changes;
};

// Where `probe` keeps the profile of a device ("none", "vulkan:0"): one file each in
// ${XDG_DATA_HOME:-~/.local/share}/spillway/profiles. Empty where neither variable is set.
std::string saved_profile_path(const std::string& device_id);

// All that lie there and can be read. A damaged one is passed over: the default rates do for a start.
std::vector<SavedProfile> saved_profiles();
// A sentence for each that can't.
std::vector<std::string> unreadable_profiles();

Result<void> write_profile(const std::string& path, const tune::ProfileFile& file);

// Of a machine that was measured: "this", what `probe` saved here (of a device if there is one), which says
// where the machine has changed since; or that of a file. The error names the flag and the known machines.
Result<tune::ProfileFile> find_measured(const std::string& flag, const std::string& this_or_path);

// The same, or a known machine's by its name (experts/machines.h).
Result<experts::HardwareProfile> find_profile(const std::string& flag, const std::string& name);

}  // namespace spillway::cli
