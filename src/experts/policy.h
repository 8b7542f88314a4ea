// Which expert is wanted how much, and which one goes first: the replacement policies behind one interface.
//
// A policy keeps scores for all experts of a pool and an order over those slots that may be evicted
// (resident, read by no plan). It decides nothing else: whether a newcomer is worth a victim is the planner's
// decision. Layers are numbered within the pool. Nothing allocates after construction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "experts/types.h"

namespace spillway {
namespace experts {

enum class PolicyKind : uint8_t {
  kCrf,     // decayed use counts (experts/score.h); the default
  kLru,     // least recently used
  kStatic,  // most used so far; frozen once `static_tokens` have passed a layer
  kB12191,  // the reference: llama.cpp b12191's (experts/b12191.h)
  kBelady,  // the next use lies farthest ahead: needs the future, so for the simulator only
};
inline constexpr uint32_t kPolicies = 5;
std::string_view policy_name(PolicyKind kind);
Result<PolicyKind> parse_policy(std::string_view name);  // not "belady"

struct PoolShape {
  uint32_t n_layers = 0;
  uint32_t n_experts = 0;
  uint32_t n_slots = 0;
};

class Policy {
 public:
  virtual ~Policy() = default;

  // A micro-batch of `n_tokens` passed the layer and used these experts, resident or not. Requires: those of
  // them that are resident are out of the order (they are pinned by the plan that asks).
  virtual void use(uint32_t layer, uint32_t n_tokens, std::span<const Use> uses) = 0;

  // How much the expert is wanted: larger is more, never negative, 0 for one that is not known. Comparable
  // over the layers of the pool.
  virtual double score(uint32_t layer, ExpertId expert) const = 0;

  // The slot holds this expert and may be evicted from now on. Requires: not in the order.
  virtual void add(SlotId slot, uint32_t layer, ExpertId expert) = 0;
  // The slot may not be evicted (it is read, or it is gone). Requires: in the order.
  virtual void remove(SlotId slot) = 0;

  // The slot that should go first among those of layers with may_lose[layer] != 0, or kNoSlot. Deterministic.
  virtual SlotId victim(std::span<const uint8_t> may_lose) const = 0;
};

struct PolicySettings {
  PolicyKind kind = PolicyKind::kCrf;
  double half_life = 0;          // tokens; 0: the policy's own (kCrfHalfLife, or 128 for b12191)
  uint32_t static_tokens = 512;  // after which `static` is frozen
};

// Short half-lives, 5 to 20 tokens, gave the most hits on public route traces, nearly flat in between
// (CRF 65 / 78 / 87 % at 12 / 20 / 30 % cache against LRU's 61 / 75 / 86).
inline constexpr double kCrfHalfLife = 16.0;
inline constexpr double kReferenceHalfLife = 128.0;

// Requires: kind is not kBelady (experts/belady.h), half_life 0 or >= 1.
std::unique_ptr<Policy> make_policy(const PolicySettings& settings, const PoolShape& shape);

}  // namespace experts
}  // namespace spillway
