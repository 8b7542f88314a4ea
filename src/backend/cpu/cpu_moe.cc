// The MoE layer on the CPU: the router here, the experts in ExpertCompute.
#include "backend/cpu/cpu_compute.h"
#include "numerics/router.h"

namespace spillway::cpu {

using namespace backend;

void CpuCompute::moe(BufferId x, const MoeSpec& spec, BufferId out) {
  route(x, spec);
  experts_.run_and_sum(
      expert_input(x, spec), spec,
      {.weights = chosen_weight_.data(), .out = buffer(out), .out_stride = sizes_.buffer_widths[out]});
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
  each_row([&](uint32_t r) {
    const size_t first = size_t{r} * params.n_used;
    numerics::route(params, router_.data() + size_t{r} * router.rows, chosen_.data() + first,
                    chosen_weight_.data() + first);
  });
}

ExpertInput CpuCompute::expert_input(BufferId x, const MoeSpec& spec) {
  return {.x = buffer(x),
          .x_stride = sizes_.buffer_widths[x],
          .rows = rows(),
          .used = spec.routing.n_used,
          .ids = std::span(chosen_).first(size_t{rows()} * spec.routing.n_used)};
}

}  // namespace spillway::cpu
