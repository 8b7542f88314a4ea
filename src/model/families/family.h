// The families that this program runs. Each is one function in one file; adding one is adding it here and in
// describe.cc.
#pragma once

#include "model/builder.h"

namespace spillway::model {

Result<void> describe_qwen3moe(Builder& builder, Description& model);  // Qwen3-MoE (30B-A3B, 235B-A22B)
Result<void> describe_qwen2moe(Builder& builder, Description& model);  // Qwen1.5-MoE, Qwen2-57B-A14B
Result<void> describe_llama(Builder& builder, Description& model);     // Mixtral: `llama` with experts
Result<void> describe_olmoe(Builder& builder, Description& model);     // OLMoE-1B-7B

}  // namespace spillway::model
