#include "tune/row_store.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/assert.h"

namespace spillway::tune {

Result<RowStore> RowStore::create(const std::string& folder, uint32_t width) {
  SW_ASSERT(width > 0);
  std::random_device random;
  const std::string path = fmt::format("{}/spillway-{:08x}{:08x}", folder, random(), random());
  std::FILE* file = std::fopen(path.c_str(), "w+bx");
  if (file == nullptr)
    return fail(Error::Kind::kIo, "no scratch file can be made in '{}': {}; TMPDIR names another folder",
                folder, std::strerror(errno));
  RowStore store(folder, file, width);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);  // it lives on as long as it is open
  return store;
}

Result<void> RowStore::append(std::span<const float> row) {
  SW_ASSERT(row.size() == width_ && at_ == rows_);
  if (std::fwrite(row.data(), sizeof(float), width_, file_.get()) != width_)
    return fail(Error::Kind::kIo,
                "the scratch file in '{}' cannot be written to: {}; TMPDIR names another folder", folder_,
                std::strerror(errno));
  at_ = ++rows_;
  return {};
}

Result<void> RowStore::read(uint64_t index, std::span<float> row) {
  SW_ASSERT(index < rows_ && row.size() == width_);
  const uint64_t bytes = uint64_t{width_} * sizeof(float);
  // A seek between writing and reading, and wherever the next row is not the next in the file.
  const bool there = index == 0 || at_ != index
                         ? fseeko(file_.get(), static_cast<off_t>(index * bytes), SEEK_SET) == 0
                         : true;
  if (!there || std::fread(row.data(), sizeof(float), width_, file_.get()) != width_)
    return fail(Error::Kind::kIo, "the scratch file in '{}' cannot be read: {}", folder_,
                std::strerror(errno));
  at_ = index + 1;
  return {};
}

}  // namespace spillway::tune
