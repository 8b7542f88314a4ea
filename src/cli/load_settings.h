// Settings of a model's load flags as values that can be kept in a file, and several of them in one command
// line:
// "-t 1,2 --moe-cache-mib 0,25%" is four.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/load_flags.h"

namespace spillway::cli {

using FlagValues = std::map<std::string, std::string>;  // by the flag's name as people write it: "-t", "-ngl"

// A setting, parsed as the command line would be.
class LoadSetting {
 public:
  // Flags that are not given have their defaults. An error for a name that is no load flag; CLI::ParseError
  // is thrown for a value that the flag does not take, as it is for the command line.
  static Result<LoadSetting> parse(const FlagValues& given);

  const LoadFlags& flags() const { return *flags_; }
  const CLI::App& command() const { return *command_; }
  // Every flag that is in force, with its value: parse() of it gives the same setting. Of the flags that mean
  // something else where they are not given at all, only those that are.
  FlagValues all() const;

 private:
  std::unique_ptr<LoadFlags> flags_;  // their places are known to the command
  std::unique_ptr<CLI::App> command_;
};

// Of any command that loads a model: its load flags with their values, as LoadSetting::all() has them.
FlagValues load_flags_of(const CLI::App& command);
// What `auto` and 0 came to when the model was loaded: threads, context, micro-batch, loading mode and
// device.
void take_effective(FlagValues& flags, const engine::Engine& engine);

// The load flags of a command, each of which may be a list of values (but the model's and the files').
class LoadSettingFlags {
 public:
  void add_to(CLI::App& command);
  std::string model() const;
  // Every combination of what was given; the last flag changes first. CLI::ParseError is thrown for an empty
  // place in a list.
  std::vector<FlagValues> combinations() const;

 private:
  struct Flag {
    std::string name;
    bool is_list = true;
    const CLI::Option* option = nullptr;
    std::string value;
    bool on = false;  // of a flag without a value
  };
  std::vector<std::unique_ptr<Flag>> flags_;
};

// The parts of a list; CLI::ParseError is thrown for an empty one. `flag` is for the message.
std::vector<std::string> split_list(const std::string& flag, const std::string& text);

}  // namespace spillway::cli
