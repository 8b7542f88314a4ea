// What the tuner decides from what was measured, and says of it.
#pragma once

#include <optional>
#include <string>

#include "tune/contest.h"
#include "tune/search.h"
#include "tune/time_model.h"
#include "tune/tuner.h"

namespace spillway::tune {

// The measurements that decide. Ratios are of speeds by the goal, above 1 where the second is the better.
struct Findings {
  const LabFacts& facts;
  Goal goal;
  const Entrant* by_default = nullptr;
  const Entrant* none_entrant = nullptr;              // the best without a cache; null: nothing was compared
  const Entrant* winner = nullptr;                    // null: the default
  std::optional<report::Comparison> gain, ttft, p95;  // default to winner
  std::optional<report::Comparison> none;             // default to no cache
  std::optional<report::Comparison> over_none;        // no cache to winner
  bool hurts_least = false;  // the winner; another is faster by the goal, and was left out for what it hurts
  enum class Ended : uint8_t { kByTime, kByRounds, kByHand } ended = Ended::kByTime;
};

// Outcome, recommended settings, gain and conclusion.
void decide(const Findings& findings, TuneReport& report);

// Of the same settings in other loading modes, the first entrant's being the one that is loaded.
void decide_load_mode(const Contest& modes, Goal goal, TuneReport& report);

// Between two entrants: from the rounds from `final_round` on, which were run after the best was chosen; from
// all where they shared too few of these.
std::optional<report::Comparison> compare_last(const Contest& contest, size_t a, size_t b, Goal goal,
                                               uint32_t final_round);

// Settings, runs and rows of what was run, then the rows of what was predicted alone.
void add_rows(const Contest& contest, Goal goal, uint32_t final_round, const SearchResult& found,
              TuneReport& report);

std::string words_for_check(const ModelCheck& check, bool failed);
std::string words_for_resident();
std::string words_for_fit();

}  // namespace spillway::tune
