#include "base/limits.h"
#include "model/families/family.h"
#include "model/parts.h"

namespace spillway::model {

// HF Qwen2MoeForCausalLM: biases on Q, K and V, and a shared expert whose output is scaled by a sigmoid gate.
// The routed weights are not renormalised (norm_topk_prob is false in the published configurations).
Result<void> describe_qwen2moe(Builder& b, Description& model) {
  SW_ASSIGN(const CommonSizes sizes, read_common(b, RopeStyle::kNeox, model));
  SW_ASSIGN(const uint32_t width, qwen_expert_width(b));
  SW_ASSIGN(const uint32_t shared_width,
            b.uint_or("expert_shared_feed_forward_length", 0, 1, limits::kMaxHiddenLength));
  for (uint32_t n = 0; n < sizes.layers; ++n) {
    Layer layer;
    SW_ASSIGN(layer.attention_norm, b.vector(layer_tensor(n, "attn_norm.weight"), sizes.hidden));
    SW_ASSIGN(layer.attention, read_attention(b, sizes, n));
    SW_ASSIGN(layer.ffn_norm, b.vector(layer_tensor(n, "ffn_norm.weight"), sizes.hidden));
    if (is_moe_layer(b, n)) {
      SW_ASSIGN(MoeFfn moe, read_moe(b, sizes, n, width, {.renormalize = false}));
      if (b.has(layer_tensor(n, "ffn_gate_shexp.weight"))) {
        uint32_t w = shared_width;
        if (w == 0) {
          SW_ASSIGN(w, b.rows_of(layer_tensor(n, "ffn_gate_shexp.weight")));
        }
        SW_ASSIGN(moe.shared, read_dense_ffn(b, sizes, n, "_shexp", w));
        SW_ASSIGN(moe.shared_gate, b.matrix(layer_tensor(n, "ffn_gate_inp_shexp.weight"), 1, sizes.hidden));
      }
      layer.ffn = std::move(moe);
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
