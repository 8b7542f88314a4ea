// Nothing allocates in the per-layer path: this program's operator new counts.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "experts/controller.h"
#include "experts/layer_clock.h"
#include "support/synthetic_routes.h"

namespace {
std::atomic<uint64_t> allocations{0};
}

// None inlined: where one is and its counterpart is not, g++ warns that the two don't belong together.
[[gnu::noinline]] void* operator new(size_t n) {
  ++allocations;
  if (void* p = std::malloc(n == 0 ? 1 : n)) return p;
  std::abort();
}
// std::stable_sort's, which by default comes here too; the address sanitizer's own does not, and then finds
// memory of its own that was given to free.
[[gnu::noinline]] void* operator new(size_t n, const std::nothrow_t&) noexcept { return operator new(n); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace spillway {
namespace experts {
namespace {

TEST(Planner, AllocatesNothingPerLayer) {
  const Routes routes = synthetic_routes({.prompt = 300, .tokens = 200});
  for (const PolicyKind kind : {PolicyKind::kCrf, PolicyKind::kLru, PolicyKind::kStatic, PolicyKind::kB12191})
    for (const Choice share : {Choice::automatic(), Choice::number(0.4)}) {
      PlannerSettings settings;
      settings.policy.kind = kind;
      settings.cpu_share = share;
      settings.admit = Choice::automatic();
      settings.promote = Promotion::kAuto;
      auto planner = std::move(
          Planner::create(settings, routes.groups, std::vector{150u}, std::vector{4u}, default_profile())
              .value());
      const CostModel machine(default_profile());
      LayerClock clock;
      const uint64_t before = allocations;
      for (const Routes::Step& step : routes.steps())
        for (const Routes::Layer& layer : routes.layers(step))
          clock.run(*planner, machine, routes.routing(layer), layer.layer, 150.0);
      EXPECT_EQ(allocations - before, 0u) << policy_name(kind);
      EXPECT_GT(planner->report()->rehearsed_plans, 1000u);
    }
}

}  // namespace
}  // namespace experts
}  // namespace spillway
