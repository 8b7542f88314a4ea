// Settings that `spillway tune` found, and how later runs come to them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "engine/engine.h"
#include "tune/tuned_profile.h"

namespace spillway::cli {

// $XDG_CONFIG_HOME/spillway/tuned, or ~/.config/spillway/tuned.
std::string tuned_folder();

// Those flags that were given which decide what lies where, as they were given.
std::map<std::string, std::string> placement_flags(const CLI::App& command);

// The machine as tuned settings are kept for it: a device that is made of host memory has as much as happens
// to be free, which is no reason for others.
report::Machine machine_of(report::Machine machine, const backend::DeviceInfo& device);

// Puts what was tuned in the place of what was left open in the options: flags given by hand win. `choice` is
// --profile: none, auto (the one of this model and machine, if there is one that holds), or a file. Says what
// is used, and what is not and why. Error: a file that was named and can't be read or does not hold.
struct TunedUse {
  bool used = false;
  bool cache = false;  // the cache's size is the tuned one
};
Result<TunedUse> use_tuned(const std::string& choice, const CLI::App& command, engine::Options& options);

}  // namespace spillway::cli
