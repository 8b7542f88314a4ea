// What a setting comes to, and which of two is the better one for what a person wants.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "report/result.h"

namespace spillway::tune {

enum class Goal : uint8_t { kDecode, kTtft, kP95, kMixed };
Result<Goal> parse_goal(std::string_view text);
std::string_view goal_name(Goal goal);

// As report::Summary defines them; 0 where nothing of the kind was seen.
struct Figures {
  double decode_tok_s = 0;  // total over time
  double prefill_tok_s = 0;
  double ttft_s = 0;      // median over requests
  double p95_itl_ms = 0;  // between tokens
  double hit_rate = 0;
};

// Of all requests of these runs together: report::summarize().
Figures figures_of(std::span<const report::Run* const> runs);
Figures figures_of(const report::Run& run);

// How many times better for the goal; mixed: half decode, a quarter each TTFT and p95, multiplied.
double times_better(const Figures& figures, const Figures& than, Goal goal);

inline constexpr double kMostHarm = 0.05;  // what a better setting may cost in TTFT and p95

// The time to the first token or the tail gets worse by more than so much (0.05 is 5 %).
bool hurts(const Figures& figures, const Figures& than, double loss);

}  // namespace spillway::tune
