// The MoE layer on the CPU: route, gather the tokens of each expert, and run gate, up and down of all experts
// in one parallel region with barriers between the stages.
#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_compute.h"
#include "numerics/router.h"

namespace spillway::cpu {

using namespace backend;

void CpuCompute::moe(BufferId x, const MoeSpec& spec, BufferId out) {
  route(x, spec);
  plan_experts(spec, x);
  run_experts(spec, x, out);
}

void CpuCompute::route(BufferId x, const MoeSpec& spec) {
  const Matrix& router = weights_[spec.router];
  const ActivationKind kind = activation_kind(router.type);
  KindSet kinds;
  kinds.add(router.type);
  quantize_inputs(buffer(x), sizes_.buffer_widths[x], router.cols, kinds);
  plan_.clear();
  plan_.add({.weight = &router,
             .x = inputs_.view(kind, rows(), router.cols),
             .tokens = {.n = rows()},
             .out = router_.data(),
             .out_stride = router.rows});
  run_plan();
  numerics::RouterParams params = spec.routing;
  params.bias = vector_of(spec.selection_bias);
  for_rows([&](uint32_t r) {
    const size_t first = size_t{r} * params.n_used;
    numerics::route(params, router_.data() + size_t{r} * router.rows, chosen_.data() + first,
                    chosen_weight_.data() + first);
  });
}

// Numbers the (token, rank) pairs by expert, and lists the products.
void CpuCompute::plan_experts(const MoeSpec& spec, BufferId x) {
  const uint32_t pairs = rows() * spec.routing.n_used;
  std::fill_n(next_assignment_.begin(), spec.experts.size(), 0);
  for (uint32_t i = 0; i < pairs; ++i) ++next_assignment_[chosen_[i]];
  ranges_.clear();
  uint32_t first = 0;
  for (uint32_t e = 0; e < spec.experts.size(); ++e) {
    const uint32_t n = next_assignment_[e];
    next_assignment_[e] = first;
    if (n > 0) ranges_.push_back({e, first, n});
    first += n;
  }
  for (uint32_t i = 0; i < pairs; ++i) {
    assignment_[i] = next_assignment_[chosen_[i]]++;
    assignment_row_[assignment_[i]] = i / spec.routing.n_used;
  }

  plan_.clear();
  down_plan_.clear();
  KindSet kinds;
  for (const ExpertRange& range : ranges_) {
    const ExpertWeights& expert = spec.experts[range.expert];
    const Matrix& down = weights_[expert.down];
    const size_t at = size_t{range.first} * down.cols;
    const TokenSet tokens{.index = assignment_row_.data() + range.first, .n = range.n};
    for (const auto& [id, to] :
         {std::pair(expert.gate, expert_gate_.data()), std::pair(expert.up, expert_up_.data())}) {
      const Matrix& weight = weights_[id];
      kinds.add(weight.type);
      plan_.add({.weight = &weight,
                 .x = inputs_.view(activation_kind(weight.type), rows(), weight.cols),
                 .tokens = tokens,
                 .out = to + at,
                 .out_stride = down.cols});
    }
    down_plan_.add({.weight = &down,
                    .x = expert_inputs_.view(activation_kind(down.type), pairs, down.cols).from(range.first),
                    .tokens = {.n = range.n},
                    .out = expert_out_.data() + size_t{range.first} * down.rows,
                    .out_stride = down.rows});
  }
  quantize_inputs(buffer(x), sizes_.buffer_widths[x], weights_[spec.router].cols, kinds);
  plan_.cut(pool_.threads());
  down_plan_.cut(pool_.threads());
}

void CpuCompute::run_experts(const MoeSpec& spec, BufferId, BufferId out) {
  const Matrix& any_down = weights_[spec.experts[0].down];
  const uint32_t width = any_down.cols;
  const uint32_t hidden = any_down.rows;
  activation_counter_.reset(ranges_.size());
  combine_counter_.reset(rows());
  pool_.run([&](uint32_t thread) {
    plan_.run(kernels_, scratch(thread));
    pool_.barrier();

    for (auto task = activation_counter_.next(); !task.empty(); task = activation_counter_.next()) {
      const ExpertRange& range = ranges_[task.begin];
      const ActivationKind kind = activation_kind(weights_[spec.experts[range.expert].down].type);
      const Activations to = expert_inputs_.view(kind, rows() * spec.routing.n_used, width);
      for (uint32_t a = range.first; a < range.first + range.n; ++a) {
        float* gate = expert_gate_.data() + size_t{a} * width;
        kernels_.silu_mul(gate, expert_up_.data() + size_t{a} * width, width);
        kernels_.quantize(gate, to, a);
      }
    }
    pool_.barrier();

    down_plan_.run(kernels_, scratch(thread));
    pool_.barrier();

    // Ascending rank from +0, whatever order the experts were computed in.
    for (auto task = combine_counter_.next(); !task.empty(); task = combine_counter_.next()) {
      const uint32_t r = static_cast<uint32_t>(task.begin);
      float* sum = row(out, r);
      std::memset(sum, 0, hidden * sizeof(float));
      for (uint32_t rank = 0; rank < spec.routing.n_used; ++rank) {
        const size_t pair = size_t{r} * spec.routing.n_used + rank;
        kernels_.add_scaled(sum, expert_out_.data() + size_t{assignment_[pair]} * hidden,
                            chosen_weight_[pair], hidden);
      }
    }
  });
}

}  // namespace spillway::cpu
