// The MoE layer in the stream.
#include <algorithm>
#include <cstring>

#include "backend/host/host_implementation.h"
#include "base/assert.h"

namespace spillway::backend {
namespace {

// What the stream keeps of a spec: all but the experts' weights, which lie in slots.
MoeSpec without_experts(const MoeSpec& spec) {
  MoeSpec copy = spec;
  copy.experts = {};
  return copy;
}

}  // namespace

void HostDevice::set_slot(uint32_t layer, uint32_t expert, uint32_t slot) {
  SW_ASSERT(spec_.layers[layer].on_device && expert < spec_.layers[layer].n_experts);
  if (slot != kNoSlot) {
    const uint32_t pool = spec_.layers[layer].pool;
    SW_ASSERT(slot < spec_.pools[pool].slots);
    const auto watched = watch_->enter_table({pool, slot});
    if (!watched) queues_->lose(watched.error());
  }
  enqueue({}, [=, this] { tables_[layer][expert] = slot; });
}

void HostDevice::route(BufferId x, const MoeSpec& spec, ForHost for_host) {
  need(spec.router);
  need(spec.selection_bias);
  routed_ = {};
  if (for_host == ForHost::kNow)
    routed_ = {.operation = queues_->next_operation(), .rows = rows(), .used = spec.routing.n_used};
  enqueue(product_work(spec.router, rows()), [this, x, for_host, copy = without_experts(spec)] {
    compute_->route(x, copy);
    std::fill_n(have_output_.begin(), size_t{compute_->rows()} * copy.routing.n_used, 0);
    if (for_host == ForHost::kNow) bring_to_host(x, copy);
    if (for_host == ForHost::kLater) {
      const std::span<const uint32_t> ids = compute_->expert_input(x, copy).ids;
      chosen_[copy.layer].assign(ids.begin(), ids.end());
    }
  });
}

void HostDevice::bring_to_host(BufferId x, const MoeSpec& spec) {
  const cpu::ExpertInput input = compute_->expert_input(x, spec);
  std::ranges::copy(input.ids, routed_ids_.begin());
  const size_t hidden = spec_.sizes.hidden;
  for (size_t r = 0; r < input.rows; ++r)
    std::copy_n(input.x + r * input.x_stride, hidden, routed_x_.data() + r * hidden);
}

Routed HostDevice::routed() {
  if (routed_.operation == 0 || queues_->seen_operations() <= routed_.operation)
    queues_->lose({Error::Kind::kInvalid,
                   "race: routed() is asked for before the point behind route() was waited for, or the last "
                   "route() brought nothing to the host"});
  return {.ids = std::span(routed_ids_).first(size_t{routed_.rows} * routed_.used),
          .x = std::span<const float>(routed_x_.data(), size_t{routed_.rows} * spec_.sizes.hidden)};
}

void HostDevice::experts_in_table(BufferId x, const MoeSpec& spec) {
  SW_ASSERT(spec_.layers[spec.layer].on_device);
  queues_->enqueue([this, x, copy = without_experts(spec), reading = reading()] {
    in_table_.clear();
    const std::vector<uint32_t>& table = tables_[copy.layer];
    for (uint32_t expert = 0; expert < table.size(); ++expert)
      if (table[expert] != kNoSlot) in_table_.push_back({expert, table[expert]});
    return run_experts(x, copy, in_table_, reading);
  });
}

void HostDevice::experts_in_slots(BufferId x, const MoeSpec& spec, std::span<const ExpertSlot> experts) {
  const DeviceLayer& layer = spec_.layers[spec.layer];
  SW_ASSERT(layer.on_device);
  for (const ExpertSlot& e : experts)
    SW_ASSERT(e.expert < layer.n_experts && e.slot < spec_.pools[layer.pool].slots);
  queues_->enqueue([this, x, copy = without_experts(spec), reading = reading(),
                    list = std::vector<ExpertSlot>(experts.begin(), experts.end())] {
    return run_experts(x, copy, list, reading);
  });
}

Result<Work> HostDevice::run_experts(BufferId x, const MoeSpec& spec, std::span<const ExpertSlot> experts,
                                     Reading reading) {
  const uint32_t pool = spec_.layers[spec.layer].pool;
  const cpu::ExpertInput input = compute_->expert_input(x, spec);
  std::ranges::fill(is_chosen_, 0);
  for (const uint32_t expert : input.ids) is_chosen_[expert] = 1;
  parts_.clear();
  for (const ExpertSlot& e : experts) {
    if (is_chosen_[e.expert] == 0) continue;
    SW_TRY(watch_->read({pool, e.slot}, reading.operation, reading.after_copy));
    parts_.push_back({e.expert, memory_.slot_matrices(pool, e.slot)});
  }
  cpu::ExpertCompute& compute = compute_->experts();
  compute.run(input, parts_);

  const size_t hidden = spec_.sizes.hidden;
  const float* from = compute.outputs();
  for (const uint32_t pair : compute.pairs()) {
    std::copy_n(from, hidden, outputs_.data() + pair * hidden);
    from += hidden;
    have_output_[pair] = 1;
  }
  const ExpertLayout& layout = memory_.layout(pool);
  return Work{.bytes = parts_.size() * layout.slot_bytes(),
              .multiply_adds = uint64_t{3} * compute.pairs().size() * layout.gate.rows * layout.gate.cols};
}

void HostDevice::take_outputs(const MoeSpec& spec, std::span<const uint32_t> pairs, const float* from) {
  const size_t hidden = spec_.sizes.hidden;
  for (const uint32_t pair : pairs) SW_ASSERT(pair < rows() * spec.routing.n_used);
  enqueue({}, [this, hidden, numbers = std::vector<uint32_t>(pairs.begin(), pairs.end()),
               values = std::vector<float>(from, from + pairs.size() * hidden)] {
    for (size_t i = 0; i < numbers.size(); ++i) {
      std::copy_n(values.data() + i * hidden, hidden, outputs_.data() + numbers[i] * hidden);
      have_output_[numbers[i]] = 1;
    }
  });
}

void HostDevice::combine(const MoeSpec& spec, BufferId out) {
  queues_->enqueue([this, copy = without_experts(spec), out] { return run_combine(copy, out); });
}

Result<Work> HostDevice::run_combine(const MoeSpec& spec, BufferId out) {
  const uint32_t used = spec.routing.n_used;
  for (size_t pair = 0; pair < size_t{compute_->rows()} * used; ++pair)
    if (have_output_[pair] == 0)
      return invalid("race: layer {} is combined before the output of row {}, rank {} was computed",
                     spec.layer, pair / used, pair % used);
  const std::span<float> to = compute_->buffer_rows(out);
  const size_t stride = spec_.sizes.buffer_widths[out];
  for (size_t r = 0; r < compute_->rows(); ++r)
    cpu::sum_ranks(kernels_, outputs_.data(), compute_->chosen_weights() + r * used, used, spec_.sizes.hidden,
                   to.data() + r * stride, [&](uint32_t rank) { return r * used + rank; });
  return Work{};
}

}  // namespace spillway::backend
