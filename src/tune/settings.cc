#include "tune/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/cache_size.h"

namespace spillway::tune {
namespace {

using experts::Choice;
using experts::Promotion;

constexpr double kMib = 1024.0 * 1024.0;

std::string choice_text(const Choice& choice) {
  return choice.is_number() ? fmt::format("{}", choice.value) : "auto";
}

std::string cache_text(const Settings& settings) {
  return settings.cache_bytes ? fmt::format("{}", static_cast<double>(*settings.cache_bytes) / kMib) : "auto";
}

const char* promotion_text(Promotion promote) {
  return promote == Promotion::kOn ? "on" : promote == Promotion::kOff ? "off" : "auto";
}

template <class Number>
Result<Number> number(const std::string& flag, const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return invalid("{} {}: a number is needed", flag, text);
  return value;
}

Result<Choice> choice(const std::string& flag, const std::string& text) {
  if (text == "auto") return Choice::automatic();
  SW_ASSIGN(const double value, number<double>(flag, text));
  return Choice::number(value);
}

}  // namespace

std::map<std::string, std::string> flags_of(const Settings& settings) {
  std::map<std::string, std::string> flags{{"--moe-cache-mib", cache_text(settings)},
                                           {"--moe-cache-cpu-share", choice_text(settings.cpu_share)}};
  if (settings.admit.kind != Choice::Kind::kUnset) flags["--moe-cache-admit"] = choice_text(settings.admit);
  if (settings.promote != Promotion::kUnset) flags["--moe-promote"] = promotion_text(settings.promote);
  if (settings.ubatch > 0) flags["-ub"] = fmt::format("{}", settings.ubatch);
  if (settings.threads > 0) flags["-t"] = fmt::format("{}", settings.threads);
  if (!settings.load_mode.empty()) flags["-lm"] = settings.load_mode;
  return flags;
}

Result<Settings> settings_of(const std::map<std::string, std::string>& flags) {
  Settings settings;
  for (const auto& [flag, text] : flags) {
    if (flag == "--moe-cache-mib") {
      const auto size = engine::parse_cache_size(text);
      if (!size) return std::unexpected(size.error().in(flag));
      if (size->unit == engine::CacheSize::Unit::kAuto) continue;
      if (size->unit != engine::CacheSize::Unit::kMib) return invalid("{} {}: MiB are needed", flag, text);
      settings.cache_bytes = static_cast<uint64_t>(size->value * kMib);
    } else if (flag == "--moe-cache-cpu-share") {
      SW_ASSIGN(settings.cpu_share, choice(flag, text));
    } else if (flag == "--moe-cache-admit") {
      SW_ASSIGN(settings.admit, choice(flag, text));
    } else if (flag == "--moe-promote") {
      if (text != "on" && text != "off" && text != "auto")
        return invalid("{} {}: on, off or auto is needed", flag, text);
      settings.promote = text == "on" ? Promotion::kOn : text == "off" ? Promotion::kOff : Promotion::kAuto;
    } else if (flag == "-ub") {
      SW_ASSIGN(settings.ubatch, number<uint32_t>(flag, text));
    } else if (flag == "-t") {
      SW_ASSIGN(settings.threads, number<uint32_t>(flag, text));
    } else if (flag == "-lm") {
      settings.load_mode = text;
    } else {
      return invalid("{} is no flag that is tuned", flag);
    }
  }
  return settings;
}

std::string command_text(const Settings& settings) {
  std::string text;
  for (const auto& [flag, value] : flags_of(settings))
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", flag, value);
  return text;
}

std::string share_text(const Settings& settings) { return choice_text(settings.cpu_share); }

std::string short_name(const Settings& settings) {
  std::string name = !settings.has_cache()   ? "no cache"
                     : !settings.cache_bytes ? "cache auto"
                                             : fmt::format("cache {} MiB", cache_text(settings));
  name += fmt::format(", share {}", share_text(settings));
  if (settings.admit.kind != Choice::Kind::kUnset)
    name += fmt::format(", admit {}", choice_text(settings.admit));
  if (settings.promote != Promotion::kUnset)
    name += fmt::format(", promote {}", promotion_text(settings.promote));
  if (settings.ubatch > 0) name += fmt::format(", ub {}", settings.ubatch);
  if (settings.threads > 0) name += fmt::format(", {} threads", settings.threads);
  if (!settings.load_mode.empty()) name += fmt::format(", -lm {}", settings.load_mode);
  return name;
}

experts::PlannerSettings planner_settings(const Settings& settings) {
  experts::PlannerSettings planner;
  planner.cpu_share = settings.cpu_share;
  planner.admit = settings.admit;
  planner.promote = settings.promote;
  return planner;
}

uint64_t expert_bytes(std::span<const experts::GroupShape> groups) {
  uint64_t bytes = 0;
  for (const experts::GroupShape& group : groups)
    bytes += uint64_t{group.layers.size()} * group.n_experts * group.expert_bytes;
  return bytes;
}

std::vector<uint32_t> slots_for(std::span<const experts::GroupShape> groups, uint64_t cache_bytes) {
  const uint64_t all = expert_bytes(groups);
  const double part =
      all == 0 ? 0.0 : std::min(1.0, static_cast<double>(cache_bytes) / static_cast<double>(all));
  std::vector<uint32_t> slots;
  for (const experts::GroupShape& group : groups) {
    const double n = static_cast<double>(group.layers.size()) * group.n_experts;
    slots.push_back(static_cast<uint32_t>(part * n + 1e-9));  // whole slots of a whole cache
  }
  return slots;
}

uint64_t round_cache_bytes(double bytes, uint64_t most) {
  // Whole MiB of a cache that has many, sixteenths of a small model's.
  const double unit = bytes >= 64 * kMib ? kMib : kMib / 16;
  const double rounded = std::ceil(bytes / unit) * unit;
  return static_cast<uint64_t>(
      rounded <= static_cast<double>(most) ? rounded : std::floor(static_cast<double>(most) / unit) * unit);
}

}  // namespace spillway::tune
