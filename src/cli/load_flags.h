// The flags that say which model is loaded and how; every command that loads one has them all.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/device_flags.h"
#include "engine/engine.h"

namespace spillway::cli {

struct LoadFlags {
  std::string model;
  std::string load_mode = "auto";
  std::string key_type = "f16", value_type = "f16";
  std::string instruction_set = "auto";
  uint32_t threads = 0;
  uint32_t context = 0;
  uint32_t batch = 0;
  uint32_t ubatch = 512;
  bool quiet = false;
  DeviceFlags device;
  std::string stats_file, timeline_file;
  std::string profile = "none";  // what was tuned (cli/tuned.h)

  void add_to(CLI::App& command);
  // --stats-json and --timeline, for commands whose run is one; after add_to().
  void add_records_to(CLI::App& command);
  // --profile, for commands that use what was tuned where it holds; after add_to().
  void add_profile_to(CLI::App& command);
  Result<engine::Options> options(const CLI::App& command) const;

  // What will be written later: refused now where it would replace the model, one of the other files that are
  // read or written, or each other.
  Result<void> check_outputs(const std::vector<std::string>& others = {}) const;

  // Words about flags that were given and have nothing to do here.
  std::vector<std::string> without_effect(const CLI::App& command) const;
};

// As -lm takes it.
engine::LoadMode parse_load_mode(std::string_view text);

// Opens the model with a progress bar, and says what is in force where standard error is a terminal or
// `verbose`.
Result<std::unique_ptr<engine::Engine>> load_engine(const LoadFlags& flags, const CLI::App& command);

// What a person should know of a loaded model, a sentence each: flags that have nothing to do, parts of the
// file that are not used, a context beyond the trained one, what the engine says.
std::vector<std::string> words_about_load(const LoadFlags& flags, const CLI::App& command,
                                          const engine::Engine& engine);

// Writes what --stats-json and --timeline ask for.
Result<void> write_records(const LoadFlags& flags, const engine::Engine& engine);

// "qwen3moe, 24 layers, ...; read, interleaved (fits); 2 threads (2 cores allowed); ..."
std::string describe_load(const engine::Engine& engine);

}  // namespace spillway::cli
