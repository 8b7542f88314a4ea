#include "model/families/family.h"
#include "model/parts.h"

namespace spillway::model {

// HF OlmoeForCausalLM: QK norm over the whole row of all heads, weights of the chosen experts not
// renormalised.
Result<void> describe_olmoe(Builder& b, Description& model) {
  SW_ASSIGN(const CommonSizes sizes, read_common(b, RopeStyle::kNeox, model));
  SW_ASSIGN(const uint32_t width, expert_width(b));
  for (uint32_t n = 0; n < sizes.layers; ++n) {
    Layer layer;
    SW_ASSIGN(layer.attention_norm, b.vector(layer_tensor(n, "attn_norm.weight"), sizes.hidden));
    SW_ASSIGN(layer.attention, read_attention(b, sizes, n));
    layer.attention.qk_norm = QkNorm::kFullRow;
    SW_ASSIGN(layer.attention.q_norm,
              b.vector(layer_tensor(n, "attn_q_norm.weight"), sizes.heads * sizes.key_length));
    SW_ASSIGN(layer.attention.k_norm,
              b.vector(layer_tensor(n, "attn_k_norm.weight"), sizes.kv_heads * sizes.key_length));
    SW_ASSIGN(layer.ffn_norm, b.vector(layer_tensor(n, "ffn_norm.weight"), sizes.hidden));
    SW_ASSIGN(layer.ffn, read_moe(b, sizes, n, width, {.renormalize = false}));
    model.layers.push_back(std::move(layer));
  }
  return {};
}

}  // namespace spillway::model
