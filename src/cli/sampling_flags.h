// The flags that say how the next token is chosen. Values that the person does not give come from the model
// file (keys general.sampling.*) where it has them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/metadata.h"
#include "sample/sampler.h"

namespace spillway::cli {

struct SamplingFlags {
  sample::SamplerParams params;
  int64_t seed = -1;                    // -1: a random one
  std::vector<std::string> logit_bias;  // "15043+1", "15043-inf"

  void add_to(CLI::App& command);

  // The parameters in force: given, else the file's, else the defaults; checked.
  Result<sample::SamplerParams> resolve(const CLI::App& command, const gguf::Metadata& metadata,
                                        uint32_t vocabulary) const;
};

}  // namespace spillway::cli
