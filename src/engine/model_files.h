// The files of a model on disk: opened, their headers parsed and merged, the model described.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/shards.h"
#include "model/description.h"
#include "sys/file.h"

namespace spillway::engine {

struct ModelFiles {
  std::vector<std::unique_ptr<sys::ReadableFile>> files;  // by shard
  gguf::Model model;
  uint64_t file_bytes = 0;  // of all files
};

// Opens `path` and, for a split model, its other shards.
Result<ModelFiles> open_model_files(const std::string& path);

}  // namespace spillway::engine
