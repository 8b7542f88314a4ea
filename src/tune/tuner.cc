#include "tune/tuner.h"

#include <algorithm>
#include <cmath>

#include "tune/contest.h"
#include "tune/search.h"
#include "tune/time_model.h"
#include "tune/tuner_words.h"

namespace spillway::tune {
namespace {

using experts::Choice;

// Parts of the time at whose end each phase ends. What runs past the last but one is cut short at the last; a
// micro-batch can't be, hence the rest.
constexpr double kCalibrated = 0.30, kSearched = 0.45, kScreened = 0.72, kOver = 0.95, kCut = 0.97;
// With other loading modes to try, all of that is done in the first part of the time.
constexpr double kBeforeModes = 0.7, kModes = 0.96;
constexpr uint32_t kModeRounds = 5;
constexpr uint32_t kCalibrationTokens = 160;  // of an answer: a cache is refilled in about 30
constexpr uint32_t kFewestTokens = 24;
// Rounds that every entrant runs, and pairs of the final after which a verdict is enough.
constexpr uint32_t kScreening = 3, kFinal = 6, kMostFinal = 16;
constexpr size_t kMostEntrants = 7, kFewestEntrants = 3;
// Clearly slower than the best: out.
constexpr double kOutBelow = 0.9;
// As fast as the best for all that screening can tell: then the smaller cache.
constexpr double kAsGood = 0.99;

class Tuner {
 public:
  Tuner(Lab& lab, const experts::HardwareProfile& probed, const TuneOptions& options,
        const std::function<void(const TuneProgress&)>& progress)
      : lab_(lab),
        facts_(lab.facts()),
        probed_(probed),
        options_(options),
        progress_(progress),
        began_s_(lab.seconds()) {}

  Result<TuneReport> run() {
    report_.result.kind = "tune";
    report_.result.notes = facts_.notes;
    report_.cache_bytes = facts_.max_cache_bytes;
    if (facts_.groups.empty() || facts_.all_fits) return everything_fits();
    SW_TRY(check_limits());
    SW_TRY(calibrate());
    if (records_.empty()) return interrupted();
    SW_TRY(fit());
    SW_TRY(search_grid());
    SW_TRY(run_contest());
    conclude();
    SW_TRY(try_load_modes());
    keep_limits();
    if (lab_.stopped()) note("It was stopped by hand before all was done.");
    report_.stopped = lab_.stopped();
    return std::move(report_);
  }

 private:
  double deadline(double part) const {
    const double first = facts_.load_modes.empty() || part == kModes ? 1.0 : kBeforeModes;
    return began_s_ + first * part * options_.seconds;
  }
  void tell(const char* doing) {
    if (progress_) progress_({doing, lab_.seconds() - began_s_, options_.seconds});
  }
  void note(std::string sentence) { report_.result.notes.push_back(std::move(sentence)); }

  Result<TuneReport> everything_fits() {
    report_.outcome = Outcome::kEverythingFits;
    report_.result.conclusion = facts_.groups.empty() ? words_for_resident() : words_for_fit();
    return std::move(report_);
  }

  Result<TuneReport> interrupted() {
    report_.outcome = Outcome::kInterrupted;
    report_.stopped = lab_.stopped();
    report_.result.conclusion =
        report_.stopped ? "It was stopped before the first calibration run had ended: nothing is known."
                        : "The time was over before the first calibration run had ended: nothing is "
                          "known. More --minutes would allow it.";
    return std::move(report_);
  }

  // A cache below a token's experts of one layer, with what the planner keeps beside them, never hits.
  Result<void> check_limits() {
    uint64_t least = ~uint64_t{0};
    for (const experts::GroupShape& group : facts_.groups)
      least = std::min(least, (group.n_used + (group.n_used + 1) / 2) * group.expert_bytes);
    if (facts_.max_cache_bytes >= least) return {};
    return fail(
        Error::Kind::kNoMemory,
        "the limits leave {} MiB for the expert cache, and the smallest that can serve a layer has {} MiB: "
        "--max-device-mib {} is the least that would do",
        facts_.max_cache_bytes >> 20, (least >> 20) + 1, ((facts_.other_device_bytes + least) >> 20) + 1);
  }

