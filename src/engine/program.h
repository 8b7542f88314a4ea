// The forward pass: a model's layers as operations of a device, written once for every family and device.
#pragma once

#include <span>
#include <vector>

#include "backend/compute.h"
#include "model/description.h"

namespace spillway::engine {

// The buffers of a step, by what they hold. Widths are in Program::buffer_widths.
enum Buffer : backend::BufferId {
  kHidden,  // the residual stream
  kNormed,  // normalised input of attention, then of the feed-forward part
  kQuery,
  kKey,
  kValue,
  kAttended,  // what attention gives, before its output projection
  kBranch,    // what attention or the feed-forward part adds to the residual
  kGate,      // dense or shared feed-forward
  kUp,
  kShared,      // output of the shared expert
  kSharedGate,  // one value a row
  kBufferCount,
};

struct FfnIds {
  backend::WeightId gate = backend::kNoWeight, up = backend::kNoWeight, down = backend::kNoWeight;
  uint32_t width = 0;
};

struct LayerIds {
  backend::WeightId attention_norm, q, k, v, output, q_bias, k_bias, v_bias, output_bias, q_norm, k_norm,
      ffn_norm;
  backend::AttentionSpec attention;
  uint32_t rope = 0;
  model::QkNorm qk_norm = model::QkNorm::kNone;
  bool is_moe = false;
  FfnIds dense;  // the whole feed-forward part, or the shared expert
  backend::WeightId shared_gate = backend::kNoWeight;
  backend::WeightId router = backend::kNoWeight;
  backend::WeightId selection_bias = backend::kNoWeight;
  numerics::RouterParams routing;
  std::vector<backend::ExpertWeights> experts;
};

// A Description with its weights numbered.
struct Program {
  explicit Program(const model::Description& model);

  std::vector<model::Weight> weights;   // by WeightId
  std::vector<uint32_t> buffer_widths;  // by Buffer
  std::vector<LayerIds> layers;
  uint32_t hidden = 0;
  float norm_epsilon = 0;
  backend::WeightId embedding, output_norm, output;
  std::vector<backend::WeightId> rope_factors;  // by rope, kNoWeight where it has none

  // Bounds for the device's own scratch.
  uint32_t max_width = 0;  // widest row that is multiplied, routed experts aside
  uint32_t experts = 0;
  uint32_t max_experts_used = 0;
  uint32_t expert_width = 0;
  uint32_t max_head_length = 0;

  // Runs the present step through layers first..last-1: kHidden in, kHidden out.
  void run_layers(backend::Compute& device, uint32_t first, uint32_t last) const;

 private:
  void run_attention(backend::Compute& device, const LayerIds& layer) const;
  void run_ffn(backend::Compute& device, const LayerIds& layer, uint32_t index) const;
  void run_dense(backend::Compute& device, const LayerIds& layer, backend::BufferId out) const;
};

}  // namespace spillway::engine
