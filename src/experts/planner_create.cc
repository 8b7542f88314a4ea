// Making a planner: what the settings mean, which are refused, and what is not in force.
#include <algorithm>

#include "base/limits.h"
#include "experts/controller.h"
#include "experts/planner.h"

namespace spillway {
namespace experts {
namespace {

constexpr uint32_t kMostGroups = 1u << 8;  // as a ticket's bits
constexpr uint32_t kMostSlots = 1u << 24;

bool is_reference(const PlannerSettings& settings) { return settings.policy.kind == PolicyKind::kB12191; }

Result<void> check(const PlannerSettings& s, std::span<const GroupShape> groups,
                   std::span<const uint32_t> slots, std::span<const uint32_t> ring_slots) {
  SW_TRY(check_groups(groups));
  if (groups.size() > kMostGroups || slots.size() != groups.size() || ring_slots.size() != groups.size())
    return invalid(
        "expert cache: {} groups with {} cache sizes and {} ring sizes; one of each is needed, for at "
        "most {} groups",
        groups.size(), slots.size(), ring_slots.size(), kMostGroups);
  for (const uint32_t n : slots)
    if (n >= kMostSlots) return invalid("expert cache: {} slots; at most {} are handled", n, kMostSlots - 1);
  if (s.cpu_share.is_number() && !(s.cpu_share.value >= 0.0 && s.cpu_share.value <= 1.0))
    return invalid("CPU share {}: a number from 0 to 1 or auto is needed", s.cpu_share.value);
  if (s.admit.is_number() && !(s.admit.value >= 0.0 && s.admit.value <= 1e6))
    return invalid("admission factor {}: a number from 0 to 1000000 or auto is needed", s.admit.value);
  if (s.policy.half_life != 0 && !(s.policy.half_life >= 1.0 && s.policy.half_life <= 1e6))
    return invalid("half-life {}: 1 to 1000000 tokens are needed", s.policy.half_life);
  if (s.max_open_plans > limits::kMaxLayers)
    return invalid("expert cache: {} open plans; at most {} are handled", s.max_open_plans,
                   limits::kMaxLayers);
  return {};
}

}  // namespace

Planner::~Planner() = default;

Planner::Group::Group(const GroupShape& s, uint32_t n_slots, uint32_t ring_slots,
                      std::unique_ptr<Policy> policy, UseFloors floors, double cpu_share)
    : pool(s, n_slots, std::move(policy), floors),
      n_ring(ring_slots),
      fill(std::min(n_slots, pool.floors().n_layers * s.n_experts)),
      full(fill == 0),
      share(cpu_share),
      copies(n_slots) {}

Result<std::unique_ptr<Planner>> Planner::create(const PlannerSettings& settings,
                                                 std::span<const GroupShape> groups,
                                                 std::span<const uint32_t> slots,
                                                 std::span<const uint32_t> ring_slots,
                                                 const HardwareProfile& profile, const PolicyMaker& maker) {
  SW_TRY(check(settings, groups, slots, ring_slots));
  SW_TRY(profile.check());
  if (settings.policy.kind == PolicyKind::kBelady && !maker)
    return unsupported("cache policy 'belady' needs the future: it is for replays only");
  return std::unique_ptr<Planner>(new Planner(settings, groups, slots, ring_slots, profile, maker));
}

Planner::Planner(const PlannerSettings& settings, std::span<const GroupShape> groups,
                 std::span<const uint32_t> slots, std::span<const uint32_t> ring_slots,
                 const HardwareProfile& profile, const PolicyMaker& maker)
    : settings_(settings), cost_(profile), splitter_(0) {
  uint32_t max_experts = 0;
  for (GroupId g = 0; g < groups.size(); ++g) {
    const GroupShape& shape = groups[g];
    const PoolShape pool{static_cast<uint32_t>(shape.layers.size()), shape.n_experts, slots[g]};
    groups_.emplace_back(shape, slots[g], ring_slots[g],
                         maker ? maker(g, pool) : make_policy(settings.policy, pool),
                         is_reference(settings) ? UseFloors::kNo : UseFloors::kYes,
                         settings.cpu_share.is_number() ? settings.cpu_share.value : 0.0);
    max_experts = std::max(max_experts, shape.n_experts);
    for (uint32_t i = 0; i < shape.layers.size(); ++i) {
      if (layers_.size() <= shape.layers[i]) layers_.resize(shape.layers[i] + 1);
      layers_[shape.layers[i]].group = g;
      layers_[shape.layers[i]].index = i;
      layers_[shape.layers[i]].wanted.fill(kNone);
    }
  }

  // A number for the share means the reference's behaviour, which ties computing and caching together:
  // neither an admission test nor promotions, unless they are asked for.
  const bool plain = settings.cpu_share.is_number() || is_reference(settings);
  admit_ = settings.admit.is_number()                             ? settings.admit.value
           : settings.admit.kind == Choice::Kind::kUnset && plain ? 0.0
                                                                  : kFirstAdmit;
  promote_ = settings.promote == Promotion::kOn || settings.promote == Promotion::kAuto ||
             (settings.promote == Promotion::kUnset && !plain);
  const bool all_given =
      plain && settings.admit.kind != Choice::Kind::kAuto && settings.promote != Promotion::kAuto;
  if (settings.explore && !all_given && settings.policy.kind != PolicyKind::kBelady) {
    controller_ = std::make_unique<Controller>(settings, groups, slots, ring_slots, profile);
    follow_controller();
  }

  const uint32_t n_open = settings.max_open_plans > 0 ? settings.max_open_plans : count_layers(groups);
  open_.resize(n_open);
  free_open_.reserve(n_open);
  for (uint32_t i = n_open; i-- > 0;) {
    open_[i].entries.reserve(max_experts);
    open_[i].evicted.reserve(max_experts);
    free_open_.push_back(i);
  }
  splitter_ = Splitter(max_experts);
  for (auto* scratch : {&hits_, &joins_, &misses_, &cpu_}) scratch->reserve(max_experts);
  for (auto* scratch : {&hit_tokens_, &join_tokens_, &miss_tokens_, &cpu_tokens_, &device_tokens_})
    scratch->reserve(max_experts);
  promotion_evicted_.reserve(1);
  write_notes();
}

void Planner::write_notes() {
  const bool plain = settings_.cpu_share.is_number();
  if (plain && !settings_.admit.is_number() && settings_.admit.kind == Choice::Kind::kUnset)
    notes_.push_back(
        fmt::format("The CPU share is fixed at {}, so every upload is kept, without an admission "
                    "test; set an admission factor to have one.",
                    settings_.cpu_share.value));
  if (plain && settings_.promote == Promotion::kUnset)
    notes_.push_back(
        fmt::format("The CPU share is fixed at {}, so nothing is promoted in idle link time; turn "
                    "promotion on to have it.",
                    settings_.cpu_share.value));
  if (is_reference(settings_))
    notes_.push_back(
        "Policy b12191: batches of more than 32 tokens, or of more experts than there are slots, "
        "read the cache and don't change it; layers have no floors.");
  if (settings_.policy.kind == PolicyKind::kStatic)
    notes_.push_back(fmt::format("Policy static: after {} tokens of a layer its experts stay as they are.",
                                 settings_.policy.static_tokens));
  if (settings_.policy.half_life != 0 &&
      (settings_.policy.kind == PolicyKind::kLru || settings_.policy.kind == PolicyKind::kStatic))
    notes_.push_back("The half-life has no effect: this policy does not count uses that decay.");
  for (GroupId g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    const uint32_t n_slots = group.pool.slots().n_slots(), n_layers = group.pool.slots().n_layers();
    const Floors& floors = group.pool.floors();
    const uint32_t one =
        plan_floors(1, group.pool.shape().n_experts, group.pool.shape().n_used, group.pool.shape().n_experts)
            .floor;
    // Whose experts: said where there are several layouts.
    const std::string whose = groups_.size() == 1
                                  ? ""
                                  : fmt::format("Of the {} layers whose experts have {} bytes: ", n_layers,
                                                group.pool.shape().expert_bytes);
    if (n_slots == 0) {
      notes_.push_back(whose + "no slots, so no expert stays on the device.");
    } else if (floors.n_layers < n_layers) {
      notes_.push_back(fmt::format(
          "{}{} slots are too few for {} layers at {} slots each; {} take part (from layer {}), the others "
          "have no cache. {} slots would serve all.",
          whose, n_slots, n_layers, one, floors.n_layers, group.pool.shape().layers.front(), n_layers * one));
    }
    if (group.n_ring == 0)
      notes_.push_back(whose +
                       "no ring beside the cache, so an expert that gets no slot is computed on the CPU.");
  }
}

}  // namespace experts
}  // namespace spillway