  // Each resource alone and together, within the limits as everything else.
  std::vector<Settings> calibration_settings() const {
    const uint64_t most = facts_.max_cache_bytes, all = round_cache_bytes(static_cast<double>(most), most);
    const uint64_t quarter = round_cache_bytes(static_cast<double>(most) / 4, most);
    return {Settings{}, Settings{.cache_bytes = all, .cpu_share = Choice::number(0)},
            Settings{.cache_bytes = quarter, .cpu_share = Choice::number(1)},
            Settings{.cache_bytes = quarter, .cpu_share = Choice::number(0.5)}};
  }

  Result<void> calibrate() {
    std::vector<uint32_t> prompts;
    for (uint32_t i = 0; i < facts_.prompts.size(); ++i)
      if (!facts_.prompts[i].held_out) prompts.push_back(i);
    if (prompts.empty() || prompts.size() == facts_.prompts.size())
      return invalid(
          "calibration needs prompts of its own and some that it does not see; there are {} and {}",
          prompts.size(), facts_.prompts.size() - prompts.size());
    const std::vector<Settings> all = calibration_settings();
    for (size_t i = 0; i < all.size(); ++i) {
      tell("calibrating");
      const double left = deadline(kCalibrated) - lab_.seconds();
      if (left <= 0) break;
      Settings settings = all[i];
      // Small micro-batches can be put together to larger ones; one run shows what a large one takes.
      if (i != 1 && !facts_.ubatches.empty()) settings.ubatch = facts_.ubatches.front();
      auto trial = lab_.run(settings, {.warm_up = {prompts[2 * i % prompts.size()]},
                                       .measured = {prompts[(2 * i + 1) % prompts.size()]},
                                       .generate = kCalibrationTokens,
                                       .most_seconds = left / static_cast<double>(all.size() - i),
                                       .trace = true});
      if (!trial) {
        if (trial.error().kind == Error::Kind::kCancelled) break;
        return std::unexpected(trial.error());
      }
      if (!trial->run.cut_short.empty())
        note(fmt::format("A calibration run ({}) was cut short: the machine is slow for the time given.",
                         short_name(settings)));
      records_.push_back({std::move(settings), *std::move(trial)});
    }
    return {};
  }

  std::vector<Recorded> recorded() const {
    std::vector<Recorded> all;
    all.reserve(records_.size());
    for (const Record& record : records_) all.push_back({short_name(record.settings), &record.trial.trace});
    return all;
  }

  Result<void> fit() {
    tell("fitting");
    const std::vector<Recorded> records = recorded();
    auto model = fit_time_model(records, probed_);
    if (!model) {
      report_.model_failed = true;
      note(fmt::format("No time model could be fitted: {}.", model.error().message));
      return {};
    }
    model_ = *std::move(model);
    report_.result.terms = model_.terms;
    SW_ASSIGN(const ModelCheck check, check_time_model(model_, records));
    report_.model_error = check.error;
    report_.model_failed = check.error > kMostModelError && !options_.use_failed_model;
    note(words_for_check(check, report_.model_failed));
    return {};
  }

  // Tokens of an answer, so that every entrant can run its rounds in the time there is.
  void choose_length() {
    const Figures seen = figures_of(records_[0].trial.run);
    const double tries = kMostEntrants * kScreening + 3.0 * kFinal;
    const double each =
        (deadline(kOver) - std::max(lab_.seconds(), deadline(0.35))) / tries / 2 - seen.ttft_s;
    generate_ = static_cast<uint32_t>(std::clamp(each * std::max(seen.decode_tok_s, 0.01),
                                                 double{kFewestTokens}, double{kCalibrationTokens}));
    try_seconds_ = 2 * (seen.ttft_s + generate_ / std::max(seen.decode_tok_s, 0.01));
  }

