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

// What 'probe' saved here, of a device if there is one; says where the machine has changed since. The error
// names the flag.
Result<tune::ProfileFile> profile_of_this_machine(const std::string& flag);

// A known machine's by its name (experts/machines.h), "this", or that of a file; the error names the flag.
Result<experts::HardwareProfile> find_profile(const std::string& flag, const std::string& name_or_path);

}  // namespace spillway::cli
