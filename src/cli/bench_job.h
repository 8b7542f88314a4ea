// What a call of `bench` is to do: from its flags, or from results that are to be compared or repeated.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/bench_work.h"
#include "cli/load_settings.h"
#include "report/result.h"

namespace spillway::cli {

struct BenchSetting {
  std::string name;
  LoadSetting load;
  BenchWork work;
};

struct BenchJob {
  std::vector<BenchSetting> settings;  // never empty
  uint32_t repetitions = 5;
};

inline constexpr size_t kMostSettings = 64;  // a table that a person can read

// Every combination of the flags, named after what differs between them.
Result<BenchJob> job_of_flags(const LoadSettingFlags& load, const BenchWorkFlags& work, uint32_t repetitions);

// The settings of a result, as often as they ran then. `model`: instead of the file that was run then, unless
// it is empty. `names`: put before the names of the settings.
Result<BenchJob> job_of_result(const report::ResultFile& result, const std::string& model,
                               const std::string& name);

Result<report::ResultFile> read_result(const std::string& path);

}  // namespace spillway::cli
