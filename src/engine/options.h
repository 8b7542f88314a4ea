// How a model is to be loaded and run. `auto` values are resolved at load and reported (LoadReport).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "backend/cpu/kernels.h"

namespace spillway::engine {

enum class LoadMode : uint8_t {
  kAuto,   // kRead where the weights fit comfortably in this process's memory, else kMmap
  kRead,   // into memory of our own, row-interleaved
  kMmap,   // used where the file's pages lie
  kMlock,  // as kRead, and locked against swapping
};

struct Options {
  std::string path;  // a GGUF file, or any shard of a split one
  LoadMode load_mode = LoadMode::kAuto;
  uint32_t threads = 0;  // 0 = chosen from quota, affinity and core kinds
  uint32_t context =
      0;  // positions of the KV cache, all sequences together; 0 = the model's, at most kDefaultContext
  uint32_t ubatch = 512;  // most tokens of one micro-batch
  backend::KvTypes kv_types;
  std::optional<cpu::InstructionSet> instruction_set;  // for tests; unset = the best
};

// A chat's worth; a whole 128k context would cost gigabytes that most sessions never touch.
inline constexpr uint32_t kDefaultContext = 4096;

// Bytes loaded so far, of all. Returning false stops the load with kCancelled.
using Progress = std::function<bool(uint64_t done, uint64_t total)>;

}  // namespace spillway::engine
