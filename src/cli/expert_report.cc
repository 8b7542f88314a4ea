#include "cli/expert_report.h"

#include "cli/common.h"
#include "experts/expected_hits.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;
using experts::Counters;

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

// "3-7, 9"
std::string ranges(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (end - i > 1) text += fmt::format("-{}", numbers[end - 1]);
    i = end;
  }
  return text;
}

std::vector<uint32_t> layers_with(const engine::Placement& placement, engine::ExpertPlace place) {
  std::vector<uint32_t> layers;
  for (uint32_t l = 0; l < placement.layers.size(); ++l)
    if (placement.layers[l].experts == place) layers.push_back(l);
  return layers;
}

struct CacheSize {
  uint64_t slots = 0, experts = 0;
  double tokens = 0;    // whole tokens' experts that it holds
  double hit_rate = 0;  // estimated, once it is filled
  double fraction() const { return experts ? static_cast<double>(slots) / static_cast<double>(experts) : 0; }
};

CacheSize cache_size(const engine::Placement& placement) {
  CacheSize size;
  uint64_t per_token = 0;
  for (size_t g = 0; g < placement.groups.size(); ++g) {
    const experts::GroupShape& group = placement.groups[g];
    size.slots += placement.pools[placement.group_pool[g]].used_slots;
    size.experts += group.layers.size() * group.n_experts;
    const auto n_layers = static_cast<uint32_t>(group.layers.size());
    const uint64_t uses = uint64_t{n_layers} * group.n_used;
    per_token += uses;
    size.hit_rate += static_cast<double>(uses) *
                     experts::expected_hit_rate(n_layers, group.n_experts, group.n_used,
                                                placement.pools[placement.group_pool[g]].used_slots);
  }
  if (per_token == 0) return size;
  size.tokens = static_cast<double>(size.slots) / static_cast<double>(per_token);
  size.hit_rate /= static_cast<double>(per_token);
  return size;
}

Json counters_json(const Counters& c) {
  return {{"experts",
           {{"hits", c.hits},
            {"misses", c.misses},
            {"cpu", c.cpu},
            {"uploaded", c.uploaded},
            {"streamed", c.streamed},
            {"joined", c.joined},
            {"promoted", c.promoted},
            {"evicted", c.evicted},
            {"failed", c.failed},
            {"hit_rate", c.hit_rate()}}},
          {"bytes", {{"uploaded", c.bytes_uploaded}, {"promoted", c.bytes_promoted}}},
          {"plans", c.plans},
          {"tokens", c.tokens},
          {"time_us",
           {{"device", c.device_ns / 1000},
            {"link", c.link_ns / 1000},
            {"cpu", c.cpu_ns / 1000},
            {"layers", c.total_ns / 1000}}}};
}

std::string counters_line(std::string_view name, const Counters& c) {
  return fmt::format(
      "  {:<5} {} hits, {} misses ({:.1f} % hits): {} on the CPU, {} uploaded, {} passed through, {} joined; "
      "{} "
      "promoted, {} evicted; {} copied",
      name, c.hits, c.misses, 100 * c.hit_rate(), c.cpu, c.uploaded, c.streamed, c.joined, c.promoted,
      c.evicted, format_bytes(c.bytes_uploaded + c.bytes_promoted));
}

}  // namespace

std::string describe_placement(const engine::MemoryPlan& memory, const engine::Placement& placement,
                               const backend::DeviceInfo& device) {
  const auto n = static_cast<uint32_t>(placement.layers.size());
  const uint32_t on_device = n - placement.first_device_layer;
  std::string text = fmt::format(
      "device {}, {}: {} of {} free; {} of {} layers{}; dense weights {}, KV cache {}, scratch {}, experts "
      "{}",
      memory.device, memory.device_reason, format_bytes(device.available_bytes),
      format_bytes(device.memory_bytes), on_device, n, placement.output_on_device ? " and the output" : "",
      format_bytes(placement.bytes.weights), format_bytes(placement.bytes.kv),
      format_bytes(placement.bytes.scratch), format_bytes(placement.bytes.experts));
  if (const auto resident = layers_with(placement, engine::ExpertPlace::kResident); !resident.empty())
    text += fmt::format("\nresident experts: all of layers {}", ranges(resident));
  if (const auto planned = layers_with(placement, engine::ExpertPlace::kPlanned); !planned.empty()) {
    const CacheSize size = cache_size(placement);
    text +=
        fmt::format("\nexpert cache: {} for {} of {} experts ({:.1f} %, {:.1f} tokens' worth) of layers {}",
                    format_bytes(placement.cache_bytes()), size.slots, size.experts, 100 * size.fraction(),
                    size.tokens, ranges(planned));
    if (size.slots > 0)
      text += fmt::format("; estimated: {:.0f} % of their uses hit once it is filled", 100 * size.hit_rate);
  }
  return text;
}

Json placement_json(const engine::MemoryPlan& memory, const engine::Placement& placement,
                    const backend::DeviceInfo& device) {
  const CacheSize size = cache_size(placement);
  Json layers = Json::array();
  for (uint32_t l = 0; l < placement.layers.size(); ++l) {
    constexpr const char* kNames[] = {"none", "cpu", "resident", "planned"};
    layers.push_back({{"on_device", placement.layers[l].on_device},
                      {"experts", kNames[static_cast<size_t>(placement.layers[l].experts)]}});
  }
  return {
      {"device", device.id},
      {"name", device.name},
      {"driver", device.driver},
      {"reason", memory.device_reason},
      {"memory_bytes", device.memory_bytes},
      {"available_bytes", device.available_bytes},
      {"budget_bytes", placement.budget_bytes},
      {"weight_bytes", placement.bytes.weights},
      {"kv_bytes", placement.bytes.kv},
      {"scratch_bytes", placement.bytes.scratch},
      {"expert_bytes", placement.bytes.experts},
      {"first_layer", placement.first_device_layer},
      {"output_on_device", placement.output_on_device},
      {"cache", {{"bytes", placement.cache_bytes()}, {"slots", size.slots}, {"of_experts", size.experts}}},
      {"layers", layers},
      {"notes", placement.notes}};
}

