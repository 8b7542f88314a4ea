#include "sys/usage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "sys/affinity.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "sys/text.h"

namespace spillway::sys {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// Busy ticks of a line of /proc/stat: user nice system idle iowait irq softirq steal; what follows is counted
// in user and nice already.
uint64_t busy_ticks(const std::vector<std::string_view>& fields) {
  constexpr size_t kIdle = 4, kIoWait = 5, kSteal = 8;
  uint64_t ticks = 0;
  for (size_t i = 1; i < fields.size() && i <= kSteal; ++i)
    if (i != kIdle && i != kIoWait) ticks += parse_number(fields[i]).value_or(0);
  return ticks;
}

double machine_cpu_seconds(const std::string& root) {
  const auto text = read_text(root + "/proc/stat");
  if (!text) return 0;
  const std::vector<uint32_t> allowed = root.empty() ? allowed_processors() : std::vector<uint32_t>();
  uint64_t ticks = 0;
  for (const std::string_view line : split(*text, '\n')) {
    const auto fields = split(line, ' ');
    if (fields.empty() || !fields[0].starts_with("cpu")) continue;
    const auto id = parse_number(fields[0].substr(3));
    if (id && (allowed.empty() || std::ranges::find(allowed, *id) != allowed.end()))
      ticks += busy_ticks(fields);
  }
  return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Of all groups along the way: any of them can be the one that throttles.
double throttled_seconds(const std::string& root) {
  double sum = 0;
  for (const CgroupFolder& folder : cgroup_folders(root, "cpu")) {
    const auto text = read_text(folder.path + "/cpu.stat");
    if (!text) continue;
    for (const std::string_view line : split(*text, '\n')) {
      const auto fields = split(line, ' ');
      if (fields.size() != 2) continue;
      const auto value = static_cast<double>(parse_number(fields[1]).value_or(0));
      if (fields[0] == "throttled_usec") sum += value * 1e-6;  // version 2
      if (fields[0] == "throttled_time") sum += value * 1e-9;  // version 1
    }
  }
  return sum;
}

}  // namespace

Usage read_usage(const std::string& root) {
  Usage usage{.machine_cpu_s = machine_cpu_seconds(root), .throttled_s = throttled_seconds(root)};
  rusage own{};
  if (getrusage(RUSAGE_SELF, &own) == 0) usage.process_cpu_s = seconds(own.ru_utime) + seconds(own.ru_stime);
  return usage;
}

uint64_t peak_memory_bytes(const std::string& root) {
  const auto text = read_text(root + "/proc/self/status");
  if (!text) return 0;
  for (const std::string_view line : split(*text, '\n'))
    if (line.starts_with("VmHWM:")) {
      const auto fields = split(trim(line.substr(6)), ' ');
      return fields.empty() ? 0 : parse_number(fields[0]).value_or(0) * 1024;
    }
  return 0;
}

bool reset_peak_memory() {
  const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool done = write(file, "5", 1) == 1;
  close(file);
  return done;
}

}  // namespace spillway::sys
