#include "tune/contest.h"

#include <algorithm>

#include "base/assert.h"

namespace spillway::tune {
namespace {

// A try may take so many times what the others took before it is cut short.
constexpr double kPatience = 4.0;

}  // namespace

Figures Entrant::all() const {
  std::vector<const report::Run*> all;
  all.reserve(runs.size());
  for (const report::Run& run : runs) all.push_back(&run);
  return figures_of(all);
}

Contest::Contest(Lab& lab, Goal goal, uint32_t generate) : lab_(lab), goal_(goal), generate_(generate) {
  const std::vector<Prompt>& prompts = lab.facts().prompts;
  for (uint32_t i = 0; i < prompts.size(); ++i) (prompts[i].held_out ? held_out_ : warm_up_).push_back(i);
  SW_ASSERT(!warm_up_.empty() && !held_out_.empty());
}

size_t Contest::add(Entrant entrant) {
  for (size_t i = 0; i < entrants_.size(); ++i)
    if (entrants_[i].settings == entrant.settings) return i;
  entrants_.push_back(std::move(entrant));
  return entrants_.size() - 1;
}

double Contest::round_seconds() const {
  if (seconds_.empty()) return 0;
  double sum = 0;
  const size_t n = std::min<size_t>(seconds_.size(), entrants_.size());
  for (size_t i = seconds_.size() - n; i < seconds_.size(); ++i) sum += seconds_[i];
  return sum / static_cast<double>(n) *
         static_cast<double>(std::ranges::count_if(entrants_, [](const Entrant& e) { return e.in; }));
}

Result<void> Contest::round(double deadline_s) {
  std::vector<size_t> order;
  for (size_t i = 0; i < entrants_.size(); ++i)
    if (entrants_[i].in) order.push_back(i);
  if (rounds_ % 2 == 1) std::ranges::reverse(order);
  for (const size_t i : order) {
    const double began = lab_.seconds();
    double most = deadline_s - began;
    if (most <= 0) return fail(Error::Kind::kCancelled, "the time is over");
    if (!seconds_.empty()) most = std::min(most, kPatience * *std::ranges::max_element(seconds_));
    SW_ASSIGN(Trial trial,
              lab_.run(entrants_[i].settings, {.warm_up = {warm_up_[rounds_ % warm_up_.size()]},
                                               .measured = {held_out_[rounds_ % held_out_.size()]},
                                               .generate = generate_,
                                               .most_seconds = most}));
    seconds_.push_back(lab_.seconds() - began);
    order_.emplace_back(i, entrants_[i].runs.size());
    entrants_[i].runs.push_back(std::move(trial.run));
    entrants_[i].rounds.push_back(rounds_);
  }
  ++rounds_;
  return {};
}

void Contest::keep_only(const std::vector<size_t>& in) {
  for (size_t i = 0; i < entrants_.size(); ++i) entrants_[i].in = std::ranges::find(in, i) != in.end();
}

void Contest::drop_slow(double below, const std::vector<size_t>& spared) {
  const Figures reference = entrants_[0].all();
  double best = 0;
  for (const Entrant& entrant : entrants_)
    if (entrant.in) best = std::max(best, times_better(entrant.all(), reference, goal_));
  for (size_t i = 0; i < entrants_.size(); ++i)
    if (entrants_[i].in && std::ranges::find(spared, i) == spared.end() &&
        times_better(entrants_[i].all(), reference, goal_) < below * best)
      entrants_[i].in = false;
}

std::optional<report::Comparison> Contest::compare(size_t a, size_t b, uint32_t first_round) const {
  return compare(a, b, goal_, first_round);
}

std::optional<report::Comparison> Contest::compare(size_t a, size_t b, Goal by, uint32_t first_round) const {
  const Figures reference = entrants_[a].all();
  std::vector<double> of_a, of_b;
  for (size_t i = 0; i < entrants_[a].rounds.size(); ++i) {
    const uint32_t round = entrants_[a].rounds[i];
    const auto it = std::ranges::find(entrants_[b].rounds, round);
    if (round < first_round || round >= rounds_ || it == entrants_[b].rounds.end()) continue;
    const auto j = static_cast<size_t>(it - entrants_[b].rounds.begin());
    of_a.push_back(times_better(figures_of(entrants_[a].runs[i]), reference, by));
    of_b.push_back(times_better(figures_of(entrants_[b].runs[j]), reference, by));
  }
  if (of_a.empty()) return std::nullopt;
  return report::compare(of_a, of_b, report::Better::kHigher);
}

}  // namespace spillway::tune
