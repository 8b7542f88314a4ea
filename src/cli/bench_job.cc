#include "cli/bench_job.h"

#include <algorithm>

#include "base/limits.h"
#include "cli/model_text.h"

namespace spillway::cli {
namespace {

// Names of settings: the flags of each whose values are not the same in all; of a single one all that were
// given.
std::vector<std::string> names_of(const std::vector<FlagValues>& given) {
  std::vector<std::string> names;
  for (const FlagValues& flags : given) {
    std::string name;
    for (const auto& [flag, value] : flags) {
      if (flag == "-m" || flag == "-q" || flag == "--stats-json" || flag == "--timeline") continue;
      const bool differs = std::ranges::any_of(given, [&](const FlagValues& other) {
        const auto found = other.find(flag);
        return found == other.end() || found->second != value;
      });
      if (given.size() == 1 || differs)
        name += fmt::format("{}{}{}", name.empty() ? "" : " ", flag, value == "on" ? "" : " " + value);
    }
    if (name.empty()) name = "default";
    const auto same = std::ranges::count(names, name);
    names.push_back(same == 0 ? name : fmt::format("{} #{}", name, same + 1));
  }
  return names;
}

}  // namespace

Result<BenchJob> job_of_flags(const LoadSettingFlags& load, const BenchWorkFlags& work,
                              uint32_t repetitions) {
  if (load.model().empty()) throw CLI::RequiredError("-m");
  BenchJob job{.repetitions = repetitions};
  const std::vector<FlagValues> loads = load.combinations();
  SW_ASSIGN(const std::vector<BenchWork> works, work.combinations());
  if (loads.size() * works.size() > kMostSettings)
    return invalid("the lists make {} settings, at most {} are possible", loads.size() * works.size(),
                   kMostSettings);
  std::vector<FlagValues> given;
  for (const BenchWork& each : works)
    for (const FlagValues& flags : loads) {
      FlagValues named = given.emplace_back(flags);
      if (works.size() > 1) each.write(given.back());
      SW_ASSIGN(LoadSetting setting, LoadSetting::parse(flags));
      job.settings.push_back({.load = std::move(setting), .work = each});
    }
  const std::vector<std::string> names = names_of(given);
  for (size_t i = 0; i < names.size(); ++i) job.settings[i].name = names[i];
  if (job.settings.size() > 1)
    for (const char* flag : {"--stats-json", "--timeline"})
      if (given[0].contains(flag))
        return invalid(
            "{} is for a single setting, and this call has {}; --out FILE keeps the figures of all", flag,
            job.settings.size());
  return job;
}

Result<BenchJob> job_of_result(const report::ResultFile& result, const std::string& model,
                               const std::string& name) {
  if (result.kind != "bench")
    return unsupported("this is a result of '{}', and only those of 'bench' can be run again", result.kind);
  if (result.settings.empty()) return invalid("the result has no settings");
  BenchJob job;
  std::vector<uint32_t> warm_runs(result.settings.size());
  for (const report::Run& run : result.runs) warm_runs[run.setting] += run.warm ? 1 : 0;
  job.repetitions = std::clamp<uint32_t>(std::ranges::max(warm_runs), 1, limits::kMaxRepetitions);
  for (const report::Setting& setting : result.settings) {
    FlagValues flags = setting.flags;
    SW_ASSIGN(BenchWork work, BenchWork::take(flags));
    for (const char* flag : {"--stats-json", "--timeline", "-q"}) flags.erase(flag);
    if (!model.empty()) flags["-m"] = model;
    if (flags["-m"].empty())
      return invalid("the result does not say where its model is ({}): give the file with -m",
                     result.model.file);
    auto load = LoadSetting::parse(flags);
    if (!load) return std::unexpected(load.error().in(fmt::format("setting '{}'", setting.name)));
    job.settings.push_back({.name = name.empty() ? setting.name : fmt::format("{}: {}", name, setting.name),
                            .load = std::move(*load),
                            .work = work});
  }
  return job;
}

Result<report::ResultFile> read_result(const std::string& path) {
  SW_ASSIGN(const std::string text, read_text_file(path, limits::kMaxResultBytes));
  auto result = report::parse_result(text);
  if (!result) return std::unexpected(result.error().in(path));
  return result;
}

}  // namespace spillway::cli
