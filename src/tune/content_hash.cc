#include "tune/content_hash.h"

#include <fmt/format.h>

namespace spillway::tune {

std::string content_hash(std::span<const std::byte> bytes) {
  return hexadecimal_128(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string hexadecimal_128(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", static_cast<uint64_t>(hash.high64), static_cast<uint64_t>(hash.low64));
}

}  // namespace spillway::tune
