// What `bench` runs for each setting, and how often; as flags, and as they are kept in a result.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/load_settings.h"
#include "tune/workload.h"

namespace spillway::cli {

struct BenchWork {
  std::string workload;                   // a built-in name or a file; empty: plain tokens
  uint32_t users = 0;                     // 0: as many as the workload says
  uint32_t prompt = 512, generate = 128;  // of plain tokens
  uint32_t max_tokens = 0;                // of each answer; 0: the workload's
  bool ignore_eos = false;
  uint64_t seed = 0;
  bool operator==(const BenchWork&) const = default;

  // Among the flags of a report::Setting.
  void write(FlagValues& flags) const;
  // Takes its flags out of the others.
  static Result<BenchWork> take(FlagValues& flags);

  std::string text() const;  // "workload 'chat'", "a prompt of 512 tokens, then 128 single ones"
  Result<std::optional<tune::Workload>> load() const;  // nothing for plain tokens
  // Positions of the KV cache that it takes.
  Result<uint32_t> context(const std::optional<tune::Workload>& loaded,
                           const text::Tokenizer& tokenizer) const;
};

// The flags of it on a command line; -p and -n may be lists.
class BenchWorkFlags {
 public:
  void add_to(CLI::App& command);
  // What was asked for, every combination. Errors: flags that contradict each other.
  Result<std::vector<BenchWork>> combinations() const;

 private:
  BenchWork work_;
  std::string prompt_ = "512", generate_ = "128";
  const CLI::App* command_ = nullptr;
};

}  // namespace spillway::cli
