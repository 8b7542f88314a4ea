#include "engine/placement.h"

#include <algorithm>

#include "base/checked.h"
#include "experts/expected_hits.h"

namespace spillway::engine {
namespace {

using backend::ExpertLayout;
using backend::kNoWeight;
using backend::WeightId;
using backend::WeightShape;

// A device made of host memory needs none.
uint64_t reserve_bytes(const backend::DeviceInfo& info) {
  return info.software ? 0 : device_reserve_bytes(info.available_bytes);
}

double in_mib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// Two halves of 8: one is filled while the other is computed. 8 experts of 3 MB are 2 ms of a PCIe 3 link,
// long against the start of a copy.
constexpr uint32_t kRingSlots = 16;
// The ring may take this part of what is left for experts.
constexpr uint32_t kRingPart = 4;

WeightShape shape_of(const model::Weight& weight) {
  return {.type = weight.type, .rows = weight.rows, .cols = weight.cols, .on_device = true};
}

ExpertLayout layout_of(const Program& program, const LayerIds& layer) {
  const backend::ExpertWeights& first = layer.experts[0];
  return {.gate = shape_of(program.weights[first.gate]),
          .up = shape_of(program.weights[first.up]),
          .down = shape_of(program.weights[first.down])};
}

// Every expert of the layer lies as the first does; a file may break that.
bool uniform(const Program& program, const LayerIds& layer, const ExpertLayout& layout) {
  return std::ranges::all_of(layer.experts, [&](const backend::ExpertWeights& e) {
    return shape_of(program.weights[e.gate]) == layout.gate && shape_of(program.weights[e.up]) == layout.up &&
           shape_of(program.weights[e.down]) == layout.down;
  });
}

// Decides everything but sizes of caches; then sizes.
class Placer {
 public:
  Placer(const Program& program, const StepSizes& sizes, const DeviceOptions& options,
         const experts::HardwareProfile& profile, const backend::Device& device, uint64_t device_limit)
      : program_(program),
        sizes_(sizes),
        options_(options),
        profile_(profile),
        device_(device),
        device_limit_(device_limit) {}

  Result<Placement> run() {
    const uint32_t n = static_cast<uint32_t>(program_.layers.size());
    place_.has_device = true;
    const uint64_t free = std::min(device_.info().available_bytes, device_limit_);
    place_.budget_bytes = free - std::min(free, reserve_bytes(device_.info()));
    if (options_.most_bytes > 0) place_.budget_bytes = std::min(place_.budget_bytes, options_.most_bytes);
    const uint32_t wanted = options_.layers.value_or(n + 1);
    for (uint32_t layers = std::min(wanted, n);; --layers) {
      put_layers(layers, wanted > n);
      if (fixed_bytes() <= place_.budget_bytes) break;
      if (options_.layers || layers == 0)
        return too_large(fixed_bytes(), "dense weights, KV cache and scratch");
    }
    const uint32_t on_device = n - place_.first_device_layer;
    if (on_device < std::min(wanted, n))
      place_.notes.push_back(fmt::format(
          "only the last {} of {} layers lie on the device: their dense weights and KV cache fill "
          "the {} MiB that are free; a smaller -c makes room for more",
          on_device, n, mib(place_.budget_bytes)));
    SW_TRY(choose_experts());
    place_.bytes = device_.bytes(device_spec(program_, place_, sizes_));
    if (place_.bytes.total() > place_.budget_bytes)
      return too_large(place_.bytes.total(), "what was asked for");
    return std::move(place_);
  }

 private:
  void put_layers(uint32_t layers, bool output) {
    const uint32_t n = static_cast<uint32_t>(program_.layers.size());
    place_.first_device_layer = n - layers;
    place_.output_on_device = output && layers == n;
    place_.layers.assign(n, {});
    for (uint32_t l = 0; l < n; ++l) {
      place_.layers[l].on_device = l >= place_.first_device_layer;
      if (program_.layers[l].is_moe) place_.layers[l].experts = ExpertPlace::kCpu;
    }
  }

  uint64_t fixed_bytes() const { return device_.bytes(device_spec(program_, place_, sizes_)).total(); }

