#include "tune/figures.h"

#include <array>
#include <cmath>

#include "report/summary.h"

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

Figures figures_of(std::span<const report::Run* const> runs) {
  const report::Summary sum = report::summarize(runs);
  return {.decode_tok_s = sum.decode_tok_s,
          .prefill_tok_s = sum.prefill_tok_s,
          .ttft_s = sum.ttft_s,
          .p95_itl_ms = sum.p95_itl_ms,
          .hit_rate = sum.hit_rate.value_or(0)};
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
