#include "cli/device_flags.h"

#include <charconv>

#include "base/limits.h"

namespace spillway::cli {
namespace {

// The flags that mean nothing without a device, as people write them.
constexpr const char* kDeviceOnly[] = {"-ngl",
                                       "-cmoe",
                                       "-ncmoe",
                                       "--moe-cache-mib",
                                       "--moe-cache-cpu-share",
                                       "--moe-cache-policy",
                                       "--moe-cache-half-life",
                                       "--moe-cache-admit",
                                       "--moe-promote",
                                       "--moe-explore",
                                       "--no-host",
                                       "--on-device-loss"};

Result<std::optional<uint32_t>> layer_count(std::string_view text) {
  if (text == "auto") return std::nullopt;
  if (text == "all") return limits::kMaxLayers + 1;
  uint32_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size())
    return invalid("-ngl {}: auto, all or a number of layers is needed", text);
  return n;
}

}  // namespace

Result<experts::Choice> parse_choice(std::string_view flag, std::string_view text, double low, double high) {
  if (text == "auto") return experts::Choice::automatic();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= low && value <= high))
    return invalid("{} {}: auto or a number from {} to {} is needed", flag, text, low, high);
  return experts::Choice::number(value);
}

experts::Promotion parse_promotion(std::string_view text) {
  if (text == "on") return experts::Promotion::kOn;
  return text == "off" ? experts::Promotion::kOff : experts::Promotion::kAuto;
}

void DeviceFlags::add_to(CLI::App& command) {
  const char* group = "Device";
  command
      .add_option(
          "--device,--dev", device,
          "auto: the first GPU, or none; none: the CPU alone; vulkan[:N]; host: a pretended device for tests "
          "('spillway devices' lists them)")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--ngl,--n-gpu-layers", layers,
                  "the last N layers lie on the device, and the output where N is above their number; all; "
                  "auto: what "
                  "fits")
      ->capture_default_str()
      ->group(group);
  command.add_flag("--cmoe,--cpu-moe", experts_on_host, "all experts stay in host memory")->group(group);
  command
      .add_option("--ncmoe,--n-cpu-moe", layers_with_host_experts,
                  "experts of the first N layers stay in host memory, those of the others are resident on "
                  "the device; "
                  "without it, what is estimated to be best beside the cache")
      ->check(CLI::Range(0u, limits::kMaxLayers))
      ->group(group);
  command.add_flag("--no-host", no_host, "do not pin host memory for copies")->group(group);
  command
      .add_option(
          "--on-device-loss", on_loss,
          "fail: the request ends with an error, and so do later ones; host: later ones run on the CPU")
      ->check(CLI::IsMember({"fail", "host"}))
      ->capture_default_str()
      ->group(group);
  command.add_option("--host-device-mib", host_device_mib, "memory of the device 'host'; 0: what is free")
      ->capture_default_str()
      ->group(group);

  const char* experts = "Expert cache (experts in host memory)";
  command
      .add_option("--moe-cache-mib", cache,
                  "size of the cache on the device: MiB, a share of the experts (25%), experts (64s), auto: "
                  "all that is "
                  "left; 0: none")
      ->capture_default_str()
      ->group(experts);
  command
      .add_option(
          "--moe-cache-cpu-share", share,
          "of the experts that are not in the cache, the share that the CPU computes, 0 to 1 (lowest scores; "
          "once the cache is full); auto: whatever ends sooner, expert by expert")
      ->capture_default_str()
      ->group(experts);
  command
      .add_option("--moe-cache-policy", policy,
                  "which expert goes first: crf (decayed use counts), lru, static, b12191 (llama.cpp's)")
      ->check(CLI::IsMember({"crf", "lru", "static", "b12191"}))
      ->capture_default_str()
      ->group(experts);
  command
      .add_option("--moe-cache-half-life", half_life,
                  "tokens after which a use counts half; 0: the policy's own")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str()
      ->group(experts);
  command
      .add_option("--moe-cache-admit", admit,
                  "a newcomer replaces an expert only if its score is this many times as high, 0 to 1000; "
                  "auto: found "
                  "while running. 0 where the share is a number, unless it is given")
      ->capture_default_str()
      ->group(experts);
  command
      .add_option("--moe-promote", promote,
                  "copy wanted experts while the link is idle: on, off, auto. off where the share is a "
                  "number, unless it "
                  "is given")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->capture_default_str()
      ->group(experts);
  command
      .add_option("--moe-explore", explore,
                  "try other settings now and then while running (costs at most 1 %)")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str()
      ->group(experts);
}

Result<engine::DeviceOptions> DeviceFlags::options(const CLI::App& command) const {
  const auto given = [&](const char* name) { return command.count(name) > 0; };
  engine::DeviceOptions options{.device = device,
                                .experts_on_host = experts_on_host,
                                .pin = !no_host,
                                .continue_on_host = on_loss == "host"};
  options.host.memory_bytes = host_device_mib << 20;
  SW_ASSIGN(options.layers, layer_count(layers));
  if (given("--ncmoe")) options.layers_with_host_experts = layers_with_host_experts;
  SW_ASSIGN(options.cache, engine::parse_cache_size(cache));
  experts::PlannerSettings& planner = options.planner;
  SW_ASSIGN(planner.policy.kind, experts::parse_policy(policy));
  if (half_life > 0 && half_life < 1)
    return invalid("--moe-cache-half-life {}: 0, or at least 1 token", half_life);
  planner.policy.half_life = half_life;
  SW_ASSIGN(planner.cpu_share, parse_choice("--moe-cache-cpu-share", share, 0, 1));
  if (given("--moe-cache-admit")) {
    SW_ASSIGN(planner.admit, parse_choice("--moe-cache-admit", admit, 0, 1000));
  }
  if (given("--moe-promote")) planner.promote = parse_promotion(promote);
  planner.explore = explore == "on";
  return options;
}

std::vector<std::string> DeviceFlags::without_device(const CLI::App& command) const {
  std::vector<std::string> words;
  for (const std::string name : kDeviceOnly)
    if (command.count(name.starts_with("--") ? name : "-" + name) > 0)
      words.push_back(fmt::format("{} has no effect: the CPU runs alone", name));
  return words;
}

}  // namespace spillway::cli
