#include "tune/micro_batches.h"

#include <map>

#include "base/assert.h"

namespace spillway::tune {

using experts::Routes;

void append_merged(Routes& to, const Routes& from, size_t first, size_t n) {
  SW_ASSERT(n > 0 && first + n <= from.steps().size());
  const auto steps = from.steps().subspan(first, n);
  uint32_t n_tokens = 0;
  for (const Routes::Step& step : steps) n_tokens += step.n_tokens;
  to.begin_step(n_tokens);
  const auto layers = from.layers(steps[0]);
  if (n == 1) {
    for (const Routes::Layer& layer : layers) to.add(from.routing(layer));
    return;
  }
  std::vector<experts::Use> uses;
  for (size_t l = 0; l < layers.size(); ++l) {
    std::map<experts::ExpertId, uint32_t> tokens;
    for (const Routes::Step& step : steps) {
      SW_ASSERT(step.n_layers == layers.size());
      for (const experts::Use& use : from.routing(from.layers(step)[l]).uses)
        tokens[use.expert] += use.tokens;
    }
    uses.clear();
    for (const auto& [expert, count] : tokens) uses.push_back({expert, count});
    to.add({layers[l].layer, n_tokens, uses});
  }
}

Routes with_ubatch(const Routes& routes, uint32_t recorded, uint32_t ubatch) {
  SW_ASSERT(recorded > 1 && ubatch >= recorded);
  Routes merged;
  merged.groups = routes.groups;
  const size_t most = ubatch / recorded;
  const auto steps = routes.steps();
  for (size_t first = 0; first < steps.size();) {
    size_t n = 1;  // a full micro-batch goes on in the next one
    while (n < most && first + n < steps.size() && steps[first + n - 1].n_tokens == recorded &&
           steps[first + n].n_tokens > 1)
      ++n;
    append_merged(merged, routes, first, n);
    first += n;
  }
  return merged;
}

}  // namespace spillway::tune
