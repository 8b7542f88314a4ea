#include "base/limits.h"
#include "model/families/family.h"
#include "model/parts.h"

namespace spillway::model {

// HF Qwen3MoeForCausalLM: QK norm per head before rope, experts renormalised, no shared expert; layers listed
// in mlp_only_layers are dense.
Result<void> describe_qwen3moe(Builder& b, Description& model) {
  SW_ASSIGN(const CommonSizes sizes, read_common(b, RopeStyle::kNeox, model));
  SW_ASSIGN(const uint32_t width, qwen_expert_width(b));
  for (uint32_t n = 0; n < sizes.layers; ++n) {
    Layer layer;
    SW_ASSIGN(layer.attention_norm, b.vector(layer_tensor(n, "attn_norm.weight"), sizes.hidden));
    SW_ASSIGN(layer.attention, read_attention(b, sizes, n));
    layer.attention.qk_norm = QkNorm::kPerHead;
    SW_ASSIGN(layer.attention.q_norm, b.vector(layer_tensor(n, "attn_q_norm.weight"), sizes.key_length));
    SW_ASSIGN(layer.attention.k_norm, b.vector(layer_tensor(n, "attn_k_norm.weight"), sizes.key_length));
    SW_ASSIGN(layer.ffn_norm, b.vector(layer_tensor(n, "ffn_norm.weight"), sizes.hidden));
    if (is_moe_layer(b, n)) {
      SW_ASSIGN(layer.ffn, read_moe(b, sizes, n, width, {.renormalize = true}));
    } else {
      SW_ASSIGN(const uint32_t dense_width,
                b.require_uint("feed_forward_length", 1, limits::kMaxHiddenLength));
      SW_ASSIGN(layer.ffn, read_dense_ffn(b, sizes, n, "", dense_width));
    }
    model.layers.push_back(std::move(layer));
  }
  return {};
}

}  // namespace spillway::model
