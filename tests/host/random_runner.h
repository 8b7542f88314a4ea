// The engine's part in small.
#pragma once

#include <optional>
#include <random>
#include <set>
#include <vector>

#include "host/fixture.h"

namespace spillway::backend {

// A cache of few slots, driven as an engine would: what is missing is uploaded into a victim's slot or
// computed on the CPU, at random; now and then an expert is promoted in the background.
class RandomRunner final : public ExpertRunner {
 public:
  RandomRunner(Device& device, const Model& model, uint32_t slots, uint64_t seed)
      : device_(device),
        model_(model),
        random_(seed),
        pool_(*sys::ThreadPool::create(1)),
        on_cpu_(*pool_, cpu::kernels(cpu::best_instruction_set()), Model::sizes(), {}),
        slots_(slots) {}

  void moe(BufferId x, const MoeSpec& spec, BufferId out) override {
    device_.route(x, spec, Device::ForHost::kNow);
    const Point routed_point = device_.mark();
    points.push_back(routed_point);
    if (!device_.wait(routed_point)) return;  // lost: finish() says why
    take_promotion();
    const Routed routed = device_.routed();
    const std::set<uint32_t> chosen(routed.ids.begin(), routed.ids.end());
    std::vector<cpu::ExpertPart> by_cpu;
    std::vector<ExpertSlot> hits, uploaded;
    Point last_copy;
    for (const uint32_t e : chosen) {
      if (const auto slot = find(spec.layer, e)) {
        hits.push_back({e, *slot});
        continue;
      }
      const auto slot =
          random_() % 2 == 0 && !is_on_its_way(spec.layer, e) ? victim(spec.layer, chosen) : std::nullopt;
      if (!slot) {
        by_cpu.push_back({e, model_.expert(spec.layer, e)});
        continue;
      }
      last_copy = put(*slot, spec.layer, e, routed_point);
      uploaded.push_back({e, *slot});
    }
    hit += static_cast<uint32_t>(hits.size());
    if (random_() % 2 == 0)
      device_.experts_in_slots(x, spec, hits);
    else
      device_.experts_in_table(x, spec);  // it knows the hits, and not yet what was just assigned
    device_.submit();
    const uint32_t rows = static_cast<uint32_t>(routed.ids.size()) / kUsed;
    on_cpu_.run({.x = routed.x.data(), .x_stride = kHidden, .rows = rows, .used = kUsed, .ids = routed.ids},
                by_cpu);
    cpu += static_cast<uint32_t>(by_cpu.size());
    if (cpu_clock != nullptr) cpu_clock->advance_ns(20'000 * by_cpu.size());
    device_.take_outputs(spec, on_cpu_.pairs(), on_cpu_.outputs());
    device_.stream_wait(last_copy);
    device_.experts_in_slots(x, spec, uploaded);
    for (const ExpertSlot& e : uploaded) device_.set_slot(spec.layer, e.expert, e.slot);
    device_.combine(spec, out);
    if (random_() % 3 == 0) promote(spec.layer, static_cast<uint32_t>(random_() % kExperts));
  }

  uint32_t hit = 0, upload = 0, cpu = 0, promoted = 0;
  sys::FakeClock* cpu_clock = nullptr;  // an expert on the CPU takes 20 us of it
  std::vector<Point> points;            // that were waited for, and copies

 private:
  struct Slot {
    uint32_t layer = UINT32_MAX, expert = 0;
    bool filling = false;
  };

  std::optional<uint32_t> find(uint32_t layer, uint32_t expert) const {
    for (uint32_t s = 0; s < slots_.size(); ++s)
      if (slots_[s].layer == layer && slots_[s].expert == expert && !slots_[s].filling) return s;
    return std::nullopt;
  }

  bool is_on_its_way(uint32_t layer, uint32_t expert) const {
    return promotion_slot_ && slots_[*promotion_slot_].layer == layer &&
           slots_[*promotion_slot_].expert == expert;
  }

  // Neither one that this layer needs nor one on its way.
  std::optional<uint32_t> victim(uint32_t layer, const std::set<uint32_t>& chosen) {
    const uint32_t s = static_cast<uint32_t>(random_() % slots_.size());
    if (slots_[s].filling) return std::nullopt;
    if (slots_[s].layer == layer && chosen.contains(slots_[s].expert)) return std::nullopt;
    return s;
  }

  Point put(uint32_t s, uint32_t layer, uint32_t expert, Point after) {
    if (slots_[s].layer != UINT32_MAX) device_.set_slot(slots_[s].layer, slots_[s].expert, Device::kNoSlot);
    slots_[s] = {layer, expert, false};
    ++upload;
    points.push_back(device_.copy_expert(0, s, model_.expert(layer, expert), after));
    return points.back();
  }

  void promote(uint32_t layer, uint32_t expert) {
    if (promotion_slot_ || find(layer, expert)) return;  // one at a time
    const auto slot = victim(UINT32_MAX, {});
    if (!slot) return;
    if (slots_[*slot].layer != UINT32_MAX)
      device_.set_slot(slots_[*slot].layer, slots_[*slot].expert, Device::kNoSlot);
    slots_[*slot] = {layer, expert, true};
    promotion_slot_ = slot;
    promotion_ = device_.copy_expert(0, *slot, model_.expert(layer, expert), device_.mark());
    device_.submit();
  }

  void take_promotion() {
    if (!promotion_slot_ || !device_.reached(promotion_)) return;
    Slot& slot = slots_[*promotion_slot_];
    slot.filling = false;
    device_.set_slot(slot.layer, slot.expert, *promotion_slot_);
    promotion_slot_.reset();
    ++promoted;
  }

  Device& device_;
  const Model& model_;
  std::mt19937_64 random_;
  std::unique_ptr<sys::ThreadPool> pool_;
  cpu::ExpertCompute on_cpu_;
  std::vector<Slot> slots_;
  std::optional<uint32_t> promotion_slot_;
  Point promotion_;
};

}  // namespace spillway::backend
