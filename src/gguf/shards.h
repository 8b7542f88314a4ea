// Models that are split over several files: PREFIX-00001-of-00003.gguf and so on, as llama.cpp's gguf-split
// writes them. Pure logic; the caller opens the files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "gguf/reader.h"

namespace spillway::gguf {

inline constexpr std::string_view kSplitNoKey = "split.no";                  // from 0
inline constexpr std::string_view kSplitCountKey = "split.count";            // 0 or missing: not split
inline constexpr std::string_view kSplitTensorsKey = "split.tensors.count";  // of the whole model

// What a shard's name says. Five digits each.
struct ShardName {
  std::string prefix;   // with its folder: "/models/big"
  uint32_t number = 1;  // from 1
  uint32_t count = 1;
  bool operator==(const ShardName&) const = default;
};
std::optional<ShardName> parse_shard_name(std::string_view path);
std::string shard_path(std::string_view prefix, uint32_t number, uint32_t count);

// Every file of the model that `path` belongs to, in order; `path` alone where its name is not a shard's.
std::vector<std::string> shard_paths(std::string_view path);

// A whole model: one or several files, the metadata of the first, the tensors of all.
class Model {
 public:
  Model() = default;
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;
  Model(const Model&) = delete;  // the index holds views
  Model& operator=(const Model&) = delete;

  const Metadata& metadata() const { return metadata_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // in file order, shard by shard
  const std::vector<std::string>& paths() const {
    return paths_;
  }  // TensorInfo::shard is an index into these

  // Null where there is no such tensor. Lives as long as the model; a move keeps it.
  const TensorInfo* find(std::string_view name) const;
  // The same, with an error of kind kNotFound.
  Result<const TensorInfo*> require(std::string_view name) const;

  // Bytes of all tensors.
  uint64_t tensor_bytes() const;

  // Merges the headers of the files at `paths`, in that order. Refuses shards that don't belong together:
  // split.no and split.count must agree with the position and number of files, split.tensors.count with the
  // tensors found, no tensor may be there twice, and a later shard must not contradict the metadata of the
  // first.
  static Result<Model> merge(std::vector<std::string> paths, std::vector<Header> headers);

 private:
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::string> paths_;
  std::unordered_map<std::string_view, size_t> index_;  // views of the names in tensors_
};

// Opens the model that `path` belongs to; any shard will do. `open` gives the header of a file, or an error
// of kind kNotFound where it isn't there: the message then names every missing file.
using OpenHeader = std::function<Result<Header>(const std::string& path)>;
Result<Model> open_model(const std::string& path, const OpenHeader& open);

}  // namespace spillway::gguf
