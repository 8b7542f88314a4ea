// The makers behind make_policy(), one file each.
#pragma once

#include "experts/heap_policy.h"

namespace spillway {
namespace experts {

std::unique_ptr<Policy> make_crf(const PoolShape& shape, double half_life);
std::unique_ptr<Policy> make_lru(const PoolShape& shape);
std::unique_ptr<Policy> make_static(const PoolShape& shape, uint32_t static_tokens);
std::unique_ptr<Policy> make_b12191(const PoolShape& shape, double half_life);

}  // namespace experts
}  // namespace spillway
