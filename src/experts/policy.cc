#include "experts/policy.h"

#include <array>

#include "base/assert.h"
#include "experts/policies.h"

namespace spillway {
namespace experts {
namespace {

constexpr std::array<std::string_view, kPolicies> kNames = {"crf", "lru", "static", "b12191", "belady"};

}  // namespace

std::string_view policy_name(PolicyKind kind) { return kNames[static_cast<size_t>(kind)]; }

Result<PolicyKind> parse_policy(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i] && static_cast<PolicyKind>(i) != PolicyKind::kBelady)
      return static_cast<PolicyKind>(i);
  return invalid("cache policy '{}': crf, lru, static or b12191 is needed", name);
}

std::unique_ptr<Policy> make_policy(const PolicySettings& settings, const PoolShape& shape) {
  const double half_life = settings.half_life;
  switch (settings.kind) {
    case PolicyKind::kCrf:
      return make_crf(shape, half_life == 0 ? kCrfHalfLife : half_life);
    case PolicyKind::kLru:
      return make_lru(shape);
    case PolicyKind::kStatic:
      return make_static(shape, settings.static_tokens);
    case PolicyKind::kB12191:
      return make_b12191(shape, half_life == 0 ? kReferenceHalfLife : half_life);
    case PolicyKind::kBelady:
      break;
  }
  SW_ASSERT(settings.kind != PolicyKind::kBelady);
  return nullptr;
}

}  // namespace experts
}  // namespace spillway
