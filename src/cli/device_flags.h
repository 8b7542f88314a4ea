// The flags that say what runs beside the CPU, and how the expert cache behaves; with llama.cpp's names and
// meanings where it has them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/placement.h"

namespace spillway::cli {

struct DeviceFlags {
  std::string device = "auto";
  std::string layers = "auto";  // -ngl
  bool experts_on_host = false;
  uint32_t layers_with_host_experts = 0;
  std::string cache = "auto", share = "auto", policy = "crf", admit = "auto", promote = "auto",
              explore = "on";
  double half_life = 0;
  bool no_host = false;
  std::string on_loss = "fail";
  uint64_t host_device_mib = 0;

  void add_to(CLI::App& command);
  Result<engine::DeviceOptions> options(const CLI::App& command) const;

  // A sentence about each flag that was given and has nothing to do: without a device, or with this
  // placement.
  std::vector<std::string> without_device(const CLI::App& command) const;
  std::vector<std::string> without_use(const CLI::App& command, const engine::Placement& placement) const;
};

// "auto", or a number within [low, high]; the error names the flag.
Result<experts::Choice> parse_choice(std::string_view flag, std::string_view text, double low, double high);
// As engine::parse_cache_size(); the error names the flag.
Result<engine::CacheSize> parse_cache(std::string_view flag, std::string_view text);
// 0 (the policy's own), or at least a token; the error names the flag.
Result<void> check_half_life(double tokens);
// "on", "off", "auto"
experts::Promotion parse_promotion(std::string_view text);

}  // namespace spillway::cli