  std::unexpected<Error> too_large(uint64_t needed, std::string_view what) {
    place_.bytes = device_.bytes(device_spec(program_, place_, sizes_));
    const uint64_t reserve = reserve_bytes(device_.info());
    return fail(Error::Kind::kNoMemory,
                "{} need {:.1f} MiB of the device's memory and {:.1f} MiB are free for it{}, {:.1f} MiB "
                "too few; less "
                "is needed with a smaller -c ({:.1f} MiB are KV cache), a smaller -ub ({:.1f} MiB are "
                "scratch), fewer "
                "layers (-ngl), a smaller --moe-cache-mib or -ncmoe with more layers",
                what, in_mib(needed), in_mib(place_.budget_bytes),
                reserve > 0 ? fmt::format(" ({:.1f} MiB of it are left to others)", in_mib(reserve)) : "",
                in_mib(needed - std::min(needed, place_.budget_bytes)), in_mib(place_.bytes.kv),
                in_mib(place_.bytes.scratch));
  }

  struct Moe {
    uint32_t layer;
    bool may_be_planned, may_be_resident;
  };

  Result<void> choose_experts() {
    for (uint32_t l = place_.first_device_layer; l < program_.layers.size(); ++l) {
      if (!program_.layers[l].is_moe) continue;
      const ExpertLayout layout = layout_of(program_, program_.layers[l]);
      if (!uniform(program_, program_.layers[l], layout))
        return unsupported(
            "layer {}: its experts differ in type or shape among themselves; use -ngl {} or less", l,
            program_.layers.size() - l - 1);
      const bool on_host = options_.experts_on_host ||
                           (options_.layers_with_host_experts && l < *options_.layers_with_host_experts);
      const bool resident = !on_host && options_.layers_with_host_experts;
      moe_.push_back({l, !resident, !on_host});
      pool_of(l, layout);
    }
    if (moe_.empty()) {
      if (!options_.cache.is_off() && options_.cache.unit != CacheSize::Unit::kAuto)
        place_.notes.push_back("the expert cache is not in force: no layer with experts lies on the device");
      return {};
    }
    place_.bytes = device_.bytes(device_spec(program_, place_, sizes_));
    const uint64_t left = place_.budget_bytes - place_.bytes.total();

    // Resident layers are taken from the end, as -ncmoe keeps the first ones on the host.
    uint32_t forced = 0, possible = 0;
    for (const Moe& m : moe_) {
      forced += !m.may_be_planned;
      possible += m.may_be_resident;
    }
    std::optional<Sizes> best;
    for (uint32_t r = possible + 1; r-- > forced;) {
      std::optional<Sizes> sizes = sizes_for(r, left);
      if (!sizes) continue;
      if (!best || sizes->estimated_us < best->estimated_us) best = std::move(sizes);
      if (options_.cache.unit != CacheSize::Unit::kAuto)
        break;  // the size is given: the rest is for residents
    }
    if (!best)
      return too_large(place_.bytes.total() + least_bytes(forced),
                       "dense weights, KV cache, scratch, resident experts and the cache asked for");
    apply(*best);
    return {};
  }

  struct Sizes {
    uint32_t resident = 0;                          // layers, from the end
    std::vector<uint32_t> cache_slots, ring_slots;  // (pools)
    uint64_t bytes = 0;
    double estimated_us = 0;  // of the experts of one decoded token
  };

  uint32_t pool_of(uint32_t layer, const ExpertLayout& layout) {
    const LayerIds& ids = program_.layers[layer];
    const uint32_t n_experts = static_cast<uint32_t>(ids.experts.size());
    for (uint32_t p = 0; p < place_.pools.size(); ++p) {
      const PoolPlacement& pool = place_.pools[p];
      if (pool.layout == layout && pool.group.n_experts == n_experts &&
          pool.group.n_used == ids.routing.n_used)
        return place_.layers[layer].pool = p;
    }
    place_.pools.push_back(
        {.layout = layout,
         .group = {
             .n_experts = n_experts, .n_used = ids.routing.n_used, .expert_bytes = layout.slot_bytes()}});
    return place_.layers[layer].pool = static_cast<uint32_t>(place_.pools.size() - 1);
  }

  // The layers that are planned when the last `resident` ones are not, by pool.
  std::vector<uint32_t> planned_layers(uint32_t resident) const {
    std::vector<uint32_t> planned(place_.pools.size());
    for (size_t i = 0; i + resident < moe_.size(); ++i) ++planned[place_.layers[moe_[i].layer].pool];
    return planned;
  }

