// Rows of floats in a file without a name: the logits of a long text take gigabytes, and must not take them
// from the memory that the models need. They are written once and read in any order.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace spillway::tune {

class RowStore {
 public:
  // In `folder`. The file is gone when the store is, however the program ends. Errors name the folder.
  static Result<RowStore> create(const std::string& folder, uint32_t width);

  Result<void> append(std::span<const float> row);  // width values
  // Requires: index < rows().
  Result<void> read(uint64_t index, std::span<float> row);
  uint64_t rows() const { return rows_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  RowStore(std::string folder, std::FILE* file, uint32_t width)
      : folder_(std::move(folder)), file_(file), width_(width) {}

  std::string folder_;
  std::unique_ptr<std::FILE, Close> file_;
  uint32_t width_ = 0;
  uint64_t rows_ = 0;
  uint64_t at_ = 0;  // where the file stands, in rows
};

}  // namespace spillway::tune
