#include "engine/cache_size.h"

#include <charconv>
#include <cmath>

namespace spillway::engine {

uint64_t CacheSize::bytes(uint64_t n_experts, double expert_bytes) const {
  const double all = static_cast<double>(n_experts) * expert_bytes;
  double wanted = 0;
  switch (unit) {
    case Unit::kAuto:
      break;
    case Unit::kMib:
      wanted = value * 1024 * 1024;
      break;
    case Unit::kPercent:
      wanted = value / 100 * all;
      break;
    case Unit::kSlots:
      wanted = value * expert_bytes;
      break;
  }
  return static_cast<uint64_t>(std::ceil(std::min(wanted, all)));
}

std::string CacheSize::text() const {
  switch (unit) {
    case Unit::kAuto:
      return "auto";
    case Unit::kMib:
      return fmt::format("{}", value);
    case Unit::kPercent:
      return fmt::format("{}%", value);
    case Unit::kSlots:
      return fmt::format("{}s", value);
  }
  return "";
}

Result<CacheSize> parse_cache_size(std::string_view text) {
  if (text == "auto") return CacheSize{};
  CacheSize size{.unit = CacheSize::Unit::kMib};
  std::string_view number = text;
  if (number.ends_with('%')) size.unit = CacheSize::Unit::kPercent;
  if (number.ends_with('s')) size.unit = CacheSize::Unit::kSlots;
  if (size.unit != CacheSize::Unit::kMib) number.remove_suffix(1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), size.value);
  const bool whole = error == std::errc() && end == number.data() + number.size();
  if (!whole || !(size.value >= 0) || size.value > 1e9)
    return invalid(
        "'{}' is no cache size; give auto, MiB (2048), a share of the experts (25%) or experts (64s)", text);
  if (size.unit == CacheSize::Unit::kPercent && size.value > 100)
    return invalid("a cache of {} is more than all experts; 100% holds them all", text);
  if (size.unit == CacheSize::Unit::kSlots && size.value != std::floor(size.value))
    return invalid("a cache of {}: a slot holds a whole expert, so their number must be whole", text);
  return size;
}

std::vector<uint32_t> share_out(std::span<const CachePart> parts, const CacheSize& size,
                                uint64_t left_bytes) {
  uint64_t n_experts = 0, all_bytes = 0;
  for (const CachePart& part : parts) {
    n_experts += part.n_experts;
    all_bytes += part.n_experts * part.expert_bytes;
  }
  std::vector<uint32_t> slots(parts.size(), 0);
  if (n_experts == 0) return slots;
  const double mean = static_cast<double>(all_bytes) / static_cast<double>(n_experts);
  const uint64_t bytes =
      size.unit == CacheSize::Unit::kAuto ? std::min(left_bytes, all_bytes) : size.bytes(n_experts, mean);
  for (size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].n_experts == 0) continue;
    const auto expert_bytes = static_cast<double>(parts[p].expert_bytes);
    const double part =
        static_cast<double>(parts[p].n_experts * parts[p].expert_bytes) / static_cast<double>(all_bytes);
    const auto wanted = static_cast<uint64_t>(static_cast<double>(bytes) * part / expert_bytes);
    slots[p] = static_cast<uint32_t>(std::min(wanted, parts[p].n_experts));
  }
  return slots;
}

}  // namespace spillway::engine