  // Their experts, by pool.
  std::vector<CachePart> cache_parts(uint32_t resident) const {
    const std::vector<uint32_t> planned = planned_layers(resident);
    std::vector<CachePart> parts(planned.size());
    for (size_t p = 0; p < planned.size(); ++p) {
      const experts::GroupShape& group = place_.pools[p].group;
      parts[p] = {uint64_t{planned[p]} * group.n_experts, group.expert_bytes};
    }
    return parts;
  }

  uint64_t resident_bytes(uint32_t resident) const {
    uint64_t bytes = 0;
    for (size_t i = moe_.size() - resident; i < moe_.size(); ++i) {
      const PoolPlacement& pool = place_.pools[place_.layers[moe_[i].layer].pool];
      bytes += pool.group.n_experts * pool.group.expert_bytes;
    }
    return bytes;
  }

  // Of experts, at least: resident ones and the cache that was asked for.
  uint64_t least_bytes(uint32_t resident) const {
    const std::vector<CachePart> parts = cache_parts(resident);
    uint64_t bytes = resident_bytes(resident);
    const std::vector<uint32_t> slots = share_out(parts, options_.cache, 0);
    for (size_t p = 0; p < parts.size(); ++p) bytes += slots[p] * parts[p].expert_bytes;
    return bytes;
  }

  // Ring and cache beside `resident` resident layers, or nothing where that does not fit.
  std::optional<Sizes> sizes_for(uint32_t resident, uint64_t left) const {
    Sizes sizes{.resident = resident,
                .cache_slots = std::vector<uint32_t>(place_.pools.size()),
                .ring_slots = std::vector<uint32_t>(place_.pools.size()),
                .bytes = resident_bytes(resident)};
    if (sizes.bytes > left) return std::nullopt;
    const std::vector<uint32_t> planned = planned_layers(resident);
    const std::vector<CachePart> parts = cache_parts(resident);
    // A cache of a given size comes before the ring.
    const uint64_t asked = least_bytes(resident) - sizes.bytes;
    if (asked > left - sizes.bytes) return std::nullopt;
    for (size_t p = 0; p < planned.size(); ++p) {
      const experts::GroupShape& group = place_.pools[p].group;
      if (planned[p] == 0) continue;
      const uint64_t spare = left - sizes.bytes;
      const uint64_t room = std::min(spare / kRingPart, spare - asked) / group.expert_bytes;
      sizes.ring_slots[p] = static_cast<uint32_t>(std::min<uint64_t>({kRingSlots, group.n_experts, room}));
      sizes.bytes += sizes.ring_slots[p] * group.expert_bytes;
    }
    sizes.cache_slots = share_out(parts, options_.cache, left - std::min(left, sizes.bytes));
    for (size_t p = 0; p < planned.size(); ++p) sizes.bytes += sizes.cache_slots[p] * parts[p].expert_bytes;
    if (sizes.bytes > left) return std::nullopt;
    sizes.estimated_us = estimate(sizes, planned);
    return sizes;
  }

  // The expert part of a decoded token: hits and resident ones at the device's rate, misses at that of link
  // and CPU together, and a wait for each planned layer.
  double estimate(const Sizes& sizes, const std::vector<uint32_t>& planned) const {
    const auto us = [](double bytes, double gb_s) { return bytes / (gb_s * 1000.0); };
    const double miss_rate =
        std::min(profile_.link_gb_s.value + profile_.cpu_gb_s.value, profile_.dram_gb_s.value);
    double total = 0;
    for (size_t i = 0; i < moe_.size(); ++i) {
      const uint32_t p = place_.layers[moe_[i].layer].pool;
      const experts::GroupShape& group = place_.pools[p].group;
      const double bytes = static_cast<double>(group.expert_bytes) * group.n_used;
      double hits = 1;
      if (i + sizes.resident < moe_.size()) {
        hits = experts::expected_hit_rate(planned[p], group.n_experts, group.n_used, sizes.cache_slots[p]);
        total += profile_.layer_us.value;
      }
      total += us(hits * bytes, profile_.device_gb_s.value) + us((1 - hits) * bytes, miss_rate);
    }
    return total;
  }

