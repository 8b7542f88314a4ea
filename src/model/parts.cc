#include "model/parts.h"

#include <cmath>

#include "base/limits.h"
#include "gguf/names.h"

namespace spillway::model {
namespace {

Result<Rope> read_rope(Builder& b, RopeStyle style, const CommonSizes& sizes, uint32_t trained_context) {
  Rope rope{.style = style};
  numerics::RopeParams& p = rope.params;
  SW_ASSIGN(p.rope_length, b.uint_or("rope.dimension_count", sizes.key_length, 2, sizes.key_length));
  SW_ASSIGN(p.base, b.float_or("rope.freq_base", 10000.0f));
  SW_ASSIGN(const auto kind, b.metadata().find_string(b.key("rope.scaling.type")));
  SW_ASSIGN(const float old_linear, b.float_or("rope.scale_linear", 0.0f));  // files from before scaling.type
  SW_ASSIGN(p.factor, b.float_or("rope.scaling.factor", old_linear != 0 ? old_linear : 1.0f));
  if (p.factor == 0) p.factor = 1.0;  // some converters write 0 for "none"
  if (!kind || *kind == "linear") {   // a factor without a type is linear, as in llama.cpp
    if (p.factor != 1) p.scaling = numerics::RopeScaling::kLinear;
  } else if (kind->empty() || *kind == "none") {
    p.factor = 1.0;
  } else if (*kind == "yarn") {
    p.scaling = numerics::RopeScaling::kYarn;
    SW_ASSIGN(p.original_context,
              b.uint_or("rope.scaling.original_context_length", trained_context, 1, limits::kMaxContext));
    SW_ASSIGN(p.attention_factor, b.float_or("rope.scaling.attn_factor", 1.0f));
    SW_ASSIGN(p.beta_fast, b.float_or("rope.scaling.yarn_beta_fast", 32.0f));
    SW_ASSIGN(p.beta_slow, b.float_or("rope.scaling.yarn_beta_slow", 1.0f));
    SW_ASSIGN(p.extrapolation, b.float_or("rope.scaling.yarn_ext_factor", 1.0f));
  } else {
    return unsupported("key '{}' is {}; known are none, linear and yarn", b.key("rope.scaling.type"),
                       gguf::quoted(*kind));
  }
  SW_ASSIGN(rope.frequency_factors, b.optional_vector("rope_freqs.weight", p.rope_length / 2));
  const std::vector<float> ones(rope.frequency_factors ? p.rope_length / 2 : 0,
                                1.0f);  // the values are checked at load
  if (auto fine = numerics::check_rope(p, ones); !fine)
    return std::unexpected(fine.error().in(fmt::format("keys '{}'", b.key("rope.*"))));
  return rope;
}

// Layers that predict the token after the next may be counted in block_count or not, and may be absent from
// the file: what is there decides. The trailing ones are not run.
uint32_t without_next_token_layers(const Builder& b, uint32_t layers, uint32_t next_token_layers) {
  while (next_token_layers > 0 && layers > 1) {
    const bool absent = !b.has(layer_tensor(layers - 1, "attn_norm.weight"));
    const bool is_next_token = b.has(layer_tensor(layers - 1, "nextn.eh_proj.weight"));
    if (!absent && !is_next_token) break;
    --layers;
    --next_token_layers;
  }
  return layers;
}

Result<std::vector<Weight>> read_expert_part(Builder& b, uint32_t layer, std::string_view part,
                                             uint32_t experts, uint32_t rows, uint32_t cols) {
  const std::string merged = layer_tensor(layer, fmt::format("ffn_{}_exps.weight", part));
  if (b.has(merged) || !b.has(layer_tensor(layer, fmt::format("ffn_{}.0.weight", part))))
    return b.expert_matrices(merged, experts, rows, cols);
  std::vector<Weight> slices;
  for (uint32_t e = 0; e < experts; ++e) {
    SW_ASSIGN(Weight slice,
              b.matrix(layer_tensor(layer, fmt::format("ffn_{}.{}.weight", part, e)), rows, cols));
    slices.push_back(std::move(slice));
  }
  return slices;
}

}  // namespace

std::string layer_tensor(uint32_t layer, std::string_view name) {
  return fmt::format("blk.{}.{}", layer, name);
}

bool is_moe_layer(const Builder& b, uint32_t layer) {
  return b.has(layer_tensor(layer, "ffn_gate_inp.weight")) ||
         b.has(layer_tensor(layer, "ffn_gate_exps.weight"));
}

Result<CommonSizes> read_common(Builder& b, RopeStyle style, Description& model) {
  CommonSizes sizes;
  SW_ASSIGN(sizes.layers, b.require_uint("block_count", 1, limits::kMaxLayers));
  SW_ASSIGN(const uint32_t next_token_layers, b.uint_or("nextn_predict_layers", 0, 0, limits::kMaxLayers));
  sizes.layers = without_next_token_layers(b, sizes.layers, next_token_layers);
  SW_ASSIGN(sizes.hidden, b.require_uint("embedding_length", 1, limits::kMaxHiddenLength));
  SW_ASSIGN(sizes.heads, b.require_uint("attention.head_count", 1, sizes.hidden));
  SW_ASSIGN(sizes.kv_heads, b.uint_or("attention.head_count_kv", sizes.heads, 1, sizes.heads));
  if (sizes.heads % sizes.kv_heads != 0)
    return invalid("key '{}' is {}, which does not divide the {} heads", b.key("attention.head_count_kv"),
                   sizes.kv_heads, sizes.heads);
  SW_ASSIGN(sizes.key_length,
            b.uint_or("attention.key_length", sizes.hidden / sizes.heads, 2, limits::kMaxHeadLength));
  SW_ASSIGN(sizes.value_length,
            b.uint_or("attention.value_length", sizes.key_length, 1, limits::kMaxHeadLength));
  if (sizes.key_length % 2 != 0)
    return invalid("a head holds {} values, which must be an even number of at most {}", sizes.key_length,
                   limits::kMaxHeadLength);

  model.hidden = sizes.hidden;
  SW_ASSIGN(model.trained_context, b.require_uint("context_length", 1, limits::kMaxContext));
  SW_ASSIGN(model.norm_epsilon, b.float_or("attention.layer_norm_rms_epsilon", 1e-6f));
  // Below 2^-40 the root's argument could leave the range that docs/numerics.md defines.
  if (!(model.norm_epsilon >= 1e-12f && model.norm_epsilon <= 1.0f))
    return invalid("key '{}' is {}, must lie between 1e-12 and 1", b.key("attention.layer_norm_rms_epsilon"),
                   model.norm_epsilon);
  SW_ASSIGN(model.vocabulary, b.rows_of("token_embd.weight"));
  SW_ASSIGN(model.embedding, b.matrix("token_embd.weight", model.vocabulary, sizes.hidden));
  SW_ASSIGN(model.output_norm, b.vector("output_norm.weight", sizes.hidden));
  model.tied = !b.has("output.weight");
  model.output = model.embedding;
  if (!model.tied) {
    SW_ASSIGN(model.output, b.matrix("output.weight", model.vocabulary, sizes.hidden));
  }
  SW_ASSIGN(Rope rope, read_rope(b, style, sizes, model.trained_context));
  model.ropes.push_back(std::move(rope));
  return sizes;
}

Result<Attention> read_attention(Builder& b, const CommonSizes& sizes, uint32_t layer) {
  Attention a{.heads = sizes.heads,
              .kv_heads = sizes.kv_heads,
              .key_length = sizes.key_length,
              .value_length = sizes.value_length,
              .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(sizes.key_length)))};
  const uint32_t q_rows = sizes.heads * sizes.key_length;
  const uint32_t k_rows = sizes.kv_heads * sizes.key_length;
  const uint32_t v_rows = sizes.kv_heads * sizes.value_length;
  SW_ASSIGN(a.q, b.matrix(layer_tensor(layer, "attn_q.weight"), q_rows, sizes.hidden));
  SW_ASSIGN(a.k, b.matrix(layer_tensor(layer, "attn_k.weight"), k_rows, sizes.hidden));
  SW_ASSIGN(a.v, b.matrix(layer_tensor(layer, "attn_v.weight"), v_rows, sizes.hidden));
  SW_ASSIGN(a.output, b.matrix(layer_tensor(layer, "attn_output.weight"), sizes.hidden,
                               sizes.heads * sizes.value_length));
  SW_ASSIGN(a.q_bias, b.optional_vector(layer_tensor(layer, "attn_q.bias"), q_rows));
  SW_ASSIGN(a.k_bias, b.optional_vector(layer_tensor(layer, "attn_k.bias"), k_rows));
  SW_ASSIGN(a.v_bias, b.optional_vector(layer_tensor(layer, "attn_v.bias"), v_rows));
  SW_ASSIGN(a.output_bias, b.optional_vector(layer_tensor(layer, "attn_output.bias"), sizes.hidden));
  return a;
}

