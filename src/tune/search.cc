#include "tune/search.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "report/statistics.h"
#include "tune/micro_batches.h"

namespace spillway::tune {
namespace {

using experts::Choice;
using experts::Promotion;

constexpr std::array kSizes = {0.125, 0.25, 0.5, 0.75, 1.0};            // of the largest cache
constexpr std::array kShares = {-1.0, 0.0, 0.25, 0.5, 0.75, 0.9, 1.0};  // below 0: auto
// From public route traces: beyond 4 a cache hardly changes any more.
constexpr std::array kAdmits = {0.0, 1.0, 2.0, 4.0};
// Of the coarse grid, how many are refined.
constexpr size_t kRefined = 3;
// Predictions that near are the same: of those the smallest cache is taken, and then the simplest setting.
constexpr double kSame = 0.995;
constexpr double kHurts = 1e-6;

Choice share_of(double value) { return value < 0 ? Choice::automatic() : Choice::number(value); }

// Settings to look at next to one, from the grid's own steps.
std::vector<Settings> variations(const Settings& from, const LabFacts& facts) {
  std::vector<Settings> all;
  const auto with = [&](auto change) {
    Settings settings = from;
    change(settings);
    if (settings != from && std::ranges::find(all, settings) == all.end()) all.push_back(settings);
  };
  if (from.cache_bytes && *from.cache_bytes > 0) {
    const double most = static_cast<double>(facts.max_cache_bytes);
    const double part = static_cast<double>(*from.cache_bytes) / most;
    for (const double factor : {0.7, 0.85, 1.2, 1.4})
      if (part * factor < 1.0)
        with([&](Settings& s) {
          s.cache_bytes = round_cache_bytes(part * factor * most, facts.max_cache_bytes);
        });
  }
  if (from.cpu_share.is_number())
    for (const double by : {-0.12, -0.06, 0.06, 0.12}) {
      const double share = from.cpu_share.value + by;
      if (share > 0.0 && share < 1.0)
        with([&](Settings& s) { s.cpu_share = Choice::number(std::round(share * 100) / 100); });
    }
  if (from.has_cache()) {
    for (const double admit : kAdmits) with([&](Settings& s) { s.admit = Choice::number(admit); });
    for (const Promotion promote : {Promotion::kOn, Promotion::kOff})
      with([&](Settings& s) { s.promote = promote; });
  }
  return all;
}

}  // namespace

RecordedRoutes shortened(const RecordedRoutes& recorded, uint32_t generate, uint32_t users) {
  RecordedRoutes result{.ubatch = recorded.ubatch};
  result.routes.groups = recorded.routes.groups;
  uint32_t decoded = 0;
  for (size_t i = 0; i < recorded.routes.steps().size(); ++i) {
    if (i == recorded.warm_up_steps) result.warm_up_steps = result.routes.steps().size();
    decoded = recorded.routes.steps()[i].n_tokens > users ? 0 : decoded + 1;
    if (decoded < generate) append_merged(result.routes, recorded.routes, i, 1);
  }
  return result;
}

Predictor::Predictor(const TimeModel& model, const experts::HardwareProfile& believed, const LabFacts& facts,
                     std::vector<RecordedRoutes> routes, double outside_us)
    : model_(model),
      believed_(believed),
      facts_(facts),
      recorded_(std::move(routes)),
      outside_us_(outside_us) {}

// Micro-batches larger than that stay as they are.
const std::vector<RecordedRoutes>& Predictor::routes_at(uint32_t ubatch) {
  std::vector<RecordedRoutes>& merged = routes_[ubatch];
  if (!merged.empty()) return merged;
  for (const RecordedRoutes& recorded : recorded_) {
    if (recorded.ubatch < 2 || recorded.ubatch >= ubatch) {
      merged.push_back(recorded);
      continue;
    }
    // The warm-up on its own: its last micro-batch does not go on in the first that counts.
    experts::Routes warm_up, measured;
    warm_up.groups = measured.groups = recorded.routes.groups;
    for (size_t i = 0; i < recorded.routes.steps().size(); ++i)
      append_merged(i < recorded.warm_up_steps ? warm_up : measured, recorded.routes, i, 1);
    RecordedRoutes all{.routes = with_ubatch(warm_up, recorded.ubatch, ubatch), .ubatch = ubatch};
    all.warm_up_steps = all.routes.steps().size();
    measured = with_ubatch(measured, recorded.ubatch, ubatch);
    for (size_t i = 0; i < measured.steps().size(); ++i) append_merged(all.routes, measured, i, 1);
    merged.push_back(std::move(all));
  }
  return merged;
}

Result<Predicted> Predictor::predict(const Settings& settings) {
  ++replays_;
  TimeModel model = model_;
  for (const ThreadChoice& choice : facts_.threads)
    if (choice.threads == settings.threads) {
      experts::HardwareProfile& p = model.profile;
      p.cpu_gb_s.value *= choice.cpu_rate;
      p.cpu_contended_gb_s.value *= choice.cpu_rate;
      p.dram_gb_s.value = std::max(p.dram_gb_s.value, p.cpu_gb_s.value);
    }
  experts::SimulationSetup setup;
  setup.settings = planner_settings(settings);
  setup.slots = slots_for(facts_.groups, settings.cache_bytes.value_or(facts_.max_cache_bytes));
  setup.ring_slots = facts_.ring_slots;
  setup.believed = believed_;

  double decode_us = 0, decoded = 0, prefill_us = 0, prefilled = 0;
  uint64_t hits = 0, misses = 0;
  std::vector<double> itl_ms, ttft_s;
  for (const RecordedRoutes& recorded :
       routes_at(settings.ubatch > 0 ? settings.ubatch : facts_.default_ubatch)) {
    SW_ASSIGN(const experts::SimulationResult replayed, model.replay(recorded.routes, setup));
    bool in_prompt = false;
    for (size_t i = recorded.warm_up_steps; i < replayed.steps_us.size(); ++i) {
      const uint32_t n_tokens = recorded.routes.steps()[i].n_tokens;
      const double us = replayed.steps_us[i];
      if (n_tokens > facts_.users) {
        if (!in_prompt) ttft_s.push_back(0);
        in_prompt = true;
        prefill_us += us;
        ttft_s.back() += 1e-6 * us;
        prefilled += n_tokens;
        continue;
      }
      in_prompt = false;
      decode_us += us + outside_us_;
      decoded += n_tokens;
      itl_ms.push_back((us + outside_us_) * 1e-3);
    }
    hits += replayed.warm.hits;
    misses += replayed.warm.misses;
  }
  Predicted predicted{.settings = settings};
  Figures& f = predicted.figures;
  if (decode_us > 0) f.decode_tok_s = 1e6 * decoded / decode_us;
  if (prefill_us > 0) f.prefill_tok_s = 1e6 * prefilled / prefill_us;
  f.ttft_s = report::median(ttft_s);
  f.p95_itl_ms = report::quantile(itl_ms, 0.95);
  if (hits + misses > 0) f.hit_rate = static_cast<double>(hits) / static_cast<double>(hits + misses);
  return predicted;
}

Result<SearchResult> search(Predictor& predictor, Goal goal, const std::function<bool(double)>& go_on) {
  const LabFacts& facts = predictor.facts();
  SearchResult found;
  SW_ASSIGN(found.by_default, predictor.predict({}));
  SW_ASSIGN(found.without_cache, predictor.predict({.cache_bytes = 0}));
  const Figures reference = found.by_default.figures;
  // What would hurt is not recommended: it comes after all that would not.
  const auto score = [&](const Predicted& p) {
    const double better = times_better(p.figures, reference, goal);
    return hurts(p.figures, reference, kMostHarm) ? kHurts * better : better;
  };
  // How many predictions there will be, for the progress alone.
  const double expected = static_cast<double>(kShares.size() * (kSizes.size() + 1) + kRefined * 14 +
                                              facts.ubatches.size() + facts.threads.size());
  double done = 0;
  const auto look = [&](const Settings& settings) -> Result<bool> {
    if (std::ranges::find(found.rows, settings, &Predicted::settings) != found.rows.end()) return true;
    if (!go_on(std::min(1.0, done / expected))) {
      found.whole = false;
      return false;
    }
    SW_ASSIGN(Predicted predicted, predictor.predict(settings));
    found.rows.push_back(std::move(predicted));
    ++done;
    return true;
  };
  const auto cache = [](const Predicted& p) { return p.settings.cache_bytes.value_or(0); };
  const auto sort = [&] {
    std::ranges::stable_sort(found.rows, [&](const auto& a, const auto& b) { return score(a) > score(b); });
    // Of those that are as good as the best: the smallest, then that with the fewest words.
    if (found.rows.empty()) return;
    const double least = kSame * score(found.rows[0]);
    const auto end = std::ranges::find_if(found.rows, [&](const Predicted& p) { return score(p) < least; });
    std::stable_sort(found.rows.begin(), end, [&](const Predicted& a, const Predicted& b) {
      if (cache(a) != cache(b)) return cache(a) < cache(b);
      return flags_of(a.settings).size() < flags_of(b.settings).size();
    });
  };
  const auto look_at_all = [&](std::span<const Settings> all) -> Result<bool> {
    for (const Settings& settings : all) {
      SW_ASSIGN(const bool on, look(settings));
      if (!on) return false;
    }
    return true;
  };

  // The micro-batch first: by far the most of what a prompt takes hangs on it, and decoding does not ask for
  // it.
  uint32_t ubatch = 0;
  if (goal == Goal::kTtft || goal == Goal::kMixed) {
    std::vector<Settings> all;
    for (const uint32_t n : facts.ubatches)
      if (n != facts.default_ubatch) all.push_back({.ubatch = n});
    SW_TRY(look_at_all(all));
    sort();
    if (!found.rows.empty() && score(found.rows[0]) > 1) ubatch = found.rows[0].settings.ubatch;
  }
  std::vector<Settings> coarse;
  coarse.reserve(std::size(kShares) * (1 + std::size(kSizes)));
  const auto most = static_cast<double>(facts.max_cache_bytes);
  for (const double share : kShares)
    coarse.push_back({.cache_bytes = 0, .cpu_share = share_of(share), .ubatch = ubatch});
  for (const double size : kSizes)
    for (const double share : kShares)
      coarse.push_back({.cache_bytes = round_cache_bytes(size * most, facts.max_cache_bytes),
                        .cpu_share = share_of(share),
                        .ubatch = ubatch});
  SW_ASSIGN(bool on, look_at_all(coarse));
  sort();
  std::vector<Settings> best;
  for (size_t i = 0; i < std::min(kRefined, found.rows.size()); ++i) best.push_back(found.rows[i].settings);
  for (const Settings& settings : best) {
    if (!on) break;
    SW_ASSIGN(on, look_at_all(variations(settings, facts)));
  }
  sort();
  if (on) {
    std::vector<Settings> last;
    for (const ThreadChoice& choice : facts.threads) {
      last.push_back(found.rows[0].settings);
      last.back().threads = choice.threads;
    }
    SW_TRY(look_at_all(last));
    sort();
  }
  return found;
}

std::vector<Settings> neighbours(const Settings& settings, const LabFacts& facts) {
  std::vector<Settings> all;
  const auto with = [&](auto change) {
    Settings other = settings;
    change(other);
    if (other != settings && std::ranges::find(all, other) == all.end()) all.push_back(other);
  };
  const uint64_t most = facts.max_cache_bytes, size = settings.cache_bytes.value_or(most);
  const auto resized = [&](double factor) {
    with([&](Settings& s) { s.cache_bytes = round_cache_bytes(factor * static_cast<double>(size), most); });
  };
  // Another way to share first: there the model may be wrong by the most.
  with([&](Settings& s) {
    s.cpu_share = s.cpu_share.is_number() ? Choice::automatic() : Choice::number(0.5);
    s.admit = {};
    s.promote = Promotion::kUnset;
  });
  if (size > 0) {
    if (size < most) resized(1.4);
    resized(0.7);
  } else {
    with([&](Settings& s) { s.cache_bytes = round_cache_bytes(static_cast<double>(most), most); });
  }
  if (settings.cpu_share.is_number())
    with([&](Settings& s) {
      const double share = s.cpu_share.value;
      s.cpu_share = Choice::number(share > 0.5 ? share - 0.15 : share + 0.15);
    });
  else if (settings.has_cache())
    with([&](Settings& s) { s.admit = Choice::number(1.0); });
  return all;
}

}  // namespace spillway::tune
