#include "sys/cgroup.h"

#include <unistd.h>

#include <charconv>

#include "sys/file.h"
#include "sys/text.h"

namespace spillway::sys {
namespace {

struct Mount {
  std::string root;   // which part of the hierarchy is mounted: "/" or "/docker/abc"
  std::string point;  // where
};

// The path of this process in the hierarchy: "N:cpu,cpuacct:/path" (version 1) or "0::/path" (version 2).
std::optional<std::string> group_path(std::string_view cgroup_text, uint32_t version,
                                      std::string_view controller) {
  for (const std::string_view line : split(cgroup_text, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool found = version == 2 ? line.substr(0, first) == "0" && controllers.empty()
                                    : contains(split(controllers, ','), controller);
    if (found) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

// mountinfo writes space, tab, newline and backslash as three octal digits.
std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 4, code, 8).ptr == text.data() + i + 4) {
      out += static_cast<char>(code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// "36 35 98:0 /root /point options tag... - type source super-options", see proc(5).
std::optional<Mount> find_mount(std::string_view mountinfo, uint32_t version, std::string_view controller) {
  for (const std::string_view line : split(mountinfo, '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    const auto left = split(line.substr(0, dash), ' ');
    const auto right = split(line.substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    const bool found = version == 2 ? right[0] == "cgroup2"
                                    : right[0] == "cgroup" && contains(split(right[2], ','), controller);
    if (found) return Mount{unescape(left[3]), unescape(left[4])};
  }
  return std::nullopt;
}

bool is_folder(const std::string& path) { return access((path + "/.").c_str(), F_OK) == 0; }

std::vector<CgroupFolder> folders_of(const std::string& root, std::string_view cgroup_text,
                                     std::string_view mountinfo, uint32_t version,
                                     std::string_view controller) {
  const auto mount = find_mount(mountinfo, version, controller);
  const auto group = group_path(cgroup_text, version, controller);
  if (!mount || !group) return {};
  // The part of the group's path below what is mounted.
  std::string below = *group;
  if (mount->root != "/") {
    if (below == mount->root || below.starts_with(mount->root + "/"))
      below = below.substr(mount->root.size());
    else
      below.clear();
  }
  if (below.find("..") != std::string::npos) below.clear();
  const std::string top = root + mount->point;
  std::vector<CgroupFolder> folders;
  while (!below.empty() && below != "/") {
    if (is_folder(top + below)) folders.push_back({top + below, version});
    below.resize(below.find_last_of('/'));
  }
  if (is_folder(top)) folders.push_back({top, version});
  return folders;
}

}  // namespace

std::vector<CgroupFolder> cgroup_folders(const std::string& root, std::string_view controller) {
  const auto cgroup_text = read_text(root + "/proc/self/cgroup");
  const auto mountinfo = read_text(root + "/proc/self/mountinfo");
  if (!cgroup_text || !mountinfo) return {};
  // Both can be mounted at once; a controller belongs to one of them, and version 1 names it.
  auto folders = folders_of(root, *cgroup_text, *mountinfo, 1, controller);
  if (folders.empty()) folders = folders_of(root, *cgroup_text, *mountinfo, 2, controller);
  return folders;
}

std::optional<uint64_t> read_number(const std::string& path) {
  const auto text = read_text(path);
  return text ? parse_number(trim(*text)) : std::nullopt;
}

}  // namespace spillway::sys