Result<DenseFfn> read_dense_ffn(Builder& b, const CommonSizes& sizes, uint32_t layer, std::string_view suffix,
                                uint32_t width) {
  const auto name = [&](std::string_view part) {
    return layer_tensor(layer, fmt::format("ffn_{}{}.weight", part, suffix));
  };
  DenseFfn ffn;
  SW_ASSIGN(ffn.gate, b.matrix(name("gate"), width, sizes.hidden));
  SW_ASSIGN(ffn.up, b.matrix(name("up"), width, sizes.hidden));
  SW_ASSIGN(ffn.down, b.matrix(name("down"), sizes.hidden, width));
  return ffn;
}

Result<uint32_t> expert_width(const Builder& b) {
  SW_ASSIGN(const uint32_t width, b.uint_or("expert_feed_forward_length", 0, 1, limits::kMaxHiddenLength));
  return width != 0 ? width : b.require_uint("feed_forward_length", 1, limits::kMaxHiddenLength);
}

Result<uint32_t> qwen_expert_width(const Builder& b) {
  if (b.metadata().contains(b.key("expert_feed_forward_length"))) return expert_width(b);
  SW_ASSIGN(const uint32_t all, b.require_uint("feed_forward_length", 1, limits::kMaxHiddenLength));
  SW_ASSIGN(const uint32_t used, b.require_uint("expert_used_count", 1, limits::kMaxExpertsUsed));
  return all / used;
}

