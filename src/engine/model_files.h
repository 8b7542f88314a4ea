// The files of a model on disk: opened, their headers parsed and merged, the model described.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/shards.h"
#include "model/description.h"
#include "sys/direct_file.h"

namespace spillway::engine {

struct ModelFiles {
  std::vector<std::unique_ptr<sys::ReadableFile>> files;  // by shard
  gguf::Model model;
  uint64_t file_bytes = 0;  // of all files
  // How a shard is opened for reading around the page cache; tests put a refusal here.
  std::function<Result<std::unique_ptr<sys::ReadableFile>>(const std::string& path)> open_direct =
      sys::open_direct_file;
};

// Opens `path` and, for a split model, its other shards.
Result<ModelFiles> open_model_files(const std::string& path);

// All shards once more, for reading around the page cache. kUnsupported where a file system refuses it.
Result<std::vector<std::unique_ptr<sys::ReadableFile>>> open_direct(const ModelFiles& files);

}  // namespace spillway::engine
