#include "model/sizes.h"

namespace spillway::model {
namespace {

// Calls visit(group, weight, part) for every weight; part is the share of it that one token uses.
template <class Visit>
void visit_weights(const Description& model, Visit&& visit) {
  const double embedding_use = model.tied ? 1.0 : 0.0;  // one row, but the whole head where they are tied
  visit("embedding", model.embedding, embedding_use);
  visit("output", model.output_norm, 1.0);
  if (!model.tied) visit("output", model.output, 1.0);
  for (const Layer& layer : model.layers) {
    const Attention& a = layer.attention;
    for (const Weight* w : {&layer.attention_norm, &layer.ffn_norm, &a.q, &a.k, &a.v, &a.output, &a.q_bias,
                            &a.k_bias, &a.v_bias, &a.output_bias, &a.q_norm, &a.k_norm})
      if (*w) visit("attention", *w, 1.0);
    if (const auto* dense = std::get_if<DenseFfn>(&layer.ffn)) {
      for (const Weight* w : {&dense->gate, &dense->up, &dense->down}) visit("dense feed-forward", *w, 1.0);
      continue;
    }
    const auto& moe = std::get<MoeFfn>(layer.ffn);
    visit("router", moe.router, 1.0);
    if (moe.selection_bias) visit("router", moe.selection_bias, 1.0);
    for (const Expert& expert : moe.experts)
      for (const Weight* w : {&expert.gate, &expert.up, &expert.down})
        visit("experts", *w, static_cast<double>(moe.used) / static_cast<double>(moe.experts.size()));
    if (moe.shared)
      for (const Weight* w : {&moe.shared->gate, &moe.shared->up, &moe.shared->down})
        visit("shared expert", *w, 1.0);
    if (moe.shared_gate) visit("shared expert", moe.shared_gate, 1.0);
  }
}

}  // namespace

Sizes measure_sizes(const Description& model) {
  Sizes sizes;
  double read = 0, active = 0;
  visit_weights(model, [&](std::string_view group, const Weight& weight, double use) {
    uint64_t& bytes = group == "embedding"            ? sizes.embedding_bytes
                      : group == "output"             ? sizes.output_bytes
                      : group == "attention"          ? sizes.attention_bytes
                      : group == "dense feed-forward" ? sizes.dense_ffn_bytes
                      : group == "shared expert"      ? sizes.shared_expert_bytes
                      : group == "router"             ? sizes.router_bytes
                                                      : sizes.expert_bytes;
    const uint64_t values = uint64_t{weight.rows} * weight.cols;
    bytes += weight.bytes();
    read += use * static_cast<double>(weight.bytes());
    active += use * static_cast<double>(values);
    sizes.parameters += values;
  });
  for (const Layer& layer : model.layers) sizes.moe_layers += std::holds_alternative<MoeFfn>(layer.ffn);
  sizes.bytes_per_token = static_cast<uint64_t>(read);
  sizes.active_parameters = static_cast<uint64_t>(active);
  return sizes;
}

uint64_t kv_bytes_per_position(const Description& model, uint32_t key_bytes, uint32_t value_bytes) {
  uint64_t bytes = 0;
  for (const Layer& layer : model.layers)
    bytes += uint64_t{layer.attention.kv_heads} *
             (layer.attention.key_length * key_bytes + layer.attention.value_length * value_bytes);
  return bytes;
}

std::map<std::string, std::map<std::string, uint64_t>> bytes_by_type(const Description& model) {
  std::map<std::string, std::map<std::string, uint64_t>> result;
  visit_weights(model, [&](std::string_view group, const Weight& weight, double) {
    result[std::string(group)][std::string(info(weight.type).name)] += weight.bytes();
  });
  return result;
}

}  // namespace spillway::model
