// `spillway verify`: does the output stay what it should be? --exact: every bit, with ten settings of the
// cache; else how much settings, KV types and files differ from a reference.
#pragma once

#include <string>
#include <vector>

#include "cli/load_flags.h"
#include "tune/quality.h"

namespace spillway::cli {

struct VerifyFlags {
  LoadFlags load;       // lists (commas) in device, cache, share and KV types but for --exact
  uint32_t tokens = 0;  // 0: the default of each kind
  bool exact = false, json = false;
  // Without --exact:
  std::string text_file, out;
  std::vector<std::string> against;
  uint32_t generate = 64;
  uint64_t scratch_mib = 4096;
  tune::QualityLimits limits;
};

// The exit code, having printed what was found.
Result<int> verify_exact(const VerifyFlags& flags, const CLI::App& command);
Result<int> verify_quality(const VerifyFlags& flags, const CLI::App& command);

// Loads with a progress bar, and says nothing.
Result<std::unique_ptr<engine::Engine>> load_quietly(const engine::Options& options);

}  // namespace spillway::cli
