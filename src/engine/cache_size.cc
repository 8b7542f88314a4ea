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

}  // namespace spillway::engine