  // What a token takes beside its steps: sampling, text.
  double outside_us() const {
    double itl_us = 0, step_us = 0;
    for (const Record& record : records_) {
      for (const report::Request& request : record.trial.run.requests)
        for (const double itl_ms : request.itl_ms) itl_us += 1000 * itl_ms;
      size_t step = 0;
      uint64_t tokens = 0;
      for (const experts::Trace::Event& event : record.trial.trace.events) {
        if (event.kind == experts::Trace::Kind::kStep) tokens = event.value;
        if (event.kind != experts::Trace::Kind::kStepEnd) continue;
        if (step++ >= record.trial.warm_up_steps && tokens <= facts_.users)
          step_us += static_cast<double>(event.value * tokens) / 1000;
      }
    }
    uint64_t n = 0;
    for (const Record& record : records_)
      for (const report::Request& request : record.trial.run.requests) n += request.itl_ms.size();
    return n > 0 ? std::max(0.0, (itl_us - step_us) / static_cast<double>(n)) : 0.0;
  }

  Result<void> search_grid() {
    choose_length();
    if (report_.model_failed) return {};
    std::vector<RecordedRoutes> routes;
    routes.reserve(records_.size());
    for (const Record& record : records_)
      routes.push_back(
          shortened({experts::routes_of(record.trial.trace), record.trial.warm_up_steps,
                     record.settings.ubatch > 0 ? record.settings.ubatch : facts_.default_ubatch},
                    generate_, facts_.users));
    predictor_.emplace(model_, records_[0].trial.trace.head.profile, facts_, std::move(routes), outside_us());
    SW_ASSIGN(found_, search(*predictor_, options_.goal, [&](double) {
                tell("searching");
                return !lab_.stopped() && lab_.seconds() < deadline(kSearched);
              }));
    if (!found_.whole)
      note(
          "The search was ended by the clock: part of the grid was not looked at. More --minutes would allow "
          "it.");
    return {};
  }

  // What a command line without flags does, whatever its words.
  bool is_default(const Settings& settings) const {
    Settings plain = settings;
    const uint64_t most = facts_.max_cache_bytes;
    if (plain.cache_bytes && *plain.cache_bytes >= round_cache_bytes(static_cast<double>(most), most))
      plain.cache_bytes.reset();
    if (plain.ubatch == facts_.default_ubatch) plain.ubatch = 0;
    if (!facts_.threads.empty() && plain.threads == facts_.threads[0].threads) plain.threads = 0;
    return plain == Settings{};
  }

  // The default, no cache, then what may be better, the most promising first.
  std::vector<Entrant> entrants() const {
    std::vector<Entrant> all;
    const auto add = [&](const Settings& settings, const char* role, std::optional<Figures> predicted) {
      if (!all.empty() && is_default(settings)) return;
      all.push_back({.settings = settings, .role = role, .predicted = predicted});
    };
    if (report_.model_failed) {
      const auto size = static_cast<double>(facts_.max_cache_bytes);
      const uint64_t most = round_cache_bytes(size, facts_.max_cache_bytes);
      const uint64_t half = round_cache_bytes(size / 2, facts_.max_cache_bytes);
      add({}, "default", {});
      add({.cache_bytes = 0}, "without a cache", {});
      add({.cache_bytes = most, .cpu_share = Choice::number(0)}, "to compare", {});
      add({.cache_bytes = most, .cpu_share = Choice::number(0.5)}, "to compare", {});
      add({.cache_bytes = half}, "to compare", {});
      add({.cache_bytes = half, .cpu_share = Choice::number(0.9)}, "to compare", {});
      return all;
    }
    add({}, "default", found_.by_default.figures);
    const auto without =
        std::ranges::find_if(found_.rows, [](const Predicted& p) { return !p.settings.has_cache(); });
    const Predicted& none = without != found_.rows.end() ? *without : found_.without_cache;
    add(none.settings, "without a cache", none.figures);
    // Of those with a cache the best; where that is none, it is still what the verdict is about.
    const auto best = std::ranges::find_if(
        found_.rows, [&](const Predicted& p) { return p.settings.has_cache() && !is_default(p.settings); });
    if (best == found_.rows.end()) return all;
    add(best->settings, "recommended", best->figures);
    // One that the model thinks as good but that is another choice, then the neighbours.
    const auto other = std::ranges::find_if(found_.rows, [&](const Predicted& p) {
      return p.settings.has_cache() && !is_default(p.settings) &&
             p.settings.cpu_share != best->settings.cpu_share;
    });
    if (other != found_.rows.end()) add(other->settings, "next best", other->figures);
    for (const Settings& settings : neighbours(best->settings, facts_)) add(settings, "neighbour", {});
    return all;
  }

