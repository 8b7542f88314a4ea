// What `verify` compares with its reference, from the flags.
#pragma once

#include <string>
#include <vector>

#include "cli/load_settings.h"
#include "cli/verify.h"

namespace spillway::cli {

struct Alternative {
  std::string name;  // what is special about it: "cache 25%, share auto, host"
  engine::Options options;
  FlagValues flags;            // all load flags with the values of this one
  bool must_be_equal = false;  // the same model and KV types: every bit is promised
};

// The CPU alone, KV cache of f16.
Result<Alternative> reference(const VerifyFlags& flags, const CLI::App& command);

// Of the device: every pair of the sizes and shares that were given. Of the CPU alone: every other pair of KV
// types, and every other file. At least one, or an error that says what could be given.
Result<std::vector<Alternative>> alternatives(const VerifyFlags& flags, const CLI::App& command);

}  // namespace spillway::cli
