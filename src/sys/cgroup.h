// Where the limits of this process's control groups are written, for versions 1 and 2 and any nesting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::sys {

struct CgroupFolder {
  std::string path;  // with `root` before it
  uint32_t version = 2;
  bool operator==(const CgroupFolder&) const = default;
};

// The folders that limit `controller` ("cpu", "memory"), from the process's own group up to the highest one
// visible. A limit holds for everything below, so the least along the way counts. Reads root/proc/self/cgroup
// and root/proc/self/mountinfo; `root` is "" for this machine, or a folder with a made-up tree. Empty where
// there are none.
//
// Inside a container the group's own path may not be visible (it is that of the host); then the highest
// visible folder is the container's group, and is what is returned.
std::vector<CgroupFolder> cgroup_folders(const std::string& root, std::string_view controller);

// The number in a small file; nothing where it isn't there, is "max", negative, or not a number.
std::optional<uint64_t> read_number(const std::string& path);

}  // namespace spillway::sys
