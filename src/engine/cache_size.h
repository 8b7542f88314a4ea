// How large the expert cache is asked to be: "auto", "0", MiB ("2048", "1.5"), a share of the experts that
// could be cached ("25%") or a number of experts ("64s").
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spillway::engine {

struct CacheSize {
  enum class Unit : uint8_t { kAuto, kMib, kPercent, kSlots };
  Unit unit = Unit::kAuto;
  double value = 0;

  bool is_off() const { return unit != Unit::kAuto && value == 0; }
  // Bytes of a cache for `n_experts` experts of `expert_bytes` each (their mean); not for kAuto.
  uint64_t bytes(uint64_t n_experts, double expert_bytes) const;
  std::string text() const;  // as it is written
};

Result<CacheSize> parse_cache_size(std::string_view text);

// The experts of one layout: a cache has slots of its own for each.
struct CachePart {
  uint64_t n_experts = 0;
  uint64_t expert_bytes = 0;
};
// Slots for each: every layout gets its part of the bytes, and at most its experts. auto takes `left_bytes`.
std::vector<uint32_t> share_out(std::span<const CachePart> parts, const CacheSize& size, uint64_t left_bytes);

}  // namespace spillway::engine
