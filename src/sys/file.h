// Files that are read at any place, from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace spillway::sys {

// The unit of reads around the page cache (sys/direct_file.h): a page, which no disk's logical block exceeds.
inline constexpr uint64_t kDirectBlockBytes = 4096;
// What a buffer needs beyond a range, so that whole blocks around it fit.
inline constexpr uint64_t kWindowSlackBytes = 2 * kDirectBlockBytes;

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual const std::string& path() const = 0;
  virtual uint64_t size() const = 0;  // when it was opened

  // Fills `to` in full from `offset` on, or fails: past the end of the file, too, also where it has shrunk
  // since. Any number of threads at a time.
  virtual Result<void> read_at(uint64_t offset, std::span<std::byte> to) const = 0;

  // Reads the range to somewhere in `buffer` and returns where. Errors as those of read_at. Requires: the
  // buffer is aligned to kDirectBlockBytes and has room for the range and kWindowSlackBytes.
  virtual Result<std::span<const std::byte>> read_window(uint64_t offset, uint64_t bytes,
                                                         std::span<std::byte> buffer) const {
    const std::span<std::byte> to = buffer.first(bytes);
    SW_TRY(read_at(offset, to));
    return to;
  }

  // Tells the system that the range will be wanted soon. Only a hint.
  virtual void will_need(uint64_t offset, uint64_t bytes) const = 0;
};

// Opens a regular file. kNotFound where it isn't there, kIo where the system refuses, kInvalid for a folder
// or device.
Result<std::unique_ptr<ReadableFile>> open_file(const std::string& path);

// A file in memory, for tests. Reads that touch [fail_from, ...) give an error.
class MemoryFile final : public ReadableFile {
 public:
  explicit MemoryFile(std::vector<std::byte> bytes, std::string path = "memory")
      : bytes_(std::move(bytes)), path_(std::move(path)) {}
  void fail_from(uint64_t offset) { fail_from_ = offset; }

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return bytes_.size(); }
  Result<void> read_at(uint64_t offset, std::span<std::byte> to) const override;
  void will_need(uint64_t, uint64_t) const override {}

 private:
  std::vector<std::byte> bytes_;
  std::string path_;
  uint64_t fail_from_ = UINT64_MAX;
};

// The text of a small file, such as those of /proc and /sys, which say that their size is 0. kNotFound where
// it isn't there; an error past 16 MiB.
Result<std::string> read_text(const std::string& path);

}  // namespace spillway::sys
