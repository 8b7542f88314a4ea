#include "engine/model_files.h"

#include "gguf/reader.h"

namespace spillway::engine {

Result<ModelFiles> open_model_files(const std::string& path) {
  ModelFiles result;
  const auto open = [](const std::string& shard) -> Result<gguf::Header> {
    SW_ASSIGN(const auto file, sys::open_file(shard));
    return gguf::read_header(
        file->size(), [&](uint64_t offset, std::span<std::byte> to) { return file->read_at(offset, to); });
  };
  SW_ASSIGN(result.model, gguf::open_model(path, open));
  for (const std::string& shard : result.model.paths()) {
    SW_ASSIGN(auto file, sys::open_file(shard));
    result.file_bytes += file->size();
    result.files.push_back(std::move(file));
  }
  return result;
}

Result<std::vector<std::unique_ptr<sys::ReadableFile>>> open_direct(const ModelFiles& files) {
  std::vector<std::unique_ptr<sys::ReadableFile>> direct;
  for (const auto& file : files.files) {
    SW_ASSIGN(auto opened, files.open_direct(file->path()));
    direct.push_back(std::move(opened));
  }
  return direct;
}

}  // namespace spillway::engine
