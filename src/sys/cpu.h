// Which processors this process may use, and how many threads are right: one per physical performance core,
// within the CPU quota of the control groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spillway::sys {

enum class CoreKind : uint8_t { kPerformance, kEfficiency };

// A logical processor that this process may run on.
struct Processor {
  uint32_t id = 0;
  uint32_t core = 0;  // the least id among the processors of its physical core (usable or not)
  CoreKind kind = CoreKind::kPerformance;
  bool operator==(const Processor&) const = default;
};

struct CpuTopology {
  std::vector<Processor> usable;  // ascending by id, never empty
  std::optional<double>
      quota_cpus;            // CPU time per time, the least along the control groups; nothing where unlimited
  std::string quota_source;  // the file that sets it
  std::string kind_source;   // how the kinds were told apart; empty where all are alike
};

// `root` is "" for this machine, or a folder that holds a made-up proc/ and sys/. `affinity` replaces what
// the system says about this process (sched_getaffinity for "", sys/devices/system/cpu/online for a made-up
// tree).
Result<CpuTopology> read_cpu_topology(const std::string& root = "",
                                      std::optional<std::vector<uint32_t>> affinity = std::nullopt);

struct ThreadChoice {
  uint32_t threads = 1;
  // Says what was counted and what was left out: "8 threads: 8 performance cores, one thread each (12
  // efficiency cores and 8 second threads of a core are left out)".
  std::string explanation;
};

// The default number of threads: one per physical core, of the performance cores where there are any, and at
// most floor(quota), but at least 1.
ThreadChoice choose_threads(const CpuTopology& topology);

// "0-3,8,10-11" as the kernel writes it; empty text is no processor.
Result<std::vector<uint32_t>> parse_cpu_list(std::string_view text);

// CPUs by "200000 100000" (cpu.max, version 2); nothing for "max ..." or what can't be read.
std::optional<double> parse_cpu_max(std::string_view text);

}  // namespace spillway::sys
