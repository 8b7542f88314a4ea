#include "tune/figures.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace spillway::tune {
namespace {

constexpr std::array<std::string_view, 4> kGoals = {"decode", "ttft", "p95", "mixed"};

// Where one of them is not known, there is nothing to choose by.
double ratio(double a, double b) { return a > 0 && b > 0 ? a / b : 1.0; }

}  // namespace

Result<Goal> parse_goal(std::string_view text) {
  for (size_t i = 0; i < kGoals.size(); ++i)
    if (text == kGoals[i]) return static_cast<Goal>(i);
  return invalid("'{}' is no goal; there are {}", text, fmt::join(kGoals, ", "));
}

std::string_view goal_name(Goal goal) { return kGoals[static_cast<size_t>(goal)]; }

double p95(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t at = std::min(values.size() - 1, values.size() * 95 / 100);
  const auto it = values.begin() + static_cast<std::ptrdiff_t>(at);
  std::nth_element(values.begin(), it, values.end());
  return *it;
}

Figures figures_of(std::span<const report::Run* const> runs) {
  double tokens = 0, decode_s = 0, computed = 0, prefill_s = 0, ttft_s = 0, requests = 0;
  uint64_t hits = 0, misses = 0;
  std::vector<double> itl_ms;
  for (const report::Run* run : runs) {
    for (const report::Request& request : run->requests) {
      if (request.generated_tokens == 0) continue;
      tokens += static_cast<double>(request.itl_ms.size());
      decode_s += request.decode_s;
      computed += request.prompt_tokens - request.cached_tokens;
      prefill_s += request.prefill_s;
      ttft_s += request.ttft_s;
      requests += 1;
      itl_ms.insert(itl_ms.end(), request.itl_ms.begin(), request.itl_ms.end());
    }
    if (run->experts) hits += run->experts->hits, misses += run->experts->misses;
  }
  Figures figures;
  if (decode_s > 0) figures.decode_tok_s = tokens / decode_s;
  if (prefill_s > 0) figures.prefill_tok_s = computed / prefill_s;
  if (requests > 0) figures.ttft_s = ttft_s / requests;
  figures.p95_itl_ms = p95(std::move(itl_ms));
  if (hits + misses > 0) figures.hit_rate = static_cast<double>(hits) / static_cast<double>(hits + misses);
  return figures;
}

Figures figures_of(const report::Run& run) {
  const report::Run* one[] = {&run};
  return figures_of(one);
}

bool hurts(const Figures& figures, const Figures& than, double loss) {
  return times_better(figures, than, Goal::kTtft) < 1 - loss ||
         times_better(figures, than, Goal::kP95) < 1 - loss;
}

double times_better(const Figures& figures, const Figures& than, Goal goal) {
  const double decode = ratio(figures.decode_tok_s, than.decode_tok_s);
  const double ttft = ratio(than.ttft_s, figures.ttft_s);
  const double tail = ratio(than.p95_itl_ms, figures.p95_itl_ms);
  switch (goal) {
    case Goal::kDecode:
      return decode;
    case Goal::kTtft:
      return ttft;
    case Goal::kP95:
      return tail;
    case Goal::kMixed:
      return std::sqrt(decode * std::sqrt(ttft * tail));
  }
  return decode;
}

}  // namespace spillway::tune
