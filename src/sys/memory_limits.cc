#include "sys/memory_limits.h"

#include <algorithm>

#include "sys/cgroup.h"
#include "sys/file.h"
#include "sys/text.h"

namespace spillway::sys {
namespace {

// The number behind `name` in a text of lines "name number" or "name: number kB".
std::optional<uint64_t> field(std::string_view text, std::string_view name) {
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(name)) continue;
    std::string_view rest = line.substr(name.size());
    if (rest.empty() || (rest[0] != ' ' && rest[0] != ':')) continue;
    const auto parts = split(rest, ' ');
    for (const std::string_view part : parts)
      if (const auto number = parse_number(part)) return *number * (parts.back() == "kB" ? 1024 : 1);
  }
  return std::nullopt;
}

struct Group {
  uint64_t limit_bytes = 0;
  uint64_t available_bytes = 0;
};

// What one control group leaves. Its use counts file pages, which are given up when memory runs short.
std::optional<Group> read_group(const CgroupFolder& folder) {
  const bool v2 = folder.version == 2;
  std::optional<uint64_t> limit = read_number(folder.path + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  if (const auto high = v2 ? read_number(folder.path + "/memory.high") : std::nullopt)
    limit = std::min(limit.value_or(UINT64_MAX), *high);
  const auto used = read_number(folder.path + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  // Version 1 writes "no limit" as the largest whole number of pages.
  if (!limit || !used || *limit > uint64_t{1} << 60) return std::nullopt;
  uint64_t files = 0;
  if (const auto stat = read_text(folder.path + "/memory.stat")) {
    const std::string_view prefix = v2 ? "" : "total_";
    for (const std::string_view name : {"inactive_file", "active_file"})
      files += field(*stat, fmt::format("{}{}", prefix, name)).value_or(0);
  }
  const uint64_t held = *used - std::min(*used, files);
  return Group{*limit, *limit - std::min(*limit, held)};
}

double gib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

}  // namespace

Result<MemoryLimits> read_memory_limits(const std::string& root) {
  const std::string path = root + "/proc/meminfo";
  SW_ASSIGN(const std::string text, read_text(path));
  const auto total = field(text, "MemTotal");
  const auto available = field(text, "MemAvailable");
  if (!total || !available) return invalid("{} has no MemTotal or no MemAvailable", path);
  MemoryLimits limits{*total, std::min(*available, *total), std::nullopt, ""};
  std::string source = "MemAvailable";
  for (const CgroupFolder& folder : cgroup_folders(root, "memory")) {
    const auto group = read_group(folder);
    if (!group) continue;
    limits.group_limit_bytes = std::min(limits.group_limit_bytes.value_or(UINT64_MAX), group->limit_bytes);
    limits.total_bytes = std::min(limits.total_bytes, group->limit_bytes);
    if (group->available_bytes < limits.available_bytes) {
      limits.available_bytes = group->available_bytes;
      source = folder.path;
    }
  }
  limits.explanation = fmt::format("available: {:.1f} of {:.1f} GiB ({})", gib(limits.available_bytes),
                                   gib(limits.total_bytes), source);
  return limits;
}

}  // namespace spillway::sys
