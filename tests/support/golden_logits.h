// Reads the files of tests/data/peer_logits (its README.md has the format).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "support/model_maker.h"

namespace spillway::test_support {

struct GoldenLogits {
  ModelSpec spec;
  uint64_t file_hash = 0;
  std::vector<int32_t> tokens;
  struct Row {
    uint32_t position;
    std::vector<float> logits;
  };
  std::vector<Row> rows;
};

// An error names the file and the word at fault.
Result<GoldenLogits> read_golden_logits(const std::string& path);

}  // namespace spillway::test_support