  Result<void> run_contest() {
    contest_.emplace(lab_, options_.goal, generate_);
    const double tries = (deadline(kOver) - lab_.seconds()) / std::max(try_seconds_, 1e-9);
    const auto most = static_cast<size_t>(
        std::clamp(0.6 * tries / kScreening, double{kFewestEntrants}, double{kMostEntrants}));
    std::vector<Entrant> all = entrants();
    if (all.size() > most) {
      note(fmt::format("There was time to run {} of the {} settings that were to be compared.", most,
                       all.size()));
      all.resize(most);
    }
    note(fmt::format(
        "A run is a conversation that calibration did not see ({} of them, in turn), from an empty cache and "
        "after "
        "another one as warm-up. Its answers have up to {} tokens, whether the model would end them sooner "
        "or not.",
        std::ranges::count_if(facts_.prompts, [](const Prompt& p) { return p.held_out; }), generate_));
    for (Entrant& entrant : all) {
      if (!entrant.predicted && predictor_) {
        SW_ASSIGN(const Predicted predicted, predictor_->predict(entrant.settings));
        entrant.predicted = predicted.figures;
      }
      contest_->add(std::move(entrant));
    }
    const auto round = [&](const char* doing, double until) -> Result<bool> {
      tell(doing);
      if (lab_.stopped() || lab_.seconds() + contest_->round_seconds() > until) return false;
      const auto done = contest_->round(deadline(kCut));
      if (!done && done.error().kind != Error::Kind::kCancelled) return std::unexpected(done.error());
      return done.has_value();
    };
    bool on = true;
    while (on && contest_->rounds() < kScreening) {
      SW_ASSIGN(on, round("comparing", contest_->rounds() == 0 ? deadline(kOver) : deadline(kScreened)));
      if (contest_->rounds() == 2) contest_->drop_slow(kOutBelow, {0, 1});
    }
    if (contest_->rounds() == 0) return {};
    winner_ = choose_winner();
    passed_over_ = passes_over(winner_);
    first_final_ = contest_->rounds();
    contest_->keep_only(winner_ == 1 ? best_with_cache() : std::vector<size_t>{0, 1, winner_});
    on = true;
    while (on && contest_->rounds() < first_final_ + kMostFinal) {
      SW_ASSIGN(on, round("confirming", deadline(kOver)));
      if (contest_->rounds() >= first_final_ + kFinal && is_resolved()) break;
    }
    return {};
  }

  // By the goal, as a multiple of the default.
  double score(size_t i) const {
    const std::vector<Entrant>& all = contest_->entrants();
    return times_better(all[i].all(), all[0].all(), options_.goal);
  }

  // Whether one that is better by the goal is left out, for what it hurts.
  bool passes_over(size_t winner) const {
    const std::vector<Entrant>& all = contest_->entrants();
    for (size_t i = 1; i < all.size(); ++i)
      if (all[i].in && score(i) * kAsGood > score(winner)) return true;
    return false;
  }

  // By what was measured: the best that hurts nothing, or the best where all do; of those as good, that with
  // the smallest cache.
  size_t choose_winner() const {
    const std::vector<Entrant>& all = contest_->entrants();
    const Figures reference = all[0].all();
    const auto harmful = [&](size_t i) { return hurts(all[i].all(), reference, kMostHarm); };
    size_t best = 1;
    for (size_t i = 1; i < all.size(); ++i) {
      const bool better = harmful(i) != harmful(best) ? harmful(best) : score(i) > score(best);
      if (all[i].in && better) best = i;
    }
    if (harmful(best)) return best;
    const auto bytes = [&](size_t i) { return all[i].settings.cache_bytes.value_or(facts_.max_cache_bytes); };
    size_t smallest = best;
    for (size_t i = 1; i < all.size(); ++i)
      if (all[i].in && !harmful(i) && score(i) >= kAsGood * score(best) && bytes(i) < bytes(smallest))
        smallest = i;
    return smallest;
  }

  // Where no cache is the best: the best with one, against which that is to be shown.
  std::vector<size_t> best_with_cache() const {
    const std::vector<Entrant>& all = contest_->entrants();
    size_t best = 0;
    for (size_t i = 2; i < all.size(); ++i)
      if (all[i].in && score(i) > (best == 0 ? 1.0 : score(best))) best = i;
    return best == 0 ? std::vector<size_t>{0, 1} : std::vector<size_t>{0, 1, best};
  }

