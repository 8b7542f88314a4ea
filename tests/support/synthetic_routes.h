// SYNTHETIC routes for tests: nothing here comes from a model. Each expert of a layer has a weight that is
// the product of two: a Zipf popularity and a topic factor that persists over some tens of tokens and drifts;
// a token takes k experts at random by these weights. The defaults were set so that hit rates at 12 / 20 / 30
// % cache with 128 experts and k 8 come near those of public route traces (LRU 61 / 75 / 86, CRF 65 / 78 /
// 87, Belady 78 / 88 / 94 %): they are 61 / 76 / 85, 65 / 78 / 86 and 79 / 88 / 93.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "experts/routes.h"

namespace spillway {
namespace experts {

struct SyntheticShape {
  uint32_t n_layers = 12, n_experts = 64, n_used = 6;
  uint64_t expert_bytes = 2'850'000;
  double zipf = 0.7;             // popularity of the i-th expert: (i + 1)^-zipf
  double topic = 2.2;            // standard deviation of the topic factor's logarithm
  double tokens_of_topic = 100;  // the topics of two tokens that far apart correlate by 1/e
  uint32_t prompt = 0;           // tokens of a first micro-batch
  uint32_t tokens = 600;         // one by one
  uint32_t seed = 1;
};

inline Routes synthetic_routes(const SyntheticShape& shape) {
  std::mt19937_64 random(shape.seed);
  const auto unit = [&] { return (static_cast<double>(random() >> 12) + 0.5) * 0x1p-52; };
  std::normal_distribution<double> normal;
  std::vector<std::vector<double>> popular(shape.n_layers), topic(shape.n_layers);
  for (uint32_t layer = 0; layer < shape.n_layers; ++layer) {
    for (uint32_t i = 0; i < shape.n_experts; ++i) {
      popular[layer].push_back(-shape.zipf * std::log(i + 1.0));
      topic[layer].push_back(shape.topic * normal(random));
    }
    std::shuffle(popular[layer].begin(), popular[layer].end(), random);
  }
  const double keep = std::exp(-1.0 / shape.tokens_of_topic);
  const double renew = shape.topic * std::sqrt(1.0 - keep * keep);
  std::vector<std::pair<double, ExpertId>> ranked(shape.n_experts);
  const auto token = [&](uint32_t layer) {
    // The k largest of log weight plus Gumbel noise are a draw by weight without replacement.
    for (ExpertId i = 0; i < shape.n_experts; ++i) {
      topic[layer][i] = keep * topic[layer][i] + renew * normal(random);
      const double noise = -std::log(-std::log(unit()));
      ranked[i] = {popular[layer][i] + topic[layer][i] + noise, i};
    }
    std::partial_sort(ranked.begin(), ranked.begin() + shape.n_used, ranked.end(), std::greater<>());
    std::vector<ExpertId> chosen;
    for (uint32_t i = 0; i < shape.n_used; ++i) chosen.push_back(ranked[i].second);
    return chosen;
  };

  Routes routes;
  GroupShape group{{}, shape.n_experts, shape.n_used, shape.expert_bytes};
  for (uint32_t layer = 0; layer < shape.n_layers; ++layer) group.layers.push_back(layer);
  routes.groups = {group};
  UseCounter counter(shape.n_experts);
  const auto step = [&](uint32_t n_tokens) {
    routes.begin_step(n_tokens);
    for (uint32_t layer = 0; layer < shape.n_layers; ++layer) {
      std::vector<uint32_t> ids;
      for (uint32_t t = 0; t < n_tokens; ++t) {
        const auto chosen = token(layer);
        ids.insert(ids.end(), chosen.begin(), chosen.end());
      }
      routes.add({layer, n_tokens, counter.count(ids, shape.n_experts)});
    }
  };
  if (shape.prompt > 0) step(shape.prompt);
  for (uint32_t i = 0; i < shape.tokens; ++i) step(1);
  return routes;
}

}  // namespace experts
}  // namespace spillway
