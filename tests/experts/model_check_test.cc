// Random operations on the planner, each answer compared with a naive model made of maps and vectors: what is
// resident, under way, pinned and wanted how much, straight from the definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "experts/planner.h"

namespace spillway {
namespace experts {
namespace {

using Key = std::pair<LayerId, ExpertId>;

struct Case {
  PlannerSettings settings;
  std::vector<GroupShape> groups;
  std::vector<uint32_t> slots, rings;
};

class Naive {
 public:
  Naive(const Case& made, uint32_t seed) : made_(made), random_(seed) {
    planner_ = std::move(
        Planner::create(made.settings, made.groups, made.slots, made.rings, default_profile()).value());
    for (GroupId g = 0; g < made.groups.size(); ++g)
      for (uint32_t i = 0; i < made.groups[g].layers.size(); ++i) group_of_[made.groups[g].layers[i]] = g;
    ring_.assign(made.groups.size(), 0);
    parts_.assign(made.groups.size(), 0);
    full_.assign(made.groups.size(), false);
    for (GroupId g = 0; g < made.groups.size(); ++g) note_full(g);
  }

  void step() {
    switch (random_() % 8) {
      case 0:
      case 1:
      case 2:
        if (open_.size() < count_layers(made_.groups)) plan();
        break;
      case 3:
      case 4:
        if (!open_.empty()) complete(random_() % open_.size());
        break;
      case 5:
      case 6:
        if (!copies_.empty()) end_copy();
        break;
      case 7:
        promote();
        break;
    }
    check();
  }

  uint64_t decisions[kDecisions] = {};
  uint64_t evictions = 0, promotions = 0, failures = 0, cancelled = 0;

 private:
  struct Slot {
    Key key;
    bool arrived = false;
    bool broken = false;
    uint32_t pins = 0;
  };
  struct Past {
    uint64_t clock = 0;
    std::map<ExpertId, std::vector<std::pair<uint64_t, double>>> uses;  // when and how much
  };
  struct OpenPlan {
    uint64_t id;
    GroupId group;
    std::vector<SlotId> pinned;
  };

  const GroupShape& shape(GroupId g) const { return made_.groups[g]; }
  bool is_reference() const { return made_.settings.policy.kind == PolicyKind::kB12191; }
  // The policy's score is the decayed count that is kept here.
  bool counts_uses() const { return is_reference() || made_.settings.policy.kind == PolicyKind::kCrf; }
  Floors floors(GroupId g) const {
    if (is_reference()) return {0, made_.slots[g] > 0 ? static_cast<uint32_t>(shape(g).layers.size()) : 0};
    return plan_floors(static_cast<uint32_t>(shape(g).layers.size()), shape(g).n_experts, shape(g).n_used,
                       made_.slots[g]);
  }
  bool takes_part(LayerId layer) const {
    const GroupId g = group_of_.at(layer);
    const auto& layers = shape(g).layers;
    return std::find(layers.begin(), layers.end(), layer) - layers.begin() < floors(g).n_layers;
  }
  uint32_t floor_of(LayerId layer) const { return takes_part(layer) ? floors(group_of_.at(layer)).floor : 0; }
  uint32_t occupied(LayerId layer) {
    uint32_t n = 0;
    for (const auto& [slot, s] : slots_[group_of_[layer]]) n += s.key.first == layer;
    return n;
  }
  double half_life() const {
    if (made_.settings.policy.half_life > 0) return made_.settings.policy.half_life;
    return is_reference() ? kReferenceHalfLife : kCrfHalfLife;
  }
  double score(Key key) {
    const Past& past = past_[key.first];
    const auto found = past.uses.find(key.second);
    if (found == past.uses.end()) return 0.0;
    double sum = 0.0;
    for (const auto& [when, amount] : found->second)
      sum += amount * std::exp2(-static_cast<double>(past.clock - when) / half_life());
    return sum;
  }
  void note_full(GroupId g) {
    const uint32_t fill = std::min(made_.slots[g], floors(g).n_layers * shape(g).n_experts);
    if (slots_[g].size() >= fill) full_[g] = true;
  }
  std::map<SlotId, Slot>::iterator find(GroupId g, Key key) {
    auto it = slots_[g].begin();
    while (it != slots_[g].end() && (it->second.key != key || it->second.broken)) ++it;
    return it;
  }