std::string expert_line(const engine::ExpertStats& stats) {
  const Counters all = stats.total.all();
  if (all.plans == 0) return "";
  return fmt::format(
      "experts: {:.1f} % hits, {} misses ({} on the CPU, {} uploaded, {} passed through), {} promoted; {} "
      "copied; "
      "{} waits of {:.0f} us each (measured)",
      100 * all.hit_rate(), all.misses, all.cpu, all.uploaded, all.streamed, all.promoted,
      format_bytes(all.bytes_uploaded + all.bytes_promoted), stats.times.waits,
      stats.times.waits
          ? static_cast<double>(stats.times.wait_ns) / 1000.0 / static_cast<double>(stats.times.waits)
          : 0.0);
}

std::string expert_text(const engine::Engine& engine) {
  if (engine.device() == nullptr) return "";
  const engine::ExpertStats stats = engine.expert_stats();
  std::string text = describe_placement(engine.memory(), engine.placement(), *engine.device());
  for (const std::string& note : engine.notes()) text += "\nnote: " + note;
  return text + "\n" + counters_text(stats);
}

std::string expert_layers_text(const engine::ExpertStats& stats) {
  std::string text;
  for (const engine::ExpertStats::Layer& layer : stats.layers)
    text += counters_line(fmt::format("{:>4}", layer.layer), layer.counters.all()) + "\n";
  for (const engine::ExpertStats::Resident& r : stats.resident)
    text += fmt::format("  {:>4} resident: {} experts used in {} micro-batches of {} tokens together\n",
                        r.layer, r.uses.experts, r.uses.passes, r.uses.tokens);
  return text;
}

std::string counters_text(const engine::ExpertStats& stats) {
  const Counters all = stats.total.all();
  if (all.plans == 0) return "";
  std::string text = "experts, measured:\n" + counters_line("cold", stats.total.cold) + "\n" +
                     counters_line("warm", stats.total.warm) + "\n";
  const auto total = static_cast<double>(all.total_ns);
  text += fmt::format(
      "  {} waits, {:.1f} ms in all; expert parts of the layers {:.1f} ms, of these device {:.0f} %, link "
      "{:.0f} %, CPU "
      "{:.0f} %; {} of {} of host memory pinned\n",
      stats.times.waits, static_cast<double>(stats.times.wait_ns) * 1e-6, total * 1e-6,
      percent(static_cast<double>(all.device_ns), total), percent(static_cast<double>(all.link_ns), total),
      percent(static_cast<double>(all.cpu_ns), total), format_bytes(stats.pinned_bytes),
      format_bytes(stats.host_expert_bytes));
  for (const std::string& line : stats.controller) text += "  " + line + "\n";
  return text;
}

Json experts_json(const engine::ExpertStats& stats) {
  const auto flat = [](const Counters& counters) {
    const Json json = counters_json(counters);
    Json one = json["experts"];
    for (const char* name : {"bytes", "time_us"}) one[name] = json[name];
    return one;
  };
  Json json = flat(stats.total.all());
  json["time_us"]["waiting"] = stats.times.wait_ns / 1000;
  json["time_us"]["planning"] = stats.times.plan_ns / 1000;
  json["waits"] = {{"count", stats.times.waits}, {"us", stats.times.wait_ns / 1000}};
  json["cold"] = flat(stats.total.cold);
  json["warm"] = flat(stats.total.warm);
  return json;
}

Json expert_stats_json(const engine::Engine& engine) {
  const engine::ExpertStats stats = engine.expert_stats();
  Json json{{"schema", 1}, {"label", "measured"}};
  json.update(counters_json(stats.total.all()));
  json["controller"] = stats.controller;
  json["waits"] = {{"count", stats.times.waits}, {"us", stats.times.wait_ns / 1000}};
  json["time_us"]["waiting"] = stats.times.wait_ns / 1000;
  json["time_us"]["planning"] = stats.times.plan_ns / 1000;
  json["cold"] = counters_json(stats.total.cold);
  json["warm"] = counters_json(stats.total.warm);
  json["pinned_bytes"] = stats.pinned_bytes;
  json["host_expert_bytes"] = stats.host_expert_bytes;
  json["resident_layer_passes"] = stats.times.resident_layers;
  Json layers = Json::array();
  for (const engine::ExpertStats::Layer& layer : stats.layers) {
    Json one{{"layer", layer.layer}};
    one.update(counters_json(layer.counters.all()));
    layers.push_back(std::move(one));
  }
  json["layers"] = std::move(layers);
  Json resident = Json::array();
  for (const engine::ExpertStats::Resident& r : stats.resident)
    resident.push_back({{"layer", r.layer},
                        {"passes", r.uses.passes},
                        {"tokens", r.uses.tokens},
                        {"experts", r.uses.experts}});
  json["resident_layers"] = std::move(resident);
  json["notes"] = engine.notes();
  if (engine.device() == nullptr) json["notes"].push_back("the CPU runs alone: no expert is planned");
  if (engine.device() != nullptr)
    json["placement"] = placement_json(engine.memory(), engine.placement(), *engine.device());
  return json;
}

}  // namespace spillway::cli
