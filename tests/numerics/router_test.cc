#include "numerics/router.h"

#include <gtest/gtest.h>

#include <cmath>

#include "numerics/float_bits.h"

namespace spillway::numerics {
namespace {

struct Routed {
  std::vector<uint32_t> ids;
  std::vector<float> weights;
};

Routed routed(RouterParams p, std::vector<float> logits) {
  p.n_experts = static_cast<uint32_t>(logits.size());
  EXPECT_TRUE(check_router(p));
  Routed out{std::vector<uint32_t>(p.n_used), std::vector<float>(p.n_used)};
  route(p, logits.data(), out.ids.data(), out.weights.data());
  return out;
}

using Ids = std::vector<uint32_t>;

TEST(Router, TopKTiesAndNan) {
  const std::vector<float> values = {1, 3, NAN, 3, -INFINITY, 2, 3};
  Ids ids(7);
  top_k(values, 7, ids.data());
  EXPECT_EQ(ids, (Ids{1, 3, 6, 5, 0, 2, 4}));
  ids.resize(2);
  top_k(values, 2, ids.data());
  EXPECT_EQ(ids, (Ids{1, 3}));
  top_k(std::vector<float>{0.0f, -0.0f, 0.0f}, 2, ids.data());
  EXPECT_EQ(ids, (Ids{0, 1}));
}

TEST(Router, SoftmaxThenRenormalise) {
  RouterParams p;
  p.n_used = 2;
  const float two = std::log(2.0f);
  Routed r = routed(p, {0, two, 0, 0});  // probabilities 1/5 2/5 1/5 1/5
  EXPECT_EQ(r.ids, (Ids{1, 0}));
  EXPECT_NEAR(r.weights[0], 0.4, 1e-6);
  EXPECT_NEAR(r.weights[1], 0.2, 1e-6);
  p.renormalise = true;
  p.scale = 3;
  r = routed(p, {0, two, 0, 0});
  EXPECT_NEAR(r.weights[0], 2, 1e-6);
  EXPECT_NEAR(r.weights[1], 1, 1e-6);
}

TEST(Router, SigmoidWithBiasForTheChoiceOnly) {
  RouterParams p;
  p.gating = Gating::kSigmoid;
  p.n_used = 1;
  const float bias[] = {0, 0, 1};
  p.bias = bias;
  const Routed r = routed(p, {2, 1, 0});
  EXPECT_EQ(r.ids, (Ids{2}));
  EXPECT_EQ(r.weights[0], 0.5f);
}

TEST(Router, SoftmaxOfTheChosen) {
  RouterParams p;
  p.gating = Gating::kSoftmaxOfTopK;
  p.n_used = 2;
  const Routed r = routed(p, {5, 1, 5, 0});
  EXPECT_EQ(r.ids, (Ids{0, 2}));
  EXPECT_EQ(r.weights[0], 0.5f);
}

// Groups {0,1}, {2,3}, {4,5}: sums of two are 0.9+0 < 0.6+0.5; with one best, 0.9 wins.
TEST(Router, GroupLimited) {
  RouterParams p;
  p.gating = Gating::kSigmoid;
  p.n_used = 1;
  p.n_groups = 3;
  p.n_groups_used = 1;
  const auto logit = [](double x) { return static_cast<float>(std::log(x / (1 - x))); };
  const std::vector<float> logits = {logit(.9), -100, logit(.6), logit(.5), logit(.2), logit(.1)};
  EXPECT_EQ(routed(p, logits).ids, (Ids{2}));
  p.group_top = 1;
  EXPECT_EQ(routed(p, logits).ids, (Ids{0}));
  p.n_used = 2;
  p.n_groups_used = 2;
  EXPECT_EQ(routed(p, logits).ids, (Ids{0, 2}));
}

TEST(Router, TinyAndNanWeights) {
  RouterParams p;
  p.gating = Gating::kSigmoid;
  p.n_used = 2;
  p.renormalise = true;
  Routed r = routed(p, {-60, -60, -60});
  EXPECT_EQ(r.ids, (Ids{0, 1}));
  EXPECT_EQ(r.weights[0], 0.0f);
  r = routed(p, {NAN, 0, NAN});
  EXPECT_EQ(r.ids, (Ids{1, 0}));
  EXPECT_TRUE(is_nan(r.weights[0]));
}

TEST(Router, Refusals) {
  RouterParams p;
  p.n_experts = 8;
  p.n_used = 0;
  EXPECT_FALSE(check_router(p));
  p.n_used = 9;
  EXPECT_FALSE(check_router(p));
  p.n_used = 4;
  EXPECT_TRUE(check_router(p));
  p.n_groups = 3;
  EXPECT_FALSE(check_router(p));
  p.n_groups = 4;
  p.n_groups_used = 1;
  EXPECT_FALSE(check_router(p));  // two experts a group, four used
  p.n_groups_used = 5;
  EXPECT_FALSE(check_router(p));
}

}  // namespace
}  // namespace spillway::numerics
