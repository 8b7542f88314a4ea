// Makes small (or large) random models of each family, with a tokenizer and a chat template, for tests and
// benchmarks. The same spec gives the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor_type.h"
#include "gguf/metadata.h"
#include "gguf/writer.h"

namespace spillway::test_support {

struct ModelSpec {
  std::string family = "qwen3moe";  // qwen3moe, qwen2moe, llama, olmoe
  uint32_t layers = 2;
  uint32_t hidden = 64;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_length = 16;
  uint32_t experts = 4;  // 0 = a dense model (llama only)
  uint32_t used = 2;
  uint32_t expert_width = 32;
  float expert_scale = 0.0f;   // key expert_weights_scale; 0 = absent
  uint32_t shared_width = 32;  // qwen2moe
  uint32_t vocabulary = 300;   // rows of the embedding; the tokenizer has kTokens or as many
  uint32_t context = 512;
  TensorType type = TensorType::kF32;         // of all matrices but the router
  TensorType expert_type = TensorType::kF32;  // of the experts
  bool split_experts = false;                 // one tensor per expert, as in old Mixtral files
  bool tied = false;                          // no output head of its own
  std::vector<uint32_t> dense_layers;         // layers without experts
  uint32_t dense_width = 48;                  // of their feed-forward part
  uint32_t rope_length = 0;                   // values of a head that turn; 0 = all
  std::string rope_scaling;  // "linear", "yarn", "unnamed" (a factor without a type); empty = none
  float rope_factor = 4.0f;
  uint32_t rope_original_context = 64;  // yarn
  bool rope_factors = false;            // a rope_freqs.weight tensor
  // The token alone decides its experts: no rounding can tip the choice, so that two engines can be compared
  // on quantized files. The first `experts` hidden values carry it; no layer writes to them.
  bool decisive_router = false;
  uint64_t seed = 1;
  // How many different random matrices there are per shape: a benchmark's file of gigabytes repeats a few.
  uint32_t distinct = UINT32_MAX;
};

// A model in memory: change its metadata and tensors to damage it, then write it.
struct MadeModel {
  gguf::Metadata metadata;
  struct Tensor {
    std::string name;
    TensorType type;
    std::vector<uint64_t> dims;
    std::shared_ptr<const std::vector<std::byte>> bytes;
  };
  std::vector<Tensor> tensors;

  Tensor* find(std::string_view name);
  gguf::FileSource source() const;            // views of this
  void write(const std::string& path) const;  // stops the program on an error: only tests and tools use it
};

MadeModel make_model(const ModelSpec& spec);

// XXH3 of the file's bytes: goldens carry it, so that a changed generator is noticed.
uint64_t file_hash(const MadeModel& model);

}  // namespace spillway::test_support