  std::optional<report::Comparison> against(size_t a, size_t b, Goal goal) const {
    return compare_last(*contest_, a, b, goal, first_final_);
  }

  bool is_resolved() const {
    for (const auto& [a, b] : {std::pair<size_t, size_t>{0, winner_}, {1, winner_}}) {
      if (a == b) continue;
      const auto compared = against(a, b, options_.goal);
      if (!compared || compared->verdict == report::Verdict::kNotResolved) return false;
    }
    return true;
  }

  // The recommended settings once more, loaded in another way.
  Result<void> try_load_modes() {
    if (facts_.load_modes.empty() || lab_.stopped() || report_.outcome == Outcome::kInterrupted) return {};
    Contest modes(lab_, options_.goal, generate_);
    Settings settings = report_.recommended;
    settings.load_mode = facts_.load_mode;
    modes.add({.settings = settings, .role = "loaded"});
    for (const std::string& mode : facts_.load_modes) {
      settings.load_mode = mode;
      modes.add({.settings = settings, .role = "loading mode"});
    }
    while (modes.rounds() < kModeRounds && lab_.seconds() + modes.round_seconds() < deadline(kModes)) {
      tell("loading in other ways");
      const auto done = modes.round(deadline(kModes));
      if (!done && done.error().kind != Error::Kind::kCancelled) return std::unexpected(done.error());
      if (!done) break;
    }
    decide_load_mode(modes, options_.goal, report_);
    add_rows(modes, options_.goal, 0, {}, report_);
    return {};
  }

  // Without the limits, a size that is left open would be a larger one.
  void keep_limits() {
    const uint64_t most = facts_.max_cache_bytes;
    if (!facts_.limited || report_.recommended == Settings{} || report_.recommended.cache_bytes) return;
    report_.recommended.cache_bytes = round_cache_bytes(static_cast<double>(most), most);
    report_.result.conclusion +=
        fmt::format(" Within the limits given, that is {}.", command_text(report_.recommended));
  }

  void conclude() {
    Findings findings{.facts = facts_, .goal = options_.goal};
    findings.ended = lab_.stopped()                                    ? Findings::Ended::kByHand
                     : contest_->rounds() >= first_final_ + kMostFinal ? Findings::Ended::kByRounds
                                                                       : Findings::Ended::kByTime;
    if (contest_->rounds() > 0) {
      if (winner_ != 0) {
        findings.winner = &contest_->entrants()[winner_];
        findings.hurts_least = passed_over_;
        findings.gain = against(0, winner_, options_.goal);
        findings.ttft = against(0, winner_, Goal::kTtft);
        findings.p95 = against(0, winner_, Goal::kP95);
        if (winner_ != 1) findings.over_none = against(1, winner_, options_.goal);
      }
      findings.none = against(0, 1, options_.goal);
      findings.none_entrant = &contest_->entrants()[1];
    }
    findings.by_default = &contest_->entrants()[0];
    decide(findings, report_);
    add_rows(*contest_, options_.goal, first_final_, found_, report_);
    tell("done");
  }

  struct Record {
    Settings settings;
    Trial trial;
  };

  Lab& lab_;
  const LabFacts& facts_;
  const experts::HardwareProfile& probed_;
  const TuneOptions options_;
  const std::function<void(const TuneProgress&)>& progress_;
  const double began_s_;
  TuneReport report_;
  std::vector<Record> records_;
  TimeModel model_;
  std::optional<Predictor> predictor_;
  SearchResult found_;
  uint32_t generate_ = kCalibrationTokens;
  double try_seconds_ = 0;
  std::optional<Contest> contest_;
  size_t winner_ = 0;
  bool passed_over_ = false;
  uint32_t first_final_ = 0;
};

}  // namespace

Result<TuneReport> tune(Lab& lab, const experts::HardwareProfile& probed, const TuneOptions& options,
                        const std::function<void(const TuneProgress&)>& progress) {
  return Tuner(lab, probed, options, progress).run();
}

}  // namespace spillway::tune
