#include "experts/controller.h"

#include <algorithm>

#include "base/assert.h"
#include "experts/b12191.h"
#include "experts/cost_model.h"

namespace spillway {
namespace experts {
namespace {

// The two halves of the 1 % that looking may cost.
constexpr double kProbeShare = 0.005;
constexpr double kRehearsalShare = 0.005;
// A plan with its simulated clock took 0.66 us on a 2.5 GHz server core; with a margin.
constexpr double kPlanUs = 1.0;
// Layers of each group that are rehearsed: each needs its own plans, and the more the steadier the mean.
constexpr uint32_t kSampledLayers = 4;
// Steps of a stretch, and those at its start that don't count: a cache is refilled in about 30.
constexpr uint32_t kStretch = 64;
constexpr uint32_t kUncounted = 24;
// Batches that are rehearsed; a prompt does not change a cache by much and costs as much as many tokens.
constexpr uint32_t kMostTokens = 32;
constexpr double kBetter = 0.995;  // to be put in force
// Plans between two probes, and how rare a kind has to be to be probed.
constexpr uint64_t kProbeEvery = 32;
constexpr uint64_t kRare = 64;
// Of a step's time, what a probe may cost by its prediction; a kind not seen yet may cost more than
// predicted.
constexpr double kDearest = 0.1;
constexpr double kDearestUnseen = 0.05;

// Every k-th layer of each group, with its part of the slots.
struct Sample {
  std::vector<GroupShape> groups;
  std::vector<uint32_t> slots;
};
Sample sample_of(std::span<const GroupShape> groups, std::span<const uint32_t> slots) {
  Sample sample;
  for (GroupId g = 0; g < groups.size(); ++g) {
    const auto n = static_cast<uint32_t>(groups[g].layers.size());
    const uint32_t n_sampled = std::min(n, kSampledLayers);
    GroupShape part = groups[g];
    part.layers.clear();
    for (uint32_t i = 0; i < n_sampled; ++i)
      part.layers.push_back(groups[g].layers[size_t{i} * n / n_sampled]);
    sample.groups.push_back(std::move(part));
    sample.slots.push_back(static_cast<uint32_t>(uint64_t{slots[g]} * n_sampled / n));
  }
  return sample;
}

std::vector<Alternative> alternatives_of(const PlannerSettings& settings, bool plain) {
  std::vector<bool> promotes = {true, false};
  if (settings.promote == Promotion::kOn) promotes = {true};
  if (settings.promote == Promotion::kOff || (settings.promote == Promotion::kUnset && plain))
    promotes = {false};
  std::vector<Alternative> all;
  for (const bool promote : promotes) {
    std::vector<double> admits = {kFirstAdmit, 1.0, 4.0};
    // Uploads that are needed anyway are kept where they are wanted at all: the factor matters less.
    if (!promote) admits = {1.0, kFirstAdmit};
    if (settings.admit.is_number()) admits = {settings.admit.value};
    if (settings.admit.kind == Choice::Kind::kUnset && plain) admits = {0.0};
    for (const double admit : admits) all.push_back({.admit = admit, .promote = promote});
  }
  all.push_back({.admit = 0.0, .promote = false, .cache = false});
  return all;
}

}  // namespace

Controller::Controller(const PlannerSettings& settings, std::span<const GroupShape> groups,
                       std::span<const uint32_t> slots, std::span<const uint32_t> ring_slots,
                       const HardwareProfile& profile)
    : may_give_up_(!settings.cpu_share.is_number()) {
  const bool plain = settings.cpu_share.is_number() || settings.policy.kind == PolicyKind::kB12191;
  report_.alternatives = alternatives_of(settings, plain);
  report_.corrections.fill(1.0);
  const Sample sample = sample_of(groups, slots);
  layers_per_step_ = count_layers(groups);
  for (const GroupShape& group : sample.groups)
    for (const LayerId layer : group.layers) {
      if (sampled_.size() <= layer) sampled_.resize(layer + 1, 0);
      sampled_[layer] = 1;
      plans_per_stretch_ += kStretch * static_cast<double>(report_.alternatives.size());
      first_sampled_ = std::min(first_sampled_, layer);
    }
  for (const Alternative& alternative : report_.alternatives) {
    PlannerSettings own = settings;
    own.explore = false;
    own.admit = Choice::number(alternative.admit);
    own.promote = alternative.promote ? Promotion::kOn : Promotion::kOff;
    own.max_open_plans = 1;
    const std::vector<uint32_t> none(slots.size(), 0);
    auto planner =
        Planner::create(own, sample.groups, alternative.cache ? sample.slots : none, ring_slots, profile);
    SW_ASSERT(planner.has_value());  // the same settings made the planner itself
    rehearsals_.push_back({std::move(*planner), {}, 0.0});
  }
}

Controller::~Controller() = default;

Split Controller::choose(const Split& best, const Splitter& splitter) {
  if (plans_ < last_probe_ + kProbeEvery) return best;
  const double budget = kProbeShare * report_.watched_us - report_.probes_us;
  const double step_us = report_.watched_us / static_cast<double>(plans_) * layers_per_step_;
  const Split* rarest = nullptr;
  for (uint32_t k = 0; k < kSplitKinds; ++k) {
    const auto& split = splitter.best_of(static_cast<SplitKind>(k));
    if (!split || split->kind == best.kind || report_.seen[k] * kRare > plans_) continue;
    const double cost = split->us - best.us;
    const double dearest = report_.seen[k] == 0 ? kDearestUnseen : kDearest;
    if (cost > budget || cost > dearest * step_us) continue;
    if (rarest == nullptr || report_.seen[k] < report_.seen[static_cast<size_t>(rarest->kind)])
      rarest = &*split;
  }
  if (rarest == nullptr) return best;
  last_probe_ = plans_;
  return *rarest;
}

void Controller::observe(SplitKind kind, double predicted_us, double best_us, double seen_us) {
  if (seen_us <= 0.0 || predicted_us <= 0.0) return;
  const auto k = static_cast<size_t>(kind);
  ++plans_;
  report_.watched_us += seen_us;
  if (best_us > 0.0) {
    const double cost = std::max(0.0, seen_us - best_us);
    ++report_.probes;
    report_.probes_us += cost;
    report_.dearest_probe_us = std::max(report_.dearest_probe_us, cost);
  }
  const double rate = std::max(kLearningRate, 1.0 / static_cast<double>(++report_.seen[k] + 1));
  double& correction = report_.corrections[k];
  correction += rate * (std::clamp(seen_us / predicted_us, 0.5, 2.0) - correction);
}

void Controller::link_idles(double gap_us) {
  gap_us_ = promotes_ ? gap_us_ + kLearningRate * (gap_us - gap_us_) : gap_us;
  promotes_ = true;
}

void Controller::rehearse(const Routing& routing, const CostModel& machine) {
  if (routing.layer >= sampled_.size() || sampled_[routing.layer] == 0 || routing.n_tokens > kMostTokens)
    return;
  if (routing.layer == first_sampled_) begin_step(machine);
  if (step_ == 0) return;
  for (Rehearsal& rehearsal : rehearsals_) {
    const double us = rehearsal.clock.run(*rehearsal.planner, machine, routing, routing.layer, gap_us_);
    if (step_ > kUncounted) rehearsal.us += us;
  }
  report_.rehearsed_plans += rehearsals_.size();
  if (step_ > kUncounted) ++counted_;
}

// Goes on with the stretch under way; judges it when it is over; begins the next when it can be paid for. The
// first one is free, but for a step that shows how the link idles.
void Controller::begin_step(const CostModel& machine) {
  const bool goes_on = step_ > 0 && step_ < kStretch;
  if (goes_on) {
    ++step_;
  } else {
    if (step_ == kStretch) judge();
    const double us = kPlanUs * (static_cast<double>(report_.rehearsed_plans) + plans_per_stretch_);
    const bool first = report_.rehearsed_plans == 0 && report_.watched_us > 0.0;
    step_ = first || us < kRehearsalShare * report_.watched_us ? 1 : 0;
    counted_ = 0;
    for (Rehearsal& rehearsal : rehearsals_) rehearsal.us = 0.0;
  }
  // They split by the rates by which they are timed.
  if (step_ > 0)
    for (Rehearsal& rehearsal : rehearsals_) rehearsal.planner->adopt(machine);
}

void Controller::judge() {
  size_t best = report_.chosen;
  for (size_t i = 0; i < rehearsals_.size(); ++i) {
    Alternative& alternative = report_.alternatives[i];
    const double us = rehearsals_[i].us / static_cast<double>(counted_);
    alternative.layer_us = alternative.rehearsed == 0 ? us : 0.5 * (alternative.layer_us + us);
    alternative.rehearsed += counted_;
    if ((alternative.promote && !promotes_) || (!alternative.cache && !may_give_up_)) continue;
    if (alternative.layer_us < report_.alternatives[best].layer_us) best = i;
  }
  // A cache that saves nothing is none: what it holds may only be in the way.
  const size_t none = report_.alternatives.size() - 1;
  if (may_give_up_ && kBetter * report_.alternatives[none].layer_us < report_.alternatives[best].layer_us)
    best = none;
  // The present one is among the rehearsed, so the comparison is between like and like.
  const bool better = report_.alternatives[best].layer_us < kBetter * chosen().layer_us;
  if (best == report_.chosen || (!better && best != none)) return;
  report_.chosen = best;
  ++report_.changes;
}

}  // namespace experts
}  // namespace spillway
