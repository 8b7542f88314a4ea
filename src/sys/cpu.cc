#include "sys/cpu.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/limits.h"
#include "sys/affinity.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "sys/text.h"

namespace spillway::sys {
namespace {

// Processors the kernel can number; far above what exists, below what would make a list of ids a problem.
constexpr uint64_t kMaxProcessors = 1 << 16;

// A core is an efficiency core where its capacity (or top frequency) is below this part of the best one's.
// Cores of one kind differ by up to 10 % (favoured cores of a package, "prime" cores of a phone); kinds
// differ by 30 % and more.
constexpr double kEfficiencyBelow = 0.75;

std::string cpu_path(const std::string& root, uint32_t id, std::string_view file) {
  return fmt::format("{}/sys/devices/system/cpu/cpu{}/{}", root, id, file);
}

std::vector<uint32_t> list_in_file(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return {};
  return parse_cpu_list(trim(*text)).value_or(std::vector<uint32_t>());
}

uint32_t core_of(const std::string& root, uint32_t id) {
  for (const std::string_view file : {"topology/core_cpus_list", "topology/thread_siblings_list"}) {
    const auto siblings = list_in_file(cpu_path(root, id, file));
    if (std::ranges::find(siblings, id) != siblings.end()) return std::ranges::min(siblings);
  }
  return id;
}

// Marks the efficiency cores; the way they were found, or "" where all are alike.
std::string mark_kinds(const std::string& root, std::vector<Processor>& processors) {
  // Intel's hybrid processors have a device for each kind.
  const auto atoms = list_in_file(root + "/sys/devices/cpu_atom/cpus");
  const auto cores = list_in_file(root + "/sys/devices/cpu_core/cpus");
  if (!atoms.empty() && !cores.empty()) {
    for (Processor& processor : processors)
      if (std::ranges::binary_search(atoms, processor.id)) processor.kind = CoreKind::kEfficiency;
    return "sys/devices/cpu_atom";
  }
  for (const std::string_view file : {"cpu_capacity", "cpufreq/cpuinfo_max_freq"}) {
    std::vector<uint64_t> ratings;
    for (const Processor& processor : processors)
      if (const auto rating = read_number(cpu_path(root, processor.id, file))) ratings.push_back(*rating);
    if (ratings.size() != processors.size()) continue;  // unknown for some: can't compare
    const double best = static_cast<double>(std::ranges::max(ratings));
    bool any = false;
    for (size_t i = 0; i < processors.size(); ++i) {
      if (static_cast<double>(ratings[i]) >= kEfficiencyBelow * best) continue;
      processors[i].kind = CoreKind::kEfficiency;
      any = true;
    }
    if (any) return std::string(file);
  }
  return "";
}

// CPUs that one control group allows.
std::optional<double> quota_of(const CgroupFolder& folder) {
  if (folder.version == 2) {
    const auto text = read_text(folder.path + "/cpu.max");
    return text ? parse_cpu_max(*text) : std::nullopt;
  }
  const auto quota = read_number(folder.path + "/cpu.cfs_quota_us");  // -1: none
  const auto period = read_number(folder.path + "/cpu.cfs_period_us");
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::string plural(size_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

}  // namespace

Result<std::vector<uint32_t>> parse_cpu_list(std::string_view text) {
  std::set<uint32_t> ids;
  for (const std::string_view part : split(text, ',')) {
    const size_t dash = part.find('-');
    const auto first = parse_number(trim(part.substr(0, dash)));
    const auto last = dash == part.npos ? first : parse_number(trim(part.substr(dash + 1)));
    if (!first || !last || *first > *last || *last >= kMaxProcessors)
      return invalid("'{}' is no list of processors such as 0-3,8", text);
    for (uint64_t id = *first; id <= *last; ++id) ids.insert(static_cast<uint32_t>(id));
  }
  return std::vector<uint32_t>(ids.begin(), ids.end());
}

std::optional<double> parse_cpu_max(std::string_view text) {
  const auto parts = split(trim(text), ' ');
  if (parts.empty()) return std::nullopt;
  const auto quota = parse_number(parts[0]);
  const auto period =
      parts.size() > 1 ? parse_number(parts[1]) : std::optional<uint64_t>(100000);  // the kernel's default
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

Result<CpuTopology> read_cpu_topology(const std::string& root,
                                      std::optional<std::vector<uint32_t>> affinity) {
  if (!affinity && root.empty()) affinity = allowed_processors();
  if (!affinity) affinity = list_in_file(root + "/sys/devices/system/cpu/online");
  std::ranges::sort(*affinity);
  CpuTopology topology;
  for (const uint32_t id : *affinity)
    topology.usable.push_back({id, core_of(root, id), CoreKind::kPerformance});
  if (topology.usable.empty())
    return fail(Error::Kind::kNotFound,
                "no processor that this process may use was found; name the number of threads with -t");
  topology.kind_source = mark_kinds(root, topology.usable);
  for (const CgroupFolder& folder : cgroup_folders(root, "cpu")) {
    const auto quota = quota_of(folder);
    if (!quota || (topology.quota_cpus && *topology.quota_cpus <= *quota)) continue;
    topology.quota_cpus = quota;
    topology.quota_source = folder.path + (folder.version == 2 ? "/cpu.max" : "/cpu.cfs_quota_us");
  }
  return topology;
}

ThreadChoice choose_threads(const CpuTopology& topology) {
  std::map<uint32_t, CoreKind> cores;
  for (const Processor& processor : topology.usable) cores.emplace(processor.core, processor.kind);
  const size_t fast = static_cast<size_t>(
      std::ranges::count_if(cores, [](const auto& core) { return core.second == CoreKind::kPerformance; }));
  const size_t slow = cores.size() - fast;
  const size_t second = topology.usable.size() - cores.size();
  const size_t wanted = std::clamp<size_t>(fast > 0 ? fast : slow, 1, limits::kMaxThreads);

  ThreadChoice choice;
  choice.threads = static_cast<uint32_t>(wanted);
  const bool mixed = fast > 0 && slow > 0;
  std::string why = fmt::format("{}, one thread each", plural(wanted, mixed ? "performance core" : "core"));
  std::string left_out;
  if (mixed) left_out = plural(slow, "efficiency core");
  if (second > 0)
    left_out +=
        fmt::format("{}{}", left_out.empty() ? "" : " and ", plural(second, "second thread") + " of a core");
  if (!left_out.empty()) why += fmt::format(" (left out: {})", left_out);
  if (topology.quota_cpus && *topology.quota_cpus < static_cast<double>(wanted)) {
    choice.threads = std::max(1u, static_cast<uint32_t>(*topology.quota_cpus));
    why += fmt::format(", but a CPU quota of {:.2f} ({})", *topology.quota_cpus, topology.quota_source);
  }
  choice.explanation = fmt::format("{}: {}", plural(choice.threads, "thread"), why);
  return choice;
}

}  // namespace spillway::sys
