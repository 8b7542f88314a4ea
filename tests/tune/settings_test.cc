#include "tune/settings.h"

#include <gtest/gtest.h>

#include "tune/micro_batches.h"
#include "tune/sim_machines.h"

namespace spillway::tune {
namespace {

using experts::Choice;
using experts::Promotion;

TEST(Settings, AreFlagsAndBack) {
  for (const Settings& settings : {Settings{}, Settings{.cache_bytes = 0},
                                   Settings{.cache_bytes = 3 << 19, .cpu_share = Choice::number(0.35)},
                                   Settings{.cache_bytes = uint64_t{19392} << 20,
                                            .cpu_share = Choice::number(1),
                                            .admit = Choice::number(2),
                                            .promote = Promotion::kOff,
                                            .ubatch = 256,
                                            .threads = 6,
                                            .load_mode = "mlock"},
                                   Settings{.admit = Choice::automatic(), .promote = Promotion::kOn}}) {
    const auto back = settings_of(flags_of(settings));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, settings) << command_text(settings);
  }
  EXPECT_EQ(command_text({.cache_bytes = 3 << 19}), "--moe-cache-cpu-share auto --moe-cache-mib 1.5");
}

TEST(Settings, RefuseWhatIsNotTuned) {
  const auto message = [](const char* flag, const char* value) {
    const auto settings = settings_of({{flag, value}});
    return settings ? "taken" : settings.error().message;
  };
  EXPECT_NE(message("--temp", "1").find("--temp"), std::string::npos);
  EXPECT_NE(message("--moe-cache-mib", "many").find("many"), std::string::npos);
  EXPECT_NE(message("--moe-cache-cpu-share", "half").find("half"), std::string::npos);
  EXPECT_NE(message("--moe-promote", "maybe").find("maybe"), std::string::npos);
  EXPECT_NE(message("-t", "-1").find("-1"), std::string::npos);
}

TEST(Settings, SizesAreShortToWriteAndFit) {
  constexpr uint64_t kMib = 1 << 20;
  EXPECT_EQ(round_cache_bytes(100.2 * kMib, 200 * kMib), 101 * kMib);
  EXPECT_EQ(round_cache_bytes(100.2 * kMib, 100 * kMib + 5), 100 * kMib);
  EXPECT_EQ(round_cache_bytes(1.03 * kMib, 2 * kMib), kMib + kMib / 16);
  EXPECT_EQ(round_cache_bytes(0, kMib), 0u);
}

TEST(Settings, SlotsAreSharedOutByBytes) {
  const experts::GroupShape small{{0, 1}, 8, 2, 100}, large{{2}, 16, 2, 300};
  const std::vector<experts::GroupShape> groups = {small, large};
  EXPECT_EQ(expert_bytes(groups), 2u * 8 * 100 + 16 * 300);
  EXPECT_EQ(slots_for(groups, 6400), (std::vector<uint32_t>{16, 16}));
  EXPECT_EQ(slots_for(groups, 3200), (std::vector<uint32_t>{8, 8}));
  EXPECT_EQ(slots_for(groups, 1 << 30), (std::vector<uint32_t>{16, 16}));
  EXPECT_EQ(slots_for(groups, 0), (std::vector<uint32_t>{0, 0}));
}

// A prompt's micro-batches put together are those that a larger limit would have made.
TEST(MicroBatches, ArePutTogether) {
  const experts::Routes tokens =
      experts::synthetic_routes({.n_layers = 2, .n_experts = 16, .n_used = 4, .tokens = 100});
  const auto cut = [&](size_t prompt, size_t ubatch) {
    experts::Routes routes;
    routes.groups = tokens.groups;
    for (size_t at = 0; at < prompt; at += ubatch)
      append_merged(routes, tokens, at, std::min(ubatch, prompt - at));
    for (size_t at = prompt; at < 90; ++at) append_merged(routes, tokens, at, 1);
    return routes;
  };
  for (const size_t prompt : {8, 64, 70, 80})
    for (const uint32_t ubatch : {8, 16, 32}) {
      const experts::Routes merged = with_ubatch(cut(prompt, 8), 8, ubatch), direct = cut(prompt, ubatch);
      ASSERT_EQ(merged.steps().size(), direct.steps().size()) << prompt << " " << ubatch;
      for (size_t i = 0; i < direct.steps().size(); ++i) {
        EXPECT_EQ(merged.steps()[i].n_tokens, direct.steps()[i].n_tokens);
        const auto a = merged.layers(merged.steps()[i]), b = direct.layers(direct.steps()[i]);
        for (size_t l = 0; l < a.size(); ++l) {
          const auto x = merged.routing(a[l]).uses, y = direct.routing(b[l]).uses;
          ASSERT_EQ(x.size(), y.size());
          for (size_t u = 0; u < x.size(); ++u) {
            EXPECT_EQ(x[u].expert, y[u].expert);
            EXPECT_EQ(x[u].tokens, y[u].tokens);
          }
        }
      }
    }
}

}  // namespace
}  // namespace spillway::tune
