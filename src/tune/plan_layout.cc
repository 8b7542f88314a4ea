#include "tune/plan_layout.h"

#include <algorithm>

#include "backend/host/host_device.h"
#include "base/checked.h"
#include "engine/weights.h"
#include "model/describe.h"
#include "model/sizes.h"

namespace spillway::tune {
namespace {

uint64_t bytes_of(const engine::Program& program, std::initializer_list<backend::WeightId> ids) {
  uint64_t bytes = 0;
  for (const backend::WeightId id : ids)
    if (id != backend::kNoWeight) bytes += program.weights[id].bytes();
  return bytes;
}

// What a layer reads for a token besides routed experts and the KV cache.
uint64_t dense_bytes(const engine::Program& program, const engine::LayerIds& l) {
  return bytes_of(program, {l.attention_norm, l.q, l.k, l.v, l.output, l.q_bias, l.k_bias, l.v_bias,
                            l.output_bias, l.q_norm, l.k_norm, l.ffn_norm, l.dense.gate, l.dense.up,
                            l.dense.down, l.shared_gate, l.router, l.selection_bias});
}

uint64_t kv_bytes(const engine::LayerIds& layer, const backend::KvTypes& types) {
  return uint64_t{layer.attention.kv_heads} *
         (uint64_t{layer.attention.key_length} * backend::kv_value_bytes(types.key) +
          uint64_t{layer.attention.value_length} * backend::kv_value_bytes(types.value));
}

// Of one expert, as it lies in a slot.
uint64_t slot_bytes(const engine::Program& program, const engine::LayerIds& layer) {
  const auto shape = [&](backend::WeightId id) {
    const model::Weight& w = program.weights[id];
    return backend::WeightShape{.type = w.type, .rows = w.rows, .cols = w.cols, .on_device = true};
  };
  const backend::ExpertWeights& first = layer.experts[0];
  return backend::ExpertLayout{shape(first.gate), shape(first.up), shape(first.down)}.slot_bytes();
}

}  // namespace

Result<PlanModel> describe_for_plan(const gguf::Model& file) {
  SW_ASSIGN(model::Description description, model::describe(file.metadata(), file.tensors()));
  engine::Program program(description);
  const model::Sizes sizes = model::measure_sizes(description);
  PlanModel model{std::move(description), std::move(program), sizes.expert_bytes, sizes.dense_bytes(),
                  sizes.bytes_per_token};
  experts::LayerId next = 0;
  for (const engine::LayerIds& layer : model.program.layers) {
    if (!layer.is_moe) continue;
    experts::GroupShape shape{{},
                              static_cast<uint32_t>(layer.experts.size()),
                              layer.routing.n_used,
                              slot_bytes(model.program, layer)};
    model.token_expert_bytes += shape.n_used * shape.expert_bytes;
    auto group = std::ranges::find_if(model.groups, [&](const experts::GroupShape& g) {
      return g.n_experts == shape.n_experts && g.n_used == shape.n_used &&
             g.expert_bytes == shape.expert_bytes;
    });
    if (group == model.groups.end()) group = model.groups.insert(group, shape);
    group->layers.push_back(next++);
  }
  if (model.groups.empty())
    return unsupported(
        "'{}' has no layer with experts: there is nothing to plan, it fits on the device or not",
        model.description.name);
  SW_TRY(experts::check_groups(model.groups));
  return model;
}

Result<Layout> lay_out(const PlanModel& model, const PlanMachine& machine, const PlanUse& use) {
  const engine::Program& program = model.program;
  engine::MemoryPlan memory;
  memory.context = use.context;
  memory.ubatch = std::min(use.ubatch, use.context);
  const engine::StepSizes sizes = engine::step_sizes(memory, model.description);
  const uint64_t reserve = engine::device_reserve_bytes(machine.device_bytes);
  const uint64_t device_bytes = machine.device_bytes - std::min(machine.device_bytes, reserve);
  // The pretended device has the formula for bytes; nothing is allocated before prepare().
  SW_ASSIGN(const auto device, backend::open_host({.memory_bytes = std::max<uint64_t>(device_bytes, 1)}));
  Layout layout;
  SW_ASSIGN(layout.placement, engine::place(program, sizes, {}, machine.profile, *device, device_bytes));

  const engine::Placement& place = layout.placement;
  uint64_t host_kv = 0;
  for (uint32_t l = 0; l < program.layers.size(); ++l) {
    const engine::LayerIds& layer = program.layers[l];
    const uint64_t kv = kv_bytes(layer, memory.kv_types) * use.context;
    (place.layers[l].on_device ? layout.device_dense_bytes : layout.cpu_dense_bytes) +=
        dense_bytes(program, layer) + kv / 2;
    if (!place.layers[l].on_device) host_kv += kv;
    if (!layer.is_moe) continue;
    layout.experts.push_back(place.layers[l].experts);
    layout.planner_layer.push_back(place.layers[l].planner_layer);
  }
  layout.output_bytes = bytes_of(program, {program.output_norm, program.output});
  (place.output_on_device ? layout.device_dense_bytes : layout.cpu_dense_bytes) += layout.output_bytes;

  layout.host_needed_bytes =
      engine::HostWeights::interleaved_bytes(program.weights, engine::weights_on_host(program, place)) +
      host_kv + kHostReserveBytes;
  layout.host_missing_bytes =
      layout.host_needed_bytes - std::min(layout.host_needed_bytes, machine.host_bytes);
  return layout;
}

}  // namespace spillway::tune