  void apply(const Sizes& sizes) {
    for (size_t i = 0; i < moe_.size(); ++i) {
      LayerPlacement& layer = place_.layers[moe_[i].layer];
      PoolPlacement& pool = place_.pools[layer.pool];
      if (i + sizes.resident < moe_.size()) {
        layer.experts = ExpertPlace::kPlanned;
        layer.planner_layer = next_planner_layer_++;
        pool.group.layers.push_back(layer.planner_layer);
      } else {
        layer.experts = ExpertPlace::kResident;
        layer.first_slot = pool.resident_slots;
        pool.resident_slots += pool.group.n_experts;
      }
    }
    for (uint32_t p = 0; p < place_.pools.size(); ++p) {
      place_.pools[p].cache_slots = place_.pools[p].used_slots = sizes.cache_slots[p];
      place_.pools[p].ring_slots = sizes.ring_slots[p];
      if (place_.pools[p].group.layers.empty()) continue;
      place_.groups.push_back(place_.pools[p].group);
      place_.group_pool.push_back(p);
    }
    if (place_.groups.empty()) {
      if (options_.cache.unit != CacheSize::Unit::kAuto && !options_.cache.is_off())
        place_.notes.push_back("the expert cache is not needed: all experts are resident on the device");
      return;
    }
    uint64_t asked_slots = 0;
    for (const PoolPlacement& pool : place_.pools) asked_slots += pool.cache_slots;
    uint64_t all_experts = 0;
    double all_bytes = 0;
    for (const experts::GroupShape& group : place_.groups) {
      all_experts += group.layers.size() * group.n_experts;
      all_bytes += static_cast<double>(group.layers.size() * group.n_experts * group.expert_bytes);
    }
    const bool asked_for_more =
        (options_.cache.unit == CacheSize::Unit::kSlots &&
         options_.cache.value > static_cast<double>(all_experts)) ||
        (options_.cache.unit == CacheSize::Unit::kMib && options_.cache.value * 1048576 > all_bytes);
    if (asked_for_more)
      place_.notes.push_back(fmt::format(
          "a cache of {}{} is more than all {} experts take: it has {} slots, and no more bytes are taken",
          options_.cache.text(), options_.cache.unit == CacheSize::Unit::kMib ? " MiB" : "", all_experts,
          asked_slots));
    if (asked_slots == 0 && !options_.cache.is_off())
      place_.notes.push_back(fmt::format("the expert cache is not in force: {} hold no whole expert ({} KiB)",
                                         options_.cache.unit == CacheSize::Unit::kAuto
                                             ? "the bytes left on the device"
                                             : options_.cache.text(),
                                         place_.groups[0].expert_bytes >> 10));
  }

