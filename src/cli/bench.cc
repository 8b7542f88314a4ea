// `spillway bench`: how fast settings are, alone and against each other, on plain tokens or on conversations.
#include <algorithm>

#include "base/limits.h"
#include "cli/arguments.h"
#include "cli/bench_details.h"
#include "cli/bench_job.h"
#include "cli/bench_measure.h"
#include "cli/bench_rows.h"
#include "cli/bench_table.h"
#include "cli/common.h"
#include "cli/output_file.h"
#include "cli/terminal.h"

namespace spillway::cli {
namespace {

struct BenchFlags {
  LoadSettingFlags load;
  BenchWorkFlags work;
  uint32_t repetitions = 5;
  std::vector<std::string> compared;
  std::string repeated, output = "text", file;
  bool json = false;

  void add_to(CLI::App& command);
};

void BenchFlags::add_to(CLI::App& command) {
  work.add_to(command);
  const char* group = "How it is run";
  command.add_option("-r,--repetitions", repetitions, "warm runs of each setting")
      ->check(CLI::Range(1u, limits::kMaxRepetitions))
      ->capture_default_str()
      ->group(group);
  CLI::Option* compare =
      command
          .add_option("--compare", compared,
                      "run the settings of these results again, in turn, and compare them with the first")
          ->group(group);
  command.add_option("--repeat", repeated, "run a result's settings again, and say what differs")
      ->excludes(compare)
      ->group(group);
  const char* shown = "What is shown";
  command
      .add_option("-o,--output", output,
                  "text, md (markdown), csv, json (the whole result, as --out writes it)")
      ->check(CLI::IsMember({"text", "md", "csv", "json"}))
      ->capture_default_str()
      ->group(shown);
  command
      .add_option("--out", file,
                  "write the result to this file, for --compare, --repeat and 'spillway report'")
      ->group(shown);
  command
      .add_flag("--json", json, "of a single setting on plain tokens: one object with speeds and counters")
      ->group(shown);
  load.add_to(command);
}

// The flags that say what is run come from the results.
Result<void> refuse_own_work(const CLI::App& command, const char* flag) {
  for (const char* own : {"--workload", "--users", "-p", "-n", "--ignore-eos", "-s"})
    if (command.count(own) > 0)
      return invalid("{} has nothing to do beside {}: the result says what is run", own, flag);
  return {};
}

Result<BenchJob> compared_job(const BenchFlags& flags) {
  if (flags.compared.size() < 2)
    return invalid("--compare needs two results or more, and {} was given", flags.compared.size());
  BenchJob job{.repetitions = 0};
  for (const std::string& path : flags.compared) {
    SW_ASSIGN(const report::ResultFile result, read_result(path));
    auto more = job_of_result(result, flags.load.model(), path.substr(path.find_last_of('/') + 1));
    if (!more) return std::unexpected(more.error().in(path));
    job.repetitions = std::max(job.repetitions, more->repetitions);
    for (BenchSetting& setting : more->settings) {
      if (!job.settings.empty() && setting.work != job.settings[0].work)
        return invalid("{} ran {} and {} ran {}: only what did the same work can be compared",
                       flags.compared[0], job.settings[0].work.text(), path, setting.work.text());
      const std::string& first =
          job.settings.empty() ? setting.load.flags().model : job.settings[0].load.flags().model;
      if (setting.load.flags().model != first)
        return invalid(
            "{} ran the model '{}' and {} ran '{}': -m FILE runs the settings of all with one file",
            flags.compared[0], first, path, setting.load.flags().model);
      job.settings.push_back(std::move(setting));
    }
  }
  return job;
}

// That what will be written replaces nothing that is read, before time is spent on measuring.
Result<void> check_outputs(const BenchFlags& flags, const BenchJob& job) {
  std::vector<std::string> inputs = flags.compared;
  inputs.push_back(flags.repeated);
  for (const BenchSetting& setting : job.settings) {
    inputs.push_back(setting.load.flags().model);
    inputs.push_back(setting.work.workload);
  }
  SW_TRY(check_output_file(flags.file, inputs));
  inputs.push_back(flags.file);
  for (const BenchSetting& setting : job.settings) SW_TRY(setting.load.flags().check_outputs(inputs));
  return {};
}

Result<void> show(const BenchFlags& flags, const BenchMeasurement& measured, const report::ResultFile& result,
                  const BenchJob& job) {
  const bool single = job.settings.size() == 1;
  if (flags.json) {
    SW_ASSIGN(const auto json, details_json(measured.engine(), result, job.settings[0].work));
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else if (flags.output == "json") {
    fmt::print("{}", report::to_json(result));
  } else if (flags.output == "text") {
    if (single && !job.settings[0].load.flags().quiet) fmt::print("{}\n", load_details(measured.engine()));
    fmt::print("{}", bench_tables(result, TableForm::kText));
    if (single) {
      SW_ASSIGN(const std::string details, run_details(measured.engine(), result, job.settings[0].work));
      fmt::print("{}", details);
    }
  } else {
    fmt::print("{}", bench_tables(result, flags.output == "md" ? TableForm::kMarkdown : TableForm::kCsv));
  }
  return {};
}

Result<int> bench(const BenchFlags& flags, const CLI::App& command) {
  catch_interrupts();
  BenchJob job;
  report::ResultFile earlier;
  if (!flags.repeated.empty()) {
    SW_TRY(refuse_own_work(command, "--repeat"));
    SW_ASSIGN(earlier, read_result(flags.repeated));
    auto repeated = job_of_result(earlier, flags.load.model(), "");
    if (!repeated) return std::unexpected(repeated.error().in(flags.repeated));
    job = std::move(*repeated);
  } else if (!flags.compared.empty()) {
    SW_TRY(refuse_own_work(command, "--compare"));
    SW_ASSIGN(job, compared_job(flags));
  } else {
    SW_ASSIGN(job, job_of_flags(flags.load, flags.work, flags.repetitions));
  }
  if (command.count("-r") > 0) job.repetitions = flags.repetitions;
  if (flags.json && (job.settings.size() > 1 || !job.settings[0].work.workload.empty()))
    return invalid("--json is for a single setting on plain tokens; -o json writes any result");

  SW_TRY(check_outputs(flags, job));
  BenchMeasurement measured(job);
  SW_TRY(measured.run());
  report::ResultFile& result = measured.result();
  result.command = command_line(command);
  conclude(result, measured.cache_bytes(), job.repetitions);
  if (measured.loads() > 1)
    result.notes.push_back(fmt::format(
        "The model was loaded {} times: some settings can't share a loaded one.", measured.loads()));
  // The tables show notes and differences below; what a program reads has no place where a person would see
  // them.
  const bool for_program = flags.json || flags.output == "json" || flags.output == "csv";
  if (!flags.repeated.empty()) {
    const std::vector<std::string> found = differences(earlier, result);
    result.conclusion += fmt::format("{}Against {}:", result.conclusion.empty() ? "" : "\n", flags.repeated);
    for (const std::string& difference : found) {
      result.conclusion += "\n  " + difference;
      if (for_program) note(fmt::format("against {}: {}", flags.repeated, difference));
    }
  }
  if (for_program)
    for (const std::string& word : result.notes) note(word);
  if (!flags.file.empty()) SW_TRY(write_output_file(flags.file, report::to_json(result)));
  if (job.settings.size() == 1) SW_TRY(write_records(job.settings[0].load.flags(), measured.engine()));
  SW_TRY(show(flags, measured, result, job));
  return result.runs.back().cut_short.empty() && !interrupted() ? kExitOk : kExitInterrupted;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand("bench", "Measure settings, alone and against each other");
  flags->add_to(*command);
  command->callback([flags, command, &exit_code] {
    const auto code = bench(*flags, *command);
    if (!code)
      exit_code = code.error().kind == Error::Kind::kCancelled ? (report(code.error()), kExitInterrupted)
                                                               : report(code.error());
    else
      exit_code = finish_output() == kExitOk ? *code : kExitError;
  });
}

}  // namespace spillway::cli
