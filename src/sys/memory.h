// Memory from the operating system: mapped files, large aligned allocations, locking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace spillway::sys {

inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

uint64_t page_bytes();

// A whole file, mapped for reading. Pages come from disk when they are touched. If the file is cut short by
// somebody while it is mapped, touching the lost part ends the process (SIGBUS).
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // What will be done with a range; only hints.
  enum class Advice { kSequential, kRandom, kWillNeed, kDontNeed };
  void advise(Advice advice, uint64_t offset, uint64_t bytes) const;
  void advise(Advice advice) const { advise(advice, 0, size_); }

 private:
  MappedFile(std::string path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

enum class Pages : uint8_t {
  kSmall,       // whatever the system gives
  kPreferHuge,  // ask for 2 MiB pages, go on without them
};

// Zeroed private memory. Aligned to 2 MiB where huge pages are asked for and it is at least that large, else
// to the page (so always to more than 64 bytes). Pages are made when they are first touched: let the threads
// that fill it do so.
class Allocation {
 public:
  // kNoMemory, with the bytes asked for, where the system refuses. Requires: bytes > 0.
  static Result<Allocation> create(uint64_t bytes, Pages pages);
  Allocation() = default;
  Allocation(Allocation&& other) noexcept;
  Allocation& operator=(Allocation&& other) noexcept;
  ~Allocation();

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }

  // Whether the system took the wish for huge pages; `pages_text` says it for a person, with the remedy if
  // not.
  bool huge_pages_advised() const { return huge_pages_advised_; }
  std::string pages_text() const;
  // Bytes that lie in huge pages now, as the kernel counts them; 0 where it doesn't say. Reads /proc, takes a
  // millisecond.
  uint64_t huge_bytes() const;

 private:
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
  bool huge_pages_advised_ = false;
  std::string refusal_;  // why not
};

// AnonHugePages within [begin, end) by the text of /proc/self/smaps; for huge_bytes and its test. A mapping
// that lies partly in the range counts in full.
uint64_t huge_bytes_in(std::string_view smaps, uint64_t begin, uint64_t end);

// Keeps a range from being swapped out. On refusal (kNoMemory) the message has the bytes, the limit and the
// remedy.
Result<void> lock_memory(std::span<const std::byte> range);
void unlock_memory(std::span<const std::byte> range);

// RLIMIT_MEMLOCK in bytes; nothing where there is no limit.
std::optional<uint64_t> locked_memory_limit();

// The sentence for a refused lock, apart from the system call for its test. `limit` is RLIMIT_MEMLOCK in
// bytes or UINT64_MAX for none.
std::string lock_refusal(uint64_t bytes, uint64_t limit, std::string_view system_message);

}  // namespace spillway::sys
