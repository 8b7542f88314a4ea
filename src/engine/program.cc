#include "engine/program.h"

#include <algorithm>

namespace spillway::engine {

using backend::kNoWeight;
using backend::WeightId;

Program::Program(const model::Description& model)
    : buffer_widths(kBufferCount, 1), hidden(model.hidden), norm_epsilon(model.norm_epsilon) {
  const auto add = [&](const model::Weight& weight) -> WeightId {
    if (!weight) return kNoWeight;
    weights.push_back(weight);
    return static_cast<WeightId>(weights.size() - 1);
  };
  const auto widen = [&](Buffer buffer, uint32_t width) {
    buffer_widths[buffer] = std::max(buffer_widths[buffer], width);
  };
  const auto add_ffn = [&](const model::DenseFfn& ffn) {
    widen(kGate, ffn.gate.rows);
    widen(kUp, ffn.gate.rows);
    max_width = std::max(max_width, ffn.gate.rows);
    return FfnIds{.gate = add(ffn.gate), .up = add(ffn.up), .down = add(ffn.down), .width = ffn.gate.rows};
  };

  embedding = add(model.embedding);
  output_norm = add(model.output_norm);
  output = model.tied ? embedding : add(model.output);
  for (const model::Rope& rope : model.ropes) rope_factors.push_back(add(rope.frequency_factors));
  max_width = hidden;
  for (const Buffer buffer : {kHidden, kNormed, kBranch, kShared}) widen(buffer, hidden);

  for (const model::Layer& from : model.layers) {
    const model::Attention& a = from.attention;
    LayerIds to{.attention_norm = add(from.attention_norm),
                .q = add(a.q),
                .k = add(a.k),
                .v = add(a.v),
                .output = add(a.output),
                .q_bias = add(a.q_bias),
                .k_bias = add(a.k_bias),
                .v_bias = add(a.v_bias),
                .output_bias = add(a.output_bias),
                .q_norm = add(a.q_norm),
                .k_norm = add(a.k_norm),
                .ffn_norm = add(from.ffn_norm),
                .attention = {.layer = static_cast<uint32_t>(layers.size()),
                              .heads = a.heads,
                              .kv_heads = a.kv_heads,
                              .key_length = a.key_length,
                              .value_length = a.value_length,
                              .scale = a.scale,
                              .window = a.window},
                .rope = a.rope,
                .qk_norm = a.qk_norm};
    widen(kQuery, a.q.rows);
    widen(kKey, a.k.rows);
    widen(kValue, a.v.rows);
    widen(kAttended, a.output.cols);
    max_width = std::max(max_width, a.output.cols);
    max_head_length = std::max({max_head_length, a.key_length, a.value_length});

    if (const auto* dense = std::get_if<model::DenseFfn>(&from.ffn)) {
      to.dense = add_ffn(*dense);
    } else {
      const auto& moe = std::get<model::MoeFfn>(from.ffn);
      to.is_moe = true;
      to.router = add(moe.router);
      to.selection_bias = add(moe.selection_bias);
      to.routing = {.gating = moe.gating,
                    .n_experts = static_cast<uint32_t>(moe.experts.size()),
                    .n_used = moe.used,
                    .renormalise = moe.renormalize,
                    .scale = moe.weights_scale};
      for (const model::Expert& expert : moe.experts)
        to.experts.push_back({.gate = add(expert.gate), .up = add(expert.up), .down = add(expert.down)});
      if (moe.shared) to.dense = add_ffn(*moe.shared);
      to.shared_gate = add(moe.shared_gate);
      experts = std::max(experts, static_cast<uint32_t>(moe.experts.size()));
      max_experts_used = std::max(max_experts_used, moe.used);
      expert_width = std::max(expert_width, moe.experts[0].gate.rows);
    }
    layers.push_back(std::move(to));
  }
}

void Program::run_layers(backend::Compute& device, uint32_t first, uint32_t last) const {
  for (uint32_t n = first; n < last; ++n) {
    const LayerIds& layer = layers[n];
    device.rms_norm(kHidden, hidden, layer.attention_norm, norm_epsilon, kNormed);
    run_attention(device, layer);
    device.add(kHidden, kBranch, hidden);
    device.rms_norm(kHidden, hidden, layer.ffn_norm, norm_epsilon, kNormed);
    run_ffn(device, layer, n);
    device.add(kHidden, kBranch, hidden);
  }
}

void Program::run_attention(backend::Compute& device, const LayerIds& layer) const {
  const backend::AttentionSpec& a = layer.attention;
  const backend::Linear qkv[] = {{.weight = layer.q, .bias = layer.q_bias, .out = kQuery},
                                 {.weight = layer.k, .bias = layer.k_bias, .out = kKey},
                                 {.weight = layer.v, .bias = layer.v_bias, .out = kValue}};
  device.linear(kNormed, qkv);
  if (layer.qk_norm == model::QkNorm::kPerHead) {
    device.head_norm(kQuery, a.heads, a.key_length, layer.q_norm, norm_epsilon);
    device.head_norm(kKey, a.kv_heads, a.key_length, layer.k_norm, norm_epsilon);
  } else if (layer.qk_norm == model::QkNorm::kFullRow) {
    device.rms_norm(kQuery, a.heads * a.key_length, layer.q_norm, norm_epsilon, kQuery);
    device.rms_norm(kKey, a.kv_heads * a.key_length, layer.k_norm, norm_epsilon, kKey);
  }
  device.rope(kQuery, {.table = layer.rope, .heads = a.heads, .head_length = a.key_length});
  device.rope(kKey, {.table = layer.rope, .heads = a.kv_heads, .head_length = a.key_length});
  device.store_kv(kKey, kValue, a);
  device.attention(kQuery, a, kAttended);
  const backend::Linear projection[] = {{.weight = layer.output, .bias = layer.output_bias, .out = kBranch}};
  device.linear(kAttended, projection);
}

void Program::run_ffn(backend::Compute& device, const LayerIds& layer, uint32_t index) const {
  if (!layer.is_moe) return run_dense(device, layer, kBranch);
  device.moe(kNormed,
             {.layer = index,
              .routing = layer.routing,
              .router = layer.router,
              .selection_bias = layer.selection_bias,
              .experts = layer.experts},
             kBranch);
  if (layer.dense.gate == kNoWeight) return;
  run_dense(device, layer, kShared);
  if (layer.shared_gate == kNoWeight) {
    device.add(kBranch, kShared, hidden);
  } else {
    device.add_gated(kBranch, kShared, kSharedGate, hidden);
  }
}

void Program::run_dense(backend::Compute& device, const LayerIds& layer, backend::BufferId to) const {
  const backend::Linear in[] = {{.weight = layer.dense.gate, .out = kGate},
                                {.weight = layer.dense.up, .out = kUp},
                                {.weight = layer.shared_gate, .out = kSharedGate}};
  device.linear(kNormed, std::span(in, layer.shared_gate == kNoWeight ? 2 : 3));
  device.silu_mul(kGate, kUp, layer.dense.width);
  const backend::Linear down[] = {{.weight = layer.dense.down, .out = to}};
  device.linear(kGate, down);
}

}  // namespace spillway::engine
