#include "experts/types.h"

#include "base/assert.h"
#include "base/limits.h"

namespace spillway {
namespace experts {

uint32_t count_layers(std::span<const GroupShape> groups) {
  uint32_t n = 0;
  for (const GroupShape& group : groups) n += static_cast<uint32_t>(group.layers.size());
  return n;
}

Result<void> check_groups(std::span<const GroupShape> groups) {
  uint64_t n_layers = 0;
  for (const GroupShape& group : groups) n_layers += group.layers.size();
  if (n_layers == 0) return invalid("expert cache: no MoE layers; at least one is needed");
  if (n_layers > limits::kMaxLayers)
    return invalid("expert cache: {} MoE layers; at most {} are handled", n_layers, limits::kMaxLayers);
  std::vector<uint8_t> seen(limits::kMaxLayers, 0);
  for (size_t g = 0; g < groups.size(); ++g) {
    const GroupShape& group = groups[g];
    if (group.n_experts == 0 || group.n_experts > limits::kMaxExperts)
      return invalid("expert group {}: {} experts per layer; 1 to {} are handled", g, group.n_experts,
                     limits::kMaxExperts);
    if (group.n_used == 0 || group.n_used > group.n_experts || group.n_used > limits::kMaxExpertsUsed)
      return invalid("expert group {}: {} of {} experts used per token; 1 to {} are handled", g, group.n_used,
                     group.n_experts, std::min(group.n_experts, limits::kMaxExpertsUsed));
    if (group.expert_bytes == 0) return invalid("expert group {}: an expert of 0 bytes", g);
    if (group.layers.empty()) return invalid("expert group {}: no layers", g);
    for (size_t i = 0; i < group.layers.size(); ++i) {
      const LayerId layer = group.layers[i];
      if (layer >= limits::kMaxLayers)
        return invalid("expert group {}: layer {}; layers 0 to {} are handled", g, layer,
                       limits::kMaxLayers - 1);
      if (seen[layer]) return invalid("expert group {}: layer {} is in a group already", g, layer);
      if (i > 0 && group.layers[i - 1] > layer)
        return invalid("expert group {}: layer {} follows {}; ascending order is needed", g, layer,
                       group.layers[i - 1]);
      seen[layer] = 1;
    }
  }
  return {};
}

std::span<const Use> UseCounter::count(std::span<const uint32_t> ids, uint32_t n_experts) {
  SW_ASSERT(n_experts <= counts_.size());
  for (const uint32_t id : ids) {
    SW_ASSERT(id < n_experts);
    ++counts_[id];
  }
  size_t n = 0;
  for (uint32_t expert = 0; expert < n_experts; ++expert) {
    if (counts_[expert] == 0) continue;
    uses_[n++] = {expert, counts_[expert]};
    counts_[expert] = 0;
  }
  return {uses_.data(), n};
}

std::string_view decision_name(Decision decision) {
  switch (decision) {
    case Decision::kHit:
      return "hit";
    case Decision::kUpload:
      return "upload";
    case Decision::kStream:
      return "stream";
    case Decision::kJoin:
      return "join";
    case Decision::kCpu:
      return "cpu";
  }
  return "?";
}

void Counters::add(const Counters& other) {
  plans += other.plans;
  tokens += other.tokens;
  hits += other.hits;
  misses += other.misses;
  cpu += other.cpu;
  uploaded += other.uploaded;
  streamed += other.streamed;
  joined += other.joined;
  promoted += other.promoted;
  evicted += other.evicted;
  failed += other.failed;
  bytes_uploaded += other.bytes_uploaded;
  bytes_promoted += other.bytes_promoted;
  device_ns += other.device_ns;
  link_ns += other.link_ns;
  cpu_ns += other.cpu_ns;
  total_ns += other.total_ns;
}

}  // namespace experts
}  // namespace spillway