  // The newcomer took `slot`: it must have been free, or held the weakest that its layer may get.
  void took(GroupId g, Key newcomer, SlotId slot, std::optional<ExpertKey> evicted, bool tested) {
    ASSERT_LT(slot, made_.slots[g]);
    ASSERT_TRUE(find(g, newcomer) == slots_[g].end()) << "in two slots";
    if (!evicted) {
      ASSERT_FALSE(slots_[g].contains(slot));
    } else {
      const Key loser{evicted->layer, evicted->expert};
      const auto it = find(g, loser);
      ASSERT_TRUE(it != slots_[g].end() && it->first == slot);
      ASSERT_TRUE(it->second.arrived && it->second.pins == 0) << "a victim in use";
      ASSERT_EQ(slots_[g].size(), made_.slots[g]) << "evicted with free slots left";
      if (loser.first != newcomer.first) {
        ASSERT_GT(occupied(loser.first), floor_of(loser.first));
      }
      if (tested) {
        for (const auto& [other, s] : slots_[g]) {
          if (!s.arrived || s.pins > 0) continue;
          if (s.key.first != newcomer.first && occupied(s.key.first) <= floor_of(s.key.first)) continue;
          ASSERT_GE(score(s.key), score(loser) * (1 - 1e-9)) << "a weaker one was there";
        }
        if (occupied(newcomer.first) >= floor_of(newcomer.first) && made_.settings.admit.is_number()) {
          ASSERT_GE(score(newcomer), made_.settings.admit.value * score(loser) * (1 - 1e-9));
        }
      }
      slots_[g].erase(it);
      ++evictions;
    }
    slots_[g][slot] = {newcomer};
    note_full(g);
  }

