// SYNTHETIC routes, from a statistic instead of a model: for plans of models that nobody has run yet, and for
// tests. Whatever comes of them is estimated.
//
// Each expert of a layer has a weight that is the product of two: a Zipf popularity and a topic factor that
// persists over some tens of tokens and drifts; a token takes k experts at random by these weights. The
// defaults were set so that hit rates at 12 / 20 / 30 % cache with 128 experts and k 8 come near those of
// three short public route traces (LRU 61 / 75 / 86, CRF 65 / 78 / 87, Belady 78 / 88 / 94 %): they are 61 /
// 76 / 85, 65 / 78 / 86 and 79 / 88 / 93.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "experts/routes.h"

namespace spillway {
namespace experts {

struct RoutingStatistic {
  double zipf = 0.7;             // popularity of the i-th expert: (i + 1)^-zipf
  double topic = 2.2;            // standard deviation of the topic factor's logarithm
  double tokens_of_topic = 100;  // the topics of two tokens that far apart correlate by 1/e
};

class SyntheticRouter {
 public:
  // Requires: check_groups(groups); layers numbered from 0 without gaps.
  SyntheticRouter(std::span<const GroupShape> groups, const RoutingStatistic& statistic, uint64_t seed)
      : random_(seed),
        layers_(count_layers(groups)),
        keep_(std::exp(-1.0 / statistic.tokens_of_topic)),
        renew_(statistic.topic * std::sqrt(1.0 - keep_ * keep_)),
        counter_(most_experts(groups)) {
    routes_.groups.assign(groups.begin(), groups.end());
    for (const GroupShape& group : groups)
      for (const LayerId layer : group.layers)
        layers_[layer] = {.n_experts = group.n_experts, .n_used = group.n_used};
    for (Layer& layer : layers_) {
      for (uint32_t i = 0; i < layer.n_experts; ++i) {
        layer.popular.push_back(-statistic.zipf * std::log(i + 1.0));
        layer.topic.push_back(statistic.topic * normal_(random_));
      }
      std::shuffle(layer.popular.begin(), layer.popular.end(), random_);
    }
  }

  // A micro-batch of tokens that follow each other.
  void step(uint32_t n_tokens) {
    routes_.begin_step(n_tokens);
    for (LayerId l = 0; l < layers_.size(); ++l) {
      ids_.clear();
      for (uint32_t t = 0; t < n_tokens; ++t) choose(layers_[l]);
      routes_.add({l, n_tokens, counter_.count(ids_, layers_[l].n_experts)});
    }
  }

  const Routes& routes() const { return routes_; }

 private:
  struct Layer {
    uint32_t n_experts = 0, n_used = 0;
    std::vector<double> popular, topic;  // (n_experts), logarithms of weights
  };

  static uint32_t most_experts(std::span<const GroupShape> groups) {
    uint32_t most = 0;
    for (const GroupShape& group : groups) most = std::max(most, group.n_experts);
    return most;
  }

  void choose(Layer& layer) {
    // The k largest of log weight plus Gumbel noise are a draw by weight without replacement.
    ranked_.resize(layer.n_experts);
    for (ExpertId i = 0; i < layer.n_experts; ++i) {
      layer.topic[i] = keep_ * layer.topic[i] + renew_ * normal_(random_);
      const double unit = (static_cast<double>(random_() >> 12) + 0.5) * 0x1p-52;
      ranked_[i] = {layer.popular[i] + layer.topic[i] - std::log(-std::log(unit)), i};
    }
    std::partial_sort(ranked_.begin(), ranked_.begin() + layer.n_used, ranked_.end(), std::greater<>());
    for (uint32_t i = 0; i < layer.n_used; ++i) ids_.push_back(ranked_[i].second);
  }

  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::vector<Layer> layers_;
  double keep_, renew_;  // of the topic factor, from token to token
  UseCounter counter_;
  std::vector<std::pair<double, ExpertId>> ranked_;
  std::vector<uint32_t> ids_;
  Routes routes_;
};

}  // namespace experts
}  // namespace spillway
