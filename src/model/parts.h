// Building blocks that several families share: each reads one part of a layer from metadata and tensors.
#pragma once

#include "model/builder.h"

namespace spillway::model {

// Sizes that every family of the transformer kind declares under its prefix.
struct CommonSizes {
  uint32_t layers = 0;
  uint32_t hidden = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t key_length = 0;    // attention.key_length, or hidden / heads
  uint32_t value_length = 0;  // attention.value_length, or hidden / heads
};

// Everything but the layers: sizes, embedding, output norm and head, and the first rope (whole-head unless
// rope.dimension_count says less, with the file's scaling).
Result<CommonSizes> read_common(Builder& builder, RopeStyle style, Description& model);

// Q, K, V and output projections with their optional biases; no QK norm.
Result<Attention> read_attention(Builder& builder, const CommonSizes& sizes, uint32_t layer);

// gate, up and down of blk.N.ffn_{gate,up,down}<suffix>.
Result<DenseFfn> read_dense_ffn(Builder& builder, const CommonSizes& sizes, uint32_t layer,
                                std::string_view suffix, uint32_t width);

struct MoeDefaults {
  bool renormalize = false;  // where expert_weights_norm is absent (HF's norm_topk_prob of the family)
};

// Router and routed experts, merged (ffn_*_exps) or one tensor per expert (ffn_*.E); no shared expert.
Result<MoeFfn> read_moe(Builder& builder, const CommonSizes& sizes, uint32_t layer, uint32_t width,
                        MoeDefaults defaults);

// True where the layer has a router or merged experts; a layer without one is dense (interleaved layers,
// leading dense layers).
bool is_moe_layer(const Builder& builder, uint32_t layer);

// Width of one expert: expert_feed_forward_length, else feed_forward_length.
Result<uint32_t> expert_width(const Builder& builder);

// The same for Qwen's families, whose first files had only feed_forward_length: that of all used experts
// together.
Result<uint32_t> qwen_expert_width(const Builder& builder);

std::string layer_tensor(uint32_t layer,
                         std::string_view name);  // "blk.3.attn_q.weight" from 3, "attn_q.weight"

}  // namespace spillway::model
