// The vocabulary of the expert cache: what is routed, what is decided, what is counted.
//
// Layers are numbered among the MoE layers of the model (0 is the first layer that has routed experts). A
// group is the set of layers whose experts have one layout: equal bytes, equal count, equal k. Layers of a
// group share slots; a slot holds one whole expert (all its matrices and biases, wherever they came from).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spillway {
namespace experts {

using LayerId = uint32_t;   // among the MoE layers of the model
using ExpertId = uint32_t;  // within its layer
using SlotId = uint32_t;    // within its group's pool
using GroupId = uint32_t;
using Ticket = uint64_t;  // names one upload or promotion under way; never 0

inline constexpr SlotId kNoSlot = ~SlotId{0};
inline constexpr uint32_t kNone = ~uint32_t{0};
inline constexpr Ticket kNoTicket = 0;

struct ExpertKey {
  LayerId layer = kNone;
  ExpertId expert = kNone;
  bool operator==(const ExpertKey&) const = default;
};

struct GroupShape {
  std::vector<LayerId> layers;  // ascending
  uint32_t n_experts = 0;       // per layer
  uint32_t n_used = 0;          // k: experts per token and layer
  uint64_t expert_bytes = 0;    // of one expert, as it lies in a slot
};

// Refuses shapes that contradict themselves or each other: no layer in two groups, k within the experts,
// limits::kMaxLayers, kMaxExperts, kMaxExpertsUsed. Layers may be missing (those that are fully resident).
Result<void> check_groups(std::span<const GroupShape> groups);
uint32_t count_layers(std::span<const GroupShape> groups);

// One distinct expert of a micro-batch.
struct Use {
  ExpertId expert = 0;
  uint32_t tokens = 0;  // tokens of the micro-batch that chose it, at least 1
};

// What the router said about one layer and micro-batch. Uses are distinct and ascending by expert.
struct Routing {
  LayerId layer = 0;
  uint32_t n_tokens = 0;
  std::span<const Use> uses;
};

// Turns the router's ids into uses, with no allocation after construction. O(n_tokens k + n_experts).
class UseCounter {
 public:
  explicit UseCounter(uint32_t max_experts) : counts_(max_experts), uses_(max_experts) {}
  // `ids`: (n_tokens, k). Requires: each below n_experts <= max_experts. Valid until the next call.
  std::span<const Use> count(std::span<const uint32_t> ids, uint32_t n_experts);

 private:
  std::vector<uint32_t> counts_;  // (max_experts), zero between calls
  std::vector<Use> uses_;         // (max_experts)
};

// Where the expert is computed, and what has to move first.
enum class Decision : uint8_t {
  kHit,     // resident: on the device, at once
  kUpload,  // copied into a slot, computed on the device, resident afterwards
  kStream,  // copied into the ring beside the cache, computed on the device, not kept
  kJoin,    // already on its way to a slot: computed on the device once its ticket has arrived
  kCpu,     // computed on the CPU from host memory
};
inline constexpr uint32_t kDecisions = 5;
std::string_view decision_name(Decision decision);

struct Counters {
  uint64_t plans = 0;     // micro-batches
  uint64_t tokens = 0;    // their tokens
  uint64_t hits = 0;      // distinct experts found resident
  uint64_t misses = 0;    // distinct experts not found resident
  uint64_t cpu = 0;       // distinct experts computed on the CPU
  uint64_t uploaded = 0;  // copied now and kept
  uint64_t streamed = 0;  // copied now and not kept
  uint64_t joined = 0;    // waited for a copy that was under way
  uint64_t promoted = 0;  // copied in idle link time (counted when started)
  uint64_t evicted = 0;
  uint64_t failed = 0;          // copies that failed
  uint64_t bytes_uploaded = 0;  // of uploaded and streamed
  uint64_t bytes_promoted = 0;  // of promoted
  uint64_t device_ns = 0;       // as observed
  uint64_t link_ns = 0;
  uint64_t cpu_ns = 0;
  uint64_t total_ns = 0;  // of the expert parts

  void add(const Counters& other);
  double hit_rate() const {
    return hits + misses ? static_cast<double>(hits) / static_cast<double>(hits + misses) : 0.0;
  }
};

}  // namespace experts
}  // namespace spillway
