// What the parts of a model weigh, for inspect, bench and the memory plan.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/description.h"

namespace spillway::model {

struct Sizes {
  uint64_t embedding_bytes = 0;  // token embeddings (the output head too, where they are tied)
  uint64_t output_bytes = 0;     // the output head; 0 where tied
  uint64_t attention_bytes = 0;  // projections and norms of all layers
  uint64_t dense_ffn_bytes = 0;  // feed-forward parts of dense layers
  uint64_t shared_expert_bytes = 0;
  uint64_t router_bytes = 0;
  uint64_t expert_bytes = 0;  // all routed experts
  uint64_t parameters = 0;
  uint64_t active_parameters = 0;  // used for one token
  uint32_t moe_layers = 0;

  // Weight bytes read to decode one token: everything but the embeddings (of which one row is read) and the
  // experts that are not used.
  uint64_t bytes_per_token = 0;

  uint64_t total_bytes() const {
    return embedding_bytes + output_bytes + attention_bytes + dense_ffn_bytes + shared_expert_bytes +
           router_bytes + expert_bytes;
  }
  uint64_t dense_bytes() const { return total_bytes() - expert_bytes; }
};
Sizes measure_sizes(const Description& model);

// Bytes of the KV cache for one position, all layers, with these bytes for each value of a key and of a
// value.
uint64_t kv_bytes_per_position(const Description& model, uint32_t key_bytes, uint32_t value_bytes);

// How many bytes each type has in each group of tensors: {"experts", "Q4_K"} -> bytes.
std::map<std::string, std::map<std::string, uint64_t>> bytes_by_type(const Description& model);

}  // namespace spillway::model
