// A ModelSpec as command-line flags, so that a golden file can say which model it belongs to.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "support/model_maker.h"

namespace spillway::test_support {

struct ModelFlags {
  ModelSpec spec;
  std::string type = "F32", expert_type;  // names of tensor types

  void add_to(CLI::App& app);
  Result<ModelSpec> resolve() const;
};

// "--family qwen3moe --seed 3".
Result<ModelSpec> parse_model_flags(const std::string& flags);

}  // namespace spillway::test_support
