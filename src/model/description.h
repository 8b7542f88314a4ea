// What a model is made of, said once for every family: hyper-parameters, and per layer the weights and the
// choices that the forward pass needs. A family (model/families/) is one small file that fills this in from
// metadata and tensor names; the forward pass (engine/) reads nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/tensor_type.h"
#include "numerics/rope.h"
#include "numerics/router.h"

namespace spillway::model {

// A matrix or vector as it lies in a file: `rows` rows of `cols` values of `type`. One expert of a merged
// tensor, one old per-expert tensor and one dense tensor look alike, so an expert whose parts lie in several
// shards needs no care.
struct Weight {
  std::string tensor;              // its name, for messages
  std::optional<uint32_t> expert;  // which slice of a merged tensor
  TensorType type = TensorType::kF32;
  uint32_t rows = 0;
  uint32_t cols = 0;
  uint32_t shard = 0;   // index of the file
  uint64_t offset = 0;  // first byte in that file

  uint64_t bytes() const { return rows * row_bytes(type, cols); }
  explicit operator bool() const { return rows != 0; }  // an absent optional weight has no rows
};

enum class RopeStyle : uint8_t {
  kNeox,    // pairs (i, i + n/2)
  kNormal,  // pairs (2i, 2i + 1)
};

// One kind of rotary embedding; layers of different kinds (local, global) refer to different ones.
struct Rope {
  RopeStyle style = RopeStyle::kNeox;
  numerics::RopeParams params;
  Weight frequency_factors;  // (params.rope_length / 2), divides each frequency; optional
};

enum class QkNorm : uint8_t {
  kNone,
  kPerHead,  // weight of key_length, each head normalised on its own
  kFullRow,  // weight of heads * key_length, all heads together
};

struct Attention {
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t key_length = 0;
  uint32_t value_length = 0;
  float scale = 1.0f;
  uint32_t window = 0;  // positions seen, 0 = all
  uint32_t rope = 0;    // index into Description::ropes
  QkNorm qk_norm = QkNorm::kNone;
  Weight q, k, v, output;  // (heads * length, hidden); output (hidden, heads * value_length)
  Weight q_bias, k_bias, v_bias, output_bias;  // optional vectors
  Weight q_norm, k_norm;                       // vectors, by qk_norm
};

// down(silu(gate(x)) * up(x))
struct DenseFfn {
  Weight gate, up, down;  // (width, hidden), (width, hidden), (hidden, width)
};

struct Expert {
  Weight gate, up, down;  // (width, hidden), (width, hidden), (hidden, width)
};

struct MoeFfn {
  uint32_t used = 0;  // top-k
  numerics::Gating gating = numerics::Gating::kSoftmax;
  bool renormalize = false;    // the k weights are made to sum to 1
  float weights_scale = 1.0f;  // multiplies them afterwards
  Weight router;               // (experts, hidden)
  Weight selection_bias;       // (experts), added for the choice only; optional
  std::vector<Expert> experts;
  std::optional<DenseFfn> shared;  // runs for every token
  Weight shared_gate;              // (1, hidden): sigmoid of it scales the shared expert; optional
};

struct Layer {
  Weight attention_norm;
  Attention attention;
  Weight ffn_norm;
  std::variant<DenseFfn, MoeFfn> ffn;
};

struct Description {
  std::string family;  // the file's general.architecture
  std::string name;    // general.name, or empty
  uint32_t hidden = 0;
  uint32_t vocabulary = 0;       // rows of the embedding: the length of a row of logits
  uint32_t trained_context = 0;  // as the file says, after scaling
  float norm_epsilon = 1e-6f;
  Weight embedding;    // (vocabulary, hidden)
  Weight output_norm;  // (hidden)
  Weight output;       // (vocabulary, hidden); the embedding again where they are tied
  bool tied = false;
  std::vector<Rope> ropes;
  std::vector<Layer> layers;
  std::vector<std::string> unused_tensors;  // in the file, read by nobody
  std::vector<std::string> notes;           // things in the file that this program reads past, for the user
};

}  // namespace spillway::model
