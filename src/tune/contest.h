// Settings that are run against each other: in rounds, each setting once a round on the same prompts, in an
// order that is reversed in turn, so that what slows the machine for a while slows all of them. Those that
// are clearly slower leave after some rounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/statistics.h"
#include "tune/figures.h"
#include "tune/lab.h"

namespace spillway::tune {

struct Entrant {
  Settings settings;
  std::string role;  // "default", "without a cache", "recommended", "neighbour"
  std::optional<Figures> predicted;
  bool in = true;
  std::vector<report::Run> runs;  // (rounds that it was in)
  std::vector<uint32_t> rounds;   // which these are
  Figures all() const;            // of all runs together
};

class Contest {
 public:
  // `generate`: tokens of each answer. Prompts: of the lab's facts, warm-up with calibration's, measured the
  // held-out ones.
  Contest(Lab& lab, Goal goal, uint32_t generate);

  // The first entrant is what the others are compared with.
  size_t add(Entrant entrant);
  const std::vector<Entrant>& entrants() const { return entrants_; }
  // In the order in which they ran: entrant and index of its run.
  const std::vector<std::pair<size_t, size_t>>& order() const { return order_; }

  // All that are in, once; none may run past `deadline_s` of the lab's clock. kCancelled where stopped; a
  // round that did not end does not count in comparisons.
  Result<void> round(double deadline_s);
  uint32_t rounds() const { return rounds_; }
  // Seconds that a round takes, as the last ones did; 0: none was run.
  double round_seconds() const;

  // Leaves: those for which `out` says so.
  void keep_only(const std::vector<size_t>& in);
  void drop_slow(double below, const std::vector<size_t>& spared);

  // Speed by the goal of `b` against `a`, from `first_round` on, over rounds that both were in. Above 1: b is
  // the better. Nothing where they shared none.
  std::optional<report::Comparison> compare(size_t a, size_t b, uint32_t first_round = 0) const;
  std::optional<report::Comparison> compare(size_t a, size_t b, Goal by, uint32_t first_round = 0) const;

 private:
  Lab& lab_;
  const Goal goal_;
  const uint32_t generate_;
  std::vector<uint32_t> warm_up_, held_out_;
  std::vector<Entrant> entrants_;
  std::vector<std::pair<size_t, size_t>> order_;
  std::vector<double> seconds_;  // (tries) of each
  uint32_t rounds_ = 0;
};

}  // namespace spillway::tune
