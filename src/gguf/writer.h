// Writes GGUF files: to memory or, piece by piece, to a sink. What it writes is what reader.h accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/metadata.h"

namespace spillway::gguf {

struct TensorSource {
  std::string name;
  uint32_t type_id = 0;
  std::vector<uint64_t> dims;        // dims[0] is the row length
  std::span<const std::byte> bytes;  // not owned; exactly the tensor's size
};

struct FileSource {
  Metadata metadata;  // "general.alignment" is honoured; 32 where missing
  std::vector<TensorSource> tensors;
  uint32_t version = 3;  // 2 or 3; they differ in the number only
};

// Takes the file's bytes in order; an error stops the writing and is handed on.
using Sink = std::function<Result<void>(std::span<const std::byte>)>;

// Every tensor is padded to the alignment, the last one too. Errors name the key or tensor that reader.h
// would refuse.
Result<void> write_file(const FileSource& file, const Sink& sink);
Result<std::vector<std::byte>> write_file(const FileSource& file);

// The same model in several files, as shards.h reads them: the first has all metadata, each has the split.*
// keys. shard_of[i] is the shard of tensor i, in 0..count-1. The files are in order.
Result<std::vector<std::vector<std::byte>>> write_shards(const FileSource& file,
                                                         std::span<const uint32_t> shard_of, uint32_t count);

}  // namespace spillway::gguf
