// The hash that names contents in records: 128 bits of XXH3, hexadecimal.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <span>
#include <string>

namespace spillway::tune {

std::string content_hash(std::span<const std::byte> bytes);
std::string hexadecimal_128(XXH128_hash_t hash);

}  // namespace spillway::tune
