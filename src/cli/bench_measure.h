// Runs the settings of a job in turn, and reverses the order each time, so that what slows the machine for a
// while slows all of them alike.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/bench_job.h"
#include "cli/progress_bar.h"
#include "engine/engine.h"
#include "report/result.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "tune/workload.h"

namespace spillway::cli {

class BenchMeasurement {
 public:
  explicit BenchMeasurement(const BenchJob& job);

  // A turn for each repetition. A run is cold where the weights were just loaded or the expert cache was just
  // emptied; each cold run is followed by a warm one of the same setting. Ctrl-C ends it: what was measured
  // is kept, and `cut_short` of the last run says so.
  Result<void> run();

  // With build, model, machine, workload, settings and runs; rows and words are left to the caller.
  report::ResultFile& result() { return result_; }
  // Of each setting, as far as it has run: bytes of its expert cache.
  const std::vector<double>& cache_bytes() const { return cache_bytes_; }
  // The model as it was loaded last.
  const engine::Engine& engine() const { return *engine_; }
  uint32_t loads() const { return loads_; }

 private:
  Result<void> turn(size_t setting, uint32_t repetition);
  Result<void> one_run(size_t setting, uint32_t repetition);
  Result<void> activate(size_t setting);
  Result<void> load(size_t setting);
  Result<void> read_works();
  Result<void> take_facts();
  void estimate_runs();
  void note_words();
  bool is_single() const { return job_.settings.size() == 1; }
  const tune::Workload* workload(size_t setting) const;

  const BenchJob& job_;
  std::vector<std::optional<tune::Workload>> workloads_;  // (settings)
  std::vector<uint32_t> contexts_;                        // (settings) that they take
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::optional<text::ChatTemplate> chat_template_;
  std::vector<int32_t> text_;  // plain tokens
  std::optional<size_t> active_;
  bool cold_ = true;
  bool stopped_ = false;
  uint32_t loads_ = 0;
  std::map<std::string, std::set<size_t>> words_;  // about loading, and the settings that they are about
  std::vector<std::string> decided_;  // (settings) what the split of the misses came to: a sentence
  std::vector<double> cache_bytes_;
  report::ResultFile result_;
  size_t runs_expected_ = 0;
  ProgressBar bar_;
};

}  // namespace spillway::cli