  void plan() {
    auto it = group_of_.begin();
    std::advance(it, random_() % group_of_.size());
    const auto [layer, g] = *it;
    const uint32_t n_tokens = random_() % 8 == 0 ? 1 + random_() % 64 : 1 + random_() % 2;
    std::map<ExpertId, uint32_t> tokens;
    for (uint32_t t = 0; t < n_tokens; ++t) {
      std::set<ExpertId> chosen;
      while (chosen.size() < shape(g).n_used)
        chosen.insert(std::min(random_() % shape(g).n_experts, random_() % shape(g).n_experts));
      for (const ExpertId e : chosen) ++tokens[e];
    }
    std::vector<Use> uses;
    for (const auto& [e, n] : tokens) uses.push_back({e, n});
    const bool only_reads = is_reference() && (n_tokens > 32 || uses.size() > made_.slots[g]);
    const bool was_full = full_[g];

    const Plan& plan = planner_->plan({layer, n_tokens, uses});
    ASSERT_EQ(plan.layer, layer);
    ASSERT_EQ(plan.group, g);
    if (!only_reads) {
      Past& past = past_[layer];
      past.clock += n_tokens;
      double spread = 0.0;
      for (uint32_t i = 0; i < n_tokens; ++i) spread += std::exp2(-static_cast<double>(i) / half_life());
      for (const Use& use : uses)
        past.uses[use.expert].push_back({past.clock, spread / n_tokens * use.tokens});
    }

    OpenPlan open{plan.id, g, {}};
    uint32_t misses = 0, on_cpu = 0, phase = 0;
    double most_on_cpu = 0.0, least_copied = 1e300;
    std::vector<PlanEntry> uploads;
    for (const PlanEntry& entry : plan.entries) {
      const Key key{layer, entry.expert};
      ASSERT_EQ(tokens[entry.expert], entry.tokens);
      tokens.erase(entry.expert);
      ++decisions[static_cast<size_t>(entry.decision)];
      const uint32_t order[] = {0, 2, 2, 1, 3};
      ASSERT_GE(order[static_cast<size_t>(entry.decision)], phase) << "order of the entries";
      phase = order[static_cast<size_t>(entry.decision)];
      const auto found = find(g, key);
      const bool resident = found != slots_[g].end() && found->second.arrived;
      const bool under_way = found != slots_[g].end() && !found->second.arrived;
      if (!resident && !under_way) {
        ++misses;
        (entry.decision == Decision::kCpu ? most_on_cpu : least_copied) =
            entry.decision == Decision::kCpu ? std::max(most_on_cpu, score(key))
                                             : std::min(least_copied, score(key));
      }
      switch (entry.decision) {
        case Decision::kHit:
          ASSERT_TRUE(resident && found->first == entry.slot) << "a hit on what is not there";
          break;
        case Decision::kJoin:
          ASSERT_TRUE(under_way && found->first == entry.slot);
          ASSERT_EQ(copies_.at(entry.ticket), (std::pair{g, entry.slot}));
          break;
        case Decision::kUpload:
          ASSERT_FALSE(only_reads);
          ASSERT_TRUE(takes_part(layer));
          uploads.push_back(entry);
          break;
        case Decision::kStream:
          ASSERT_EQ(entry.slot, ring_[g]);
          ring_[g] = (ring_[g] + 1) % made_.rings[g];
          break;
        case Decision::kCpu:
          ASSERT_EQ(entry.slot, kNoSlot);
          ++on_cpu;
          break;
      }
      if (entry.decision == Decision::kHit || entry.decision == Decision::kJoin) {
        ++found->second.pins;
        open.pinned.push_back(found->first);
      }
    }
    ASSERT_TRUE(tokens.empty()) << "an expert without a decision";
    // Slots were taken by the most wanted first; entries stand in the order of the copies.
    std::vector<ExpertKey> evicted(plan.evicted.begin(), plan.evicted.end());
    const bool tested = counts_uses() && !is_reference();
    std::vector<std::pair<PlanEntry, std::optional<ExpertKey>>> taken;
    for (const PlanEntry& entry : uploads) {
      std::optional<ExpertKey> loser;
      for (const ExpertKey& key : evicted)
        if (const auto at = find(g, {key.layer, key.expert});
            at != slots_[g].end() && at->first == entry.slot)
          loser = key;
      taken.push_back({entry, loser});
    }
    std::stable_sort(taken.begin(), taken.end(), [&](const auto& a, const auto& b) {
      return a.second.has_value() < b.second.has_value();
    });
    ASSERT_EQ(std::count_if(taken.begin(), taken.end(), [](const auto& t) { return t.second.has_value(); }),
              static_cast<std::ptrdiff_t>(evicted.size()));
    // The victims were found in ascending order of score; any order of theirs leads to the same slots.
    std::stable_sort(taken.begin(), taken.end(), [&](const auto& a, const auto& b) {
      const auto of = [&](const auto& t) {
        return t.second ? score({t.second->layer, t.second->expert}) : -1.0;
      };
      return of(a) < of(b);
    });
    for (const auto& [entry, loser] : taken) {
      took(g, {layer, entry.expert}, entry.slot, loser, tested && taken.size() == 1);
      if (testing::Test::HasFatalFailure()) return;
      slots_[g][entry.slot].pins = 1;
      open.pinned.push_back(entry.slot);
      copies_[entry.ticket] = {g, entry.slot};
    }

    if (made_.settings.cpu_share.is_number() && made_.rings[g] > 0) {
      uint32_t expected = 0;
      if (!only_reads && was_full) {
        parts_[g] += static_cast<uint64_t>(std::llround(made_.settings.cpu_share.value * 1e9)) * misses;
        expected = static_cast<uint32_t>(parts_[g] / 1'000'000'000);
        parts_[g] %= 1'000'000'000;
      }
      ASSERT_EQ(on_cpu, expected) << "of " << misses;
      if (on_cpu > 0 && counts_uses()) {
        ASSERT_LE(most_on_cpu, least_copied * (1 + 1e-9));
      }
    }
    open_.push_back(open);
  }

  void complete(size_t i) {
    planner_->complete(open_[i].id, {});
    for (const SlotId slot : open_[i].pinned) {
      Slot& s = slots_[open_[i].group][slot];
      ASSERT_GT(s.pins, 0u);
      if (--s.pins == 0 && s.broken) slots_[open_[i].group].erase(slot);
    }
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void end_copy() {
    auto it = copies_.begin();
    std::advance(it, random_() % copies_.size());
    const auto [ticket, where] = *it;
    Slot& slot = slots_[where.first][where.second];
    ASSERT_EQ(planner_->in_use(ticket), slot.pins > 0);
    copies_.erase(it);
    const uint32_t end = random_() % 8;
    if (end > 1) {
      planner_->arrived(ticket);
      slot.arrived = true;
    } else {
      if (end == 1 && slot.pins == 0 && promoted_.contains(ticket)) {
        planner_->cancelled(ticket);
        ++cancelled;
      } else {
        planner_->failed(ticket);
        ++failures;
      }
      slot.broken = true;
      if (slot.pins == 0) slots_[where.first].erase(where.second);
    }
    promoted_.erase(ticket);
  }

  void promote() {
    const size_t under_way = promoted_.size();
    const auto copy = planner_->next_promotion(random_() % 4, random_() % 300);
    if (!copy) return;
    ASSERT_NE(made_.settings.promote, Promotion::kOff);
    ASSERT_LT(under_way, 2u);
    const Key key{copy->key.layer, copy->key.expert};
    ASSERT_TRUE(takes_part(key.first));
    took(copy->group, key, copy->slot, copy->evicted, counts_uses() && !is_reference());
    copies_[copy->ticket] = {copy->group, copy->slot};
    promoted_.insert(copy->ticket);
    ++promotions;
  }

  void check() {
    for (GroupId g = 0; g < made_.groups.size(); ++g) {
      const SlotTable& table = planner_->pool(g).slots();
      ASSERT_EQ(table.occupied(), slots_[g].size());
      ASSERT_LE(table.occupied(), made_.slots[g]);
      std::set<Key> keys;
      for (const auto& [slot, s] : slots_[g]) {
        ASSERT_EQ(table.pins(slot), s.pins);
        ASSERT_EQ(table.state(slot), s.broken    ? SlotState::kBroken
                                     : s.arrived ? SlotState::kResident
                                                 : SlotState::kFilling);
        if (!s.broken) {
          ASSERT_TRUE(keys.insert(s.key).second) << "resident twice";
        }
        ASSERT_EQ(planner_->resident({s.key.first, s.key.second}) == slot, s.arrived && !s.broken);
      }
    }
  }

  Case made_;
  std::mt19937 random_;
  std::unique_ptr<Planner> planner_;
  std::map<LayerId, GroupId> group_of_;
  std::map<GroupId, std::map<SlotId, Slot>> slots_;
  std::map<LayerId, Past> past_;
  std::map<Ticket, std::pair<GroupId, SlotId>> copies_;
  std::set<Ticket> promoted_;
  std::vector<OpenPlan> open_;
  std::vector<uint32_t> ring_;
  std::vector<uint64_t> parts_;
  std::vector<bool> full_;
};

TEST(PlannerModel, RandomOperationsAgree) {
  // Two groups of unlike layout, layers interleaved, layer 5 in none.
  const std::vector<GroupShape> groups = {{{0, 2, 3}, 16, 3, 1'000'000}, {{1, 4}, 6, 2, 300'000}};
  std::vector<Case> cases;
  for (const PolicyKind kind : {PolicyKind::kCrf, PolicyKind::kLru, PolicyKind::kStatic, PolicyKind::kB12191})
    for (const Choice share : {Choice{}, Choice::number(0.0), Choice::number(0.3), Choice::number(1.0)})
      for (const auto& [slots, rings] : std::vector<std::pair<std::vector<uint32_t>, std::vector<uint32_t>>>{
               {{20, 7}, {2, 3}}, {{6, 0}, {2, 1}}, {{16, 12}, {0, 2}}, {{48, 12}, {4, 4}}}) {
        Case made{{}, groups, slots, rings};
        made.settings.policy.kind = kind;
        made.settings.cpu_share = share;
        made.settings.explore = false;
        if (slots[0] == 20) made.settings.admit = Choice::number(2.0);
        made.settings.promote = slots[0] == 16 ? Promotion::kOff : Promotion::kOn;
        cases.push_back(made);
      }
  uint64_t decisions[kDecisions] = {}, evictions = 0, promotions = 0, failures = 0, cancelled = 0;
  for (size_t i = 0; i < cases.size(); ++i)
    for (uint32_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(fmt::format("made {} seed {}", i, seed));
      Naive naive(cases[i], seed);
      for (int step = 0; step < 1500; ++step) {
        naive.step();
        if (HasFatalFailure()) return;
      }
      for (uint32_t d = 0; d < kDecisions; ++d) decisions[d] += naive.decisions[d];
      evictions += naive.evictions;
      promotions += naive.promotions;
      failures += naive.failures;
      cancelled += naive.cancelled;
    }
  // Everything happened.
  for (uint32_t d = 0; d < kDecisions; ++d)
    EXPECT_GT(decisions[d], 1000u) << decision_name(static_cast<Decision>(d));
  EXPECT_GT(evictions, 1000u);
  EXPECT_GT(promotions, 1000u);
  EXPECT_GT(failures, 1000u);
  EXPECT_GT(cancelled, 100u);
}

}  // namespace
}  // namespace experts
}  // namespace spillway