Result<MoeFfn> read_moe(Builder& b, const CommonSizes& sizes, uint32_t layer, uint32_t width,
                        MoeDefaults defaults) {
  const std::string router = layer_tensor(layer, "ffn_gate_inp.weight");
  SW_ASSIGN(const uint32_t experts, b.uint_or("expert_count", 0, 0, limits::kMaxExperts));
  if (experts == 0)
    return invalid("tensor '{}' is there, but key '{}' is {}: the file says nothing of its number of experts",
                   router, b.key("expert_count"), b.metadata().find(b.key("expert_count")) ? "0" : "absent");
  MoeFfn moe;
  SW_ASSIGN(moe.used, b.require_uint("expert_used_count", 1, std::min(experts, limits::kMaxExpertsUsed)));
  SW_ASSIGN(moe.renormalize, b.bool_or("expert_weights_norm", defaults.renormalize));
  SW_ASSIGN(moe.weights_scale, b.float_or("expert_weights_scale", 1.0f));
  if (!std::isfinite(moe.weights_scale))
    return invalid("key '{}' is {}, must be finite", b.key("expert_weights_scale"), moe.weights_scale);
  if (moe.weights_scale == 0.0f) moe.weights_scale = 1.0f;  // some converters write 0 for "none"

  // The choice of gating depends on the key alone, never on which tensors happen to be there.
  SW_ASSIGN(const uint32_t gating, b.uint_or("expert_gating_func", 1, 0, UINT32_MAX));
  switch (gating) {
    case 0:  // "none": written by converters of families that have no such choice
    case 1:
      moe.gating = numerics::Gating::kSoftmax;
      break;
    case 2:
      moe.gating = numerics::Gating::kSigmoid;
      break;
    case 3:
      moe.gating = numerics::Gating::kSoftmaxOfTopK;
      break;
    default:
      return unsupported(
          "key '{}' is {}{}; this program runs softmax (1), sigmoid (2) and softmax over the top-k (3)",
          b.key("expert_gating_func"), gating, gating == 4 ? " (sqrt-softplus)" : "");
  }
  SW_ASSIGN(moe.selection_bias, b.optional_vector(layer_tensor(layer, "exp_probs_b.bias"), experts));

  SW_ASSIGN(moe.router, b.matrix(router, experts, sizes.hidden));
  SW_ASSIGN(std::vector<Weight> gate, read_expert_part(b, layer, "gate", experts, width, sizes.hidden));
  SW_ASSIGN(std::vector<Weight> up, read_expert_part(b, layer, "up", experts, width, sizes.hidden));
  SW_ASSIGN(std::vector<Weight> down, read_expert_part(b, layer, "down", experts, sizes.hidden, width));
  for (uint32_t e = 0; e < experts; ++e)
    moe.experts.push_back({std::move(gate[e]), std::move(up[e]), std::move(down[e])});
  return moe;
}

}  // namespace spillway::model
