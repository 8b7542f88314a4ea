#include "cli/device_flags.h"

#include <charconv>

#include "base/limits.h"
#include "cli/arguments.h"

namespace spillway::cli {
namespace {

// The flags that mean nothing without a device, as people write them.
constexpr const char* kDeviceOnly[] = {"--host-device-mib",
                                       "-ngl",
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

constexpr uint64_t kMostHostDeviceMib = uint64_t{64} << 20;  // 64 TiB: what a process can address

// Of these, what needs a cache.
constexpr const char* kCacheOnly[] = {"--moe-cache-policy", "--moe-cache-half-life", "--moe-cache-admit",
                                      "--moe-promote"};

// Whether a flag was given, by its name as people write it.
bool given(const CLI::App& command, const std::string& name) {
  return command.count(name.starts_with("--") ? name : "-" + name) > 0;
}

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

Result<void> check_half_life(double tokens) {
  if (!(tokens == 0 || tokens >= 1))
    return invalid("--moe-cache-half-life {}: 0, or at least 1 token", tokens);
  return {};
}

Result<engine::CacheSize> parse_cache(std::string_view flag, std::string_view text) {
  auto size = engine::parse_cache_size(text);
  if (!size) return std::unexpected(size.error().in(flag));
  return size;
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
      ->check(CLI::Range(uint64_t{0}, kMostHostDeviceMib))
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
      ->check(NumberWithin(0.0, 1e6))
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
  engine::DeviceOptions options{.device = device,
                                .experts_on_host = experts_on_host,
                                .pin = !no_host,
                                .continue_on_host = on_loss == "host"};
  options.host.memory_bytes = host_device_mib << 20;
  SW_ASSIGN(options.layers, layer_count(layers));
  if (given(command, "-ncmoe")) options.layers_with_host_experts = layers_with_host_experts;
  SW_ASSIGN(options.cache, parse_cache("--moe-cache-mib", cache));
  experts::PlannerSettings& planner = options.planner;
  SW_ASSIGN(planner.policy.kind, experts::parse_policy(policy));
  SW_TRY(check_half_life(half_life));
  planner.policy.half_life = half_life;
  SW_ASSIGN(planner.cpu_share, parse_choice("--moe-cache-cpu-share", share, 0, 1));
  if (given(command, "--moe-cache-admit")) {
    SW_ASSIGN(planner.admit, parse_choice("--moe-cache-admit", admit, 0, 1000));
  }
  if (given(command, "--moe-promote")) planner.promote = parse_promotion(promote);
  planner.explore = explore == "on";
  return options;
}

std::vector<std::string> DeviceFlags::without_device(const CLI::App& command) const {
  std::vector<std::string> words;
  for (const std::string name : kDeviceOnly)
    if (given(command, name)) words.push_back(fmt::format("{} has no effect: the CPU runs alone", name));
  return words;
}

std::vector<std::string> DeviceFlags::without_use(const CLI::App& command,
                                                  const engine::Placement& placement) const {
  std::vector<std::string> words;
  if (given(command, "-cmoe") && given(command, "-ncmoe"))
    words.push_back("-ncmoe has no effect beside -cmoe: the experts of all layers stay in host memory");
  if (given(command, "--host-device-mib") && device != "host")
    words.push_back("--host-device-mib has no effect: it is for '--device host'");
  const bool planned = placement.n_planned_layers() > 0;
  std::string why;
  if (!planned)
    why = placement.n_resident_layers() > 0 ? "the experts of all layers on the device are resident there"
                                            : "no layer with experts lies on the device";
  else if (placement.cache_bytes() == 0)
    why = "there is no cache";
  if (why.empty()) return words;
  for (const std::string name : kCacheOnly)
    if (given(command, name)) words.push_back(fmt::format("{} has no effect: {}", name, why));
  if (!planned && given(command, "--moe-cache-cpu-share"))
    words.push_back(fmt::format("--moe-cache-cpu-share has no effect: {}", why));
  return words;
}

}  // namespace spillway::cli
