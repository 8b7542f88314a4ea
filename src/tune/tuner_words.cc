#include "tune/tuner_words.h"

#include <algorithm>

#include "report/summary.h"
#include "report/words.h"

namespace spillway::tune {
namespace {

using report::Comparison;
using report::Harm;

bool is_gain(const std::optional<Comparison>& c) {
  return c && c->pairs >= report::kFewestPairs && c->ratio > 1 + kLeastGain && c->interval.low > 1;
}

// Seen to be no slower than by what matters.
bool is_as_good(const std::optional<Comparison>& c) {
  return c && c->pairs >= report::kFewestPairs && c->interval.low >= 1 - kLeastGain;
}

Harm harm_of(const std::optional<Comparison>& c) {
  return c ? report::harm(*c, kMostHarm) : Harm::kNotResolved;
}

std::string times_text(const Comparison& c) {
  if (c.pairs < report::kFewestPairs)
    return fmt::format("{:.2f} times ({}: too few to tell)", c.ratio, report::count_text(c.pairs, "pair"));
  return fmt::format("{:.2f} times (95 %: {:.2f} to {:.2f}, {} pairs of runs)", c.ratio, c.interval.low,
                     c.interval.high, c.pairs);
}

std::string figure_text(const Figures& f, Goal goal) {
  switch (goal) {
    case Goal::kTtft:
      return fmt::format("{:.0f} ms to the first token", 1000 * f.ttft_s);
    case Goal::kP95:
      return fmt::format("{:.1f} ms between tokens at the 95th percentile", f.p95_itl_ms);
    case Goal::kDecode:
    case Goal::kMixed:
      break;
  }
  return fmt::format("{:.1f} tok/s", f.decode_tok_s);
}

std::string better_words(Goal goal) {
  switch (goal) {
    case Goal::kTtft:
      return "as quick to the first token";
    case Goal::kP95:
      return "as quick between tokens at the 95th percentile";
    case Goal::kMixed:
      return "as good by the mixed goal (half decode, a quarter each time to first token and p95)";
    case Goal::kDecode:
      break;
  }
  return "as fast at decoding";
}

std::string harm_words(const char* what, const std::optional<Comparison>& c) {
  switch (harm_of(c)) {
    case Harm::kNo:
      return fmt::format("{} is not hurt by more than {:.0f} %", what, 100 * kMostHarm);
    case Harm::kYes:
      return fmt::format("{} gets worse: {} as good", what, times_text(*c));
    case Harm::kNotResolved:
      break;
  }
  return fmt::format("whether {} is hurt by more than {:.0f} % is not resolved", what, 100 * kMostHarm);
}

const char* what_would_tell(Findings::Ended ended) {
  switch (ended) {
    case Findings::Ended::kByHand:
      return "It was stopped by hand; a whole run may tell.";
    case Findings::Ended::kByRounds:
      return "More pairs than that are not run, whatever the time: what difference there may be is lost in "
             "how "
             "much runs differ here. A workload with longer answers, or a quieter machine, may tell.";
    case Findings::Ended::kByTime:
      break;
  }
  return "The time was over; more --minutes may tell.";
}

void keep_default(const Findings& f, TuneReport& report) {
  report.outcome = Outcome::kDefault;
  report.recommended = {};
  std::string& text = report.result.conclusion;
  const std::string have = figure_text(f.by_default->all(), f.goal);
  text = fmt::format("Keep the default: {} (measured). ", have);
  if (f.winner == nullptr || !f.gain) {
    text += "There was no time to compare anything with it.";
    return;
  }
  const std::string what = short_name(f.winner->settings);
  if (!is_gain(f.gain)) {
    const std::string best =
        fmt::format("The best of the others{}, {}, was {}{} {}",
                    f.hurts_least ? " that hurt neither the time to the first token nor the slow tokens" : "",
                    what, f.gain->verdict == report::Verdict::kSlower ? "only " : "", times_text(*f.gain),
                    better_words(f.goal));
    switch (f.gain->verdict) {
      case report::Verdict::kNotResolved:
        text += fmt::format("{}: not resolved. {}", best, what_would_tell(f.ended));
        return;
      case report::Verdict::kSlower:
        text += best + ".";
        return;
      case report::Verdict::kFaster:
      case report::Verdict::kNoDifference:
        break;
    }
    text += fmt::format("{}: less than the {:.0f} % that would be worth it.", best, 100 * kLeastGain);
    return;
  }
  text += fmt::format("{} was {} {}, but ", what, times_text(*f.gain), better_words(f.goal));
  if (harm_of(f.ttft) == Harm::kYes) {
    text += harm_words("the time to the first token", f.ttft) + ".";
  } else if (harm_of(f.p95) == Harm::kYes) {
    text += harm_words("the 95th percentile between tokens", f.p95) + ".";
  } else {
    text += "against no cache at all that could not be told.";
  }
}

void recommend_none(const Findings& f, TuneReport& report) {
  report.outcome = Outcome::kNoCache;
  report.recommended = f.none_entrant->settings;
  const bool gain = is_gain(f.none);
  report.gain = gain ? f.none->ratio : 1;
  report.result.conclusion = fmt::format(
      "The expert cache does not pay here. Without it ({}): {}; with the default: {} (measured); without is "
      "{} {}. {}",
      command_text(report.recommended), figure_text(f.none_entrant->all(), f.goal),
      figure_text(f.by_default->all(), f.goal), times_text(*f.none), better_words(f.goal),
      gain ? "It also leaves the device's memory free."
           : "That is no gain in speed, but it leaves the device's memory free.");
  if (f.over_none)
    report.result.conclusion +=
        fmt::format(" The best cache that was tried, {}, was {} {} against none.",
                    short_name(f.winner->settings), times_text(*f.over_none), better_words(f.goal));
}

}  // namespace

void decide(const Findings& f, TuneReport& report) {
  if (!f.none || f.none_entrant == nullptr) {
    report.outcome = f.by_default->runs.empty() ? Outcome::kInterrupted : Outcome::kDefault;
    report.result.conclusion =
        "It ended before settings could be compared: nothing is recommended. What was measured is below.";
    return;
  }
  report.result.notes.emplace_back(report::kRatioWords);
  const bool winner_is_none = f.winner != nullptr && !f.winner->settings.has_cache();
  const bool harmed = harm_of(f.ttft) == Harm::kYes || harm_of(f.p95) == Harm::kYes;
  if (winner_is_none && !harmed && (is_gain(f.none) || is_as_good(f.none))) return recommend_none(f, report);
  if (f.winner == nullptr) return keep_default(f, report);
  if (!winner_is_none && !is_gain(f.over_none) && is_as_good(f.none)) return recommend_none(f, report);
  if (winner_is_none || !is_gain(f.gain) || harmed || !is_gain(f.over_none)) return keep_default(f, report);
  report.outcome = Outcome::kTuned;
  report.recommended = f.winner->settings;
  report.gain = f.gain->ratio;
  report.result.conclusion = fmt::format(
      "Use {}: {} against {} with the default (measured), {} {}. Against no cache at all it is {}. Beside "
      "it, {}; {}.",
      command_text(report.recommended), figure_text(f.winner->all(), f.goal),
      figure_text(f.by_default->all(), f.goal), times_text(*f.gain), better_words(f.goal),
      times_text(*f.over_none), harm_words("the time to the first token", f.ttft),
      harm_words("the 95th percentile between tokens", f.p95));
}

void decide_load_mode(const Contest& modes, Goal goal, TuneReport& report) {
  const std::vector<Entrant>& all = modes.entrants();
  double best = 1;
  std::string sentence = fmt::format(" Loaded in other ways, it was not seen to be better than with -lm {}.",
                                     all[0].settings.load_mode);
  for (size_t i = 1; i < all.size(); ++i) {
    const auto compared = modes.compare(0, i);
    if (!compared || compared->pairs < report::kFewestPairs) {
      report.result.notes.push_back(
          fmt::format("There was no time to tell whether -lm {} is better.", all[i].settings.load_mode));
      continue;
    }
    report.result.notes.push_back(fmt::format("With -lm {} it is {} {} against -lm {}.",
                                              all[i].settings.load_mode, times_text(*compared),
                                              better_words(goal), all[0].settings.load_mode));
    const bool harmed = harm_of(modes.compare(0, i, Goal::kTtft)) == Harm::kYes ||
                        harm_of(modes.compare(0, i, Goal::kP95)) == Harm::kYes;
    if (!is_gain(compared) || harmed || compared->ratio <= best) continue;
    best = compared->ratio;
    report.recommended.load_mode = all[i].settings.load_mode;
    sentence = fmt::format(" Load it with -lm {}: {} {} against -lm {}.", all[i].settings.load_mode,
                           times_text(*compared), better_words(goal), all[0].settings.load_mode);
  }
  report.gain *= best;
  if (best > 1 && report.outcome == Outcome::kDefault) report.outcome = Outcome::kTuned;
  report.result.conclusion += sentence;
}

std::optional<Comparison> compare_last(const Contest& contest, size_t a, size_t b, Goal goal,
                                       uint32_t final_round) {
  const auto last = contest.compare(a, b, goal, final_round);
  return last && last->pairs >= report::kFewestPairs ? last : contest.compare(a, b, goal);
}

void add_rows(const Contest& contest, Goal goal, uint32_t final_round, const SearchResult& found,
              TuneReport& report) {
  report::ResultFile& result = report.result;
  result.goal = goal_name(goal);
  const std::vector<Entrant>& entrants = contest.entrants();
  std::vector<uint32_t> index(entrants.size(), ~uint32_t{0});
  for (size_t i = 0; i < entrants.size(); ++i) {
    const Entrant& entrant = entrants[i];
    if (entrant.runs.empty()) continue;
    index[i] = static_cast<uint32_t>(result.settings.size());
    result.settings.push_back({.name = short_name(entrant.settings), .flags = flags_of(entrant.settings)});
    const Figures all = entrant.all();
    report::Row row{
        .setting = result.settings.back().name,
        .label = Label::kMeasured,
        .cache_bytes = static_cast<double>(entrant.settings.cache_bytes.value_or(report.cache_bytes)),
        .share = share_text(entrant.settings),
        .decode_tok_s = all.decode_tok_s,
        .prefill_tok_s = all.prefill_tok_s,
        .ttft_s = all.ttft_s,
        .p95_itl_ms = all.p95_itl_ms,
        .hit_rate = all.hit_rate};
    std::vector<const report::Run*> runs;
    runs.reserve(entrant.runs.size());
    for (const report::Run& run : entrant.runs) runs.push_back(&run);
    if (const auto decoded = report::amounts_of(runs, report::decode_amount);
        decoded.size() >= report::kFewestPairs) {
      const report::Interval interval = report::bootstrap_rate(decoded);
      row.decode_low = interval.low, row.decode_high = interval.high;
    }
    if (entrant.predicted) row.predicted_tok_s = entrant.predicted->decode_tok_s;
    if (i > 0 && result.rows[0].setting == short_name(entrants[0].settings))
      if (const auto compared = compare_last(contest, 0, i, goal, final_round))
        row.verdict = report::verdict_name(compared->verdict);
    result.rows.push_back(std::move(row));
  }
  for (const auto& [entrant, run] : contest.order()) {
    result.runs.push_back(entrants[entrant].runs[run]);
    result.runs.back().setting = index[entrant];
  }
  for (const Predicted& predicted : found.rows) {
    const bool was_run = std::ranges::any_of(
        entrants, [&](const Entrant& e) { return !e.runs.empty() && e.settings == predicted.settings; });
    if (was_run) continue;
    const Figures& f = predicted.figures;
    result.rows.push_back({.setting = short_name(predicted.settings),
                           .label = Label::kPredicted,
                           .cache_bytes = static_cast<double>(predicted.settings.cache_bytes.value_or(0)),
                           .share = share_text(predicted.settings),
                           .decode_tok_s = f.decode_tok_s,
                           .prefill_tok_s = f.prefill_tok_s,
                           .ttft_s = f.ttft_s,
                           .p95_itl_ms = f.p95_itl_ms,
                           .hit_rate = f.hit_rate});
  }
}

std::string words_for_check(const ModelCheck& check, bool failed) {
  if (!failed)
    return fmt::format(
        "The time model reproduces the calibration runs to within {:.1f} %, so its predictions are shown.",
        100 * check.error);
  const auto worst = std::ranges::max_element(check.runs, {}, [](const ModelCheck::Run& run) {
    return run.error() < 0 ? -run.error() : run.error();
  });
  return fmt::format(
      "The time model failed: for the run with {} it says {:.0f} ms, and it took {:.0f} ms ({:+.0f} %). The "
      "term "
      "that failed is {}: {}. So no prediction is used, only what was measured.",
      worst->name, worst->predicted_us / 1000, worst->measured_us / 1000, 100 * worst->error(),
      check.worst_term, check.words);
}

std::string words_for_resident() {
  return "All experts are resident on the device: nothing is decided while running, the expert cache is not "
         "needed, "
         "and there is nothing to tune.";
}

std::string words_for_fit() {
  return "All experts fit on the device: the expert cache is not needed. Leave out -cmoe, -ncmoe and the "
         "--moe-cache flags, and all experts are made resident.";
}

}  // namespace spillway::tune