  const Program& program_;
  const StepSizes& sizes_;
  const DeviceOptions& options_;
  const experts::HardwareProfile& profile_;
  const backend::Device& device_;
  const uint64_t device_limit_;
  Placement place_;
  std::vector<Moe> moe_;  // of the device, ascending
  uint32_t next_planner_layer_ = 0;
};

void for_each_dense_weight(const LayerIds& layer, auto&& body) {
  for (const WeightId id :
       {layer.attention_norm, layer.q, layer.k, layer.v, layer.output, layer.q_bias, layer.k_bias,
        layer.v_bias, layer.output_bias, layer.q_norm, layer.k_norm, layer.ffn_norm, layer.dense.gate,
        layer.dense.up, layer.dense.down, layer.shared_gate, layer.router, layer.selection_bias})
    if (id != kNoWeight) body(id);
}

}  // namespace

std::vector<uint32_t> cache_slots(const Placement& placement, const CacheSize& size) {
  std::vector<CachePart> parts;
  uint64_t all_bytes = 0;
  for (const experts::GroupShape& group : placement.groups) {
    parts.push_back({uint64_t{group.layers.size()} * group.n_experts, group.expert_bytes});
    all_bytes += parts.back().n_experts * group.expert_bytes;
  }
  std::vector<uint32_t> slots = share_out(parts, size, all_bytes);
  if (size.unit == CacheSize::Unit::kAuto)
    for (size_t g = 0; g < slots.size(); ++g) slots[g] = placement.pools[placement.group_pool[g]].cache_slots;
  return slots;
}

uint32_t Placement::n_planned_layers() const {
  uint32_t n = 0;
  for (const experts::GroupShape& group : groups) n += static_cast<uint32_t>(group.layers.size());
  return n;
}

uint32_t Placement::n_resident_layers() const {
  return static_cast<uint32_t>(
      std::ranges::count(layers, ExpertPlace::kResident, [](const LayerPlacement& l) { return l.experts; }));
}

uint64_t Placement::cache_bytes() const {
  uint64_t sum = 0;
  for (const PoolPlacement& pool : pools) sum += pool.used_slots * pool.group.expert_bytes;
  return sum;
}

uint64_t Placement::cacheable_bytes() const {
  uint64_t sum = 0;
  for (const experts::GroupShape& group : groups)
    sum += group.layers.size() * group.n_experts * group.expert_bytes;
  return sum;
}

uint32_t Placement::cache_slots() const {
  uint32_t slots = 0;
  for (const PoolPlacement& pool : pools) slots += pool.used_slots;
  return slots;
}

uint64_t device_reserve_bytes(uint64_t available_bytes) {
  return std::max<uint64_t>(256 << 20, available_bytes / 32);
}

Placement place_on_cpu(const Program& program) {
  Placement place;
  place.first_device_layer = static_cast<uint32_t>(program.layers.size());
  for (const LayerIds& layer : program.layers)
    place.layers.push_back({.experts = layer.is_moe ? ExpertPlace::kCpu : ExpertPlace::kNone});
  return place;
}

Result<Placement> place(const Program& program, const StepSizes& sizes, const DeviceOptions& options,
                        const experts::HardwareProfile& profile, const backend::Device& device,
                        uint64_t device_limit) {
  return Placer(program, sizes, options, profile, device, device_limit).run();
}

backend::DeviceSpec device_spec(const Program& program, const Placement& placement, const StepSizes& sizes) {
  backend::DeviceSpec spec{.kv_types = sizes.kv_types,
                           .kv_pages = sizes.kv_pages,
                           .vocabulary = sizes.vocabulary,
                           .logits_rows = placement.output_on_device ? sizes.logits_rows : 0,
                           .sizes = {.max_rows = sizes.ubatch,
                                     .max_width = program.max_width,
                                     .hidden = program.hidden,
                                     .experts = program.experts,
                                     .max_experts_used = program.max_experts_used,
                                     .expert_width = program.expert_width,
                                     .max_head_length = program.max_head_length,
                                     .buffer_widths = program.buffer_widths}};
  for (const model::Weight& weight : program.weights) {
    spec.weights.push_back(shape_of(weight));
    spec.weights.back().on_device = false;
  }
  for (uint32_t l = 0; l < program.layers.size(); ++l) {
    const LayerIds& layer = program.layers[l];
    const LayerPlacement& at = placement.layers[l];
    spec.layers.push_back({.on_device = at.on_device,
                           .kv_heads = layer.attention.kv_heads,
                           .key_length = layer.attention.key_length,
                           .value_length = layer.attention.value_length,
                           .pool = at.pool,
                           .n_experts = static_cast<uint32_t>(layer.experts.size())});
    if (at.on_device) for_each_dense_weight(layer, [&](WeightId id) { spec.weights[id].on_device = true; });
  }
  if (placement.output_on_device) {
    spec.weights[program.output_norm].on_device = true;
    spec.weights[program.output].on_device = true;
  }
  for (const uint32_t length : sizes.rope_lengths)
    spec.ropes.push_back({.length = length, .positions = sizes.context});
  for (const PoolPlacement& pool : placement.pools) spec.pools.push_back({pool.layout, pool.slots()});
  return spec;
}

std::vector<bool> weights_on_host(const Program& program, const Placement& placement) {
  std::vector<bool> on_host(program.weights.size(), true);
  for (uint32_t l = 0; l < program.layers.size(); ++l) {
    const LayerPlacement& at = placement.layers[l];
    if (!at.on_device) continue;
    for_each_dense_weight(program.layers[l], [&](WeightId id) { on_host[id] = false; });
    if (at.experts == ExpertPlace::kResident)
      for (const backend::ExpertWeights& expert : program.layers[l].experts)
        on_host[expert.gate] = on_host[expert.up] = on_host[expert.down] = false;
  }
  if (placement.output_on_device && program.output != program.embedding) on_host[program.output] = false;
  return on_host;
}

}  // namespace spillway::engine
