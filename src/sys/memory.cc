#include "sys/memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/checked.h"
#include "sys/descriptor.h"
#include "sys/file.h"

namespace spillway::sys {
namespace {

// The whole pages around a range, as madvise and mlock want them.
std::span<std::byte> whole_pages(const std::byte* data, size_t size) {
  const uintptr_t page = page_bytes();
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data) / page * page;
  return {reinterpret_cast<std::byte*>(begin), reinterpret_cast<uintptr_t>(data) + size - begin};
}

}  // namespace

uint64_t page_bytes() {
  static const uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  SW_ASSIGN(const Descriptor descriptor, open_descriptor(path));
  SW_ASSIGN(const uint64_t size, regular_file_size(descriptor, path));
  if (size == 0) return MappedFile(path, nullptr, 0);  // the system refuses to map nothing
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.get(), 0);
  if (data == MAP_FAILED)
    return fail(Error::Kind::kIo, "{} can't be mapped ({} bytes): {}; load it with -lm none", path, size,
                std::strerror(errno));
  return MappedFile(path, static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::advise(Advice advice, uint64_t offset, uint64_t bytes) const {
  if (offset >= size_) return;
  const auto pages = whole_pages(data_ + offset, std::min<uint64_t>(bytes, size_ - offset));
  const int wish = advice == Advice::kSequential ? MADV_SEQUENTIAL
                   : advice == Advice::kRandom   ? MADV_RANDOM
                   : advice == Advice::kWillNeed ? MADV_WILLNEED
                                                 : MADV_DONTNEED;
  madvise(pages.data(), pages.size(), wish);
}

Result<Allocation> Allocation::create(uint64_t bytes, Pages pages) {
  SW_ASSERT(bytes > 0);
  const bool huge = pages == Pages::kPreferHuge && bytes >= kHugePageBytes;
  const uint64_t alignment = huge ? kHugePageBytes : page_bytes();
  const auto size = checked_round_up(bytes, alignment);
  const auto padded = size ? checked_add(*size, huge ? alignment : 0) : std::nullopt;
  void* mapped = MAP_FAILED;
  errno = ENOMEM;
  if (padded) mapped = mmap(nullptr, *padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return fail(Error::Kind::kNoMemory, "{} bytes ({:.1f} GiB) of memory were refused: {}", bytes,
                static_cast<double>(bytes) / (1 << 30), std::strerror(errno));

  // Give back what lies before and behind the aligned part.
  std::byte* const begin = static_cast<std::byte*>(mapped);
  const uint64_t skip =
      *checked_round_up(reinterpret_cast<uintptr_t>(begin), alignment) - reinterpret_cast<uintptr_t>(begin);
  if (skip > 0) munmap(begin, skip);
  const uint64_t behind = *padded - skip - *size;
  if (behind > 0) munmap(begin + skip + *size, behind);

  Allocation allocation;
  allocation.data_ = begin + skip;
  allocation.size_ = *size;
  if (!huge) {
    allocation.refusal_ = pages == Pages::kSmall ? "not asked for" : "the memory is smaller than one";
  } else if (madvise(allocation.data_, allocation.size_, MADV_HUGEPAGE) == 0) {
    // The advice is taken even where the switch says "never".
    const auto setting = read_text("/sys/kernel/mm/transparent_hugepage/enabled");
    if (setting && setting->find("[never]") != std::string::npos)
      allocation.refusal_ =
          "switched off in /sys/kernel/mm/transparent_hugepage/enabled; write 'madvise' there";
    else
      allocation.huge_pages_advised_ = true;
  } else {
    allocation.refusal_ = std::strerror(errno);
  }
  return allocation;
}

Allocation::Allocation(Allocation&& other) noexcept { *this = std::move(other); }

Allocation& Allocation::operator=(Allocation&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(huge_pages_advised_, other.huge_pages_advised_);
  std::swap(refusal_, other.refusal_);
  return *this;
}

Allocation::~Allocation() {
  if (data_) munmap(data_, size_);
}

std::string Allocation::pages_text() const {
  return huge_pages_advised_ ? "2 MiB pages"
                             : fmt::format("{} KiB pages (2 MiB ones: {})", page_bytes() / 1024, refusal_);
}

uint64_t Allocation::huge_bytes() const {
  const auto smaps = read_text("/proc/self/smaps");
  const auto begin = reinterpret_cast<uint64_t>(data_);
  return smaps ? huge_bytes_in(*smaps, begin, begin + size_) : 0;
}

uint64_t huge_bytes_in(std::string_view smaps, uint64_t begin, uint64_t end) {
  uint64_t sum = 0;
  bool inside = false;
  while (!smaps.empty()) {
    const size_t length = smaps.find('\n');
    const std::string_view line = smaps.substr(0, length);
    smaps.remove_prefix(length == std::string_view::npos ? smaps.size() : length + 1);
    // A mapping's own line begins with its range in hex: "7f0000000000-7f0000200000 rw-p ..."; fields end
    // with a colon.
    uint64_t from = 0, to = 0;
    const char* const line_end = line.data() + line.size();
    const auto first = std::from_chars(line.data(), line_end, from, 16);
    if (first.ec == std::errc() && first.ptr < line_end && *first.ptr == '-' &&
        std::from_chars(first.ptr + 1, line_end, to, 16).ec == std::errc()) {
      inside = from < end && to > begin;
      continue;
    }
    constexpr std::string_view kField = "AnonHugePages:";
    if (!inside || !line.starts_with(kField)) continue;
    const size_t digits = line.find_first_of("0123456789");
    uint64_t kib = 0;
    if (digits != std::string_view::npos) std::from_chars(line.data() + digits, line_end, kib);
    sum += kib * 1024;
  }
  return sum;
}

Result<void> lock_memory(std::span<const std::byte> range) {
  if (range.empty()) return {};
  const auto pages = whole_pages(range.data(), range.size());
  if (mlock(pages.data(), pages.size()) == 0) return {};
  const int error = errno;
  return std::unexpected(
      Error{Error::Kind::kNoMemory,
            lock_refusal(range.size(), locked_memory_limit().value_or(UINT64_MAX), std::strerror(error))});
}

std::optional<uint64_t> locked_memory_limit() {
  struct rlimit limit;
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

void unlock_memory(std::span<const std::byte> range) {
  const auto pages = whole_pages(range.data(), range.size());
  if (!pages.empty()) munlock(pages.data(), pages.size());
}

std::string lock_refusal(uint64_t bytes, uint64_t limit, std::string_view system_message) {
  if (limit < bytes)
    return fmt::format(
        "{} MiB of memory could not be locked: the limit for locked memory is {} KiB; raise it with 'ulimit "
        "-l unlimited' "
        "(LimitMEMLOCK= for a service, --ulimit memlock=-1 for a container), or run without mlock",
        ceil_div(bytes, 1 << 20), limit / 1024);
  return fmt::format("{} MiB of memory could not be locked: {}; free some memory, or run without mlock",
                     ceil_div(bytes, 1 << 20), system_message);
}

}  // namespace spillway::sys
