// What `verify` compares with its reference, from the flags.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/verify.h"

namespace spillway::cli {

struct Alternative {
  std::string name;  // what is special about it: "cache 25%, share auto, host"
  engine::Options options;
  std::map<std::string, std::string> flags;  // that make it so
  bool must_be_equal = false;                // the same model and KV types: every bit is promised
};

// The CPU alone, KV cache of f16.
Result<engine::Options> reference_options(const VerifyFlags& flags, const CLI::App& command);

// Of the device: every pair of the sizes and shares that were given. Of the CPU alone: every other pair of KV
// types, and every other file. At least one, or an error that says what could be given.
Result<std::vector<Alternative>> alternatives(const VerifyFlags& flags, const CLI::App& command);

}  // namespace spillway::cli
