#include "sys/direct_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/assert.h"
#include "sys/descriptor.h"
#include "sys/memory.h"

namespace spillway::sys {
namespace {

// For reads without a buffer of their own; as much as a loading thread reads at a time.
constexpr uint64_t kBounceBytes = 1 << 20;

uint64_t round_down(uint64_t n) { return n - n % kDirectBlockBytes; }
uint64_t round_up(uint64_t n) { return round_down(n + kDirectBlockBytes - 1); }

class DirectFile final : public ReadableFile {
 public:
  DirectFile(std::unique_ptr<BlockReader> reader, std::string path, uint64_t size)
      : reader_(std::move(reader)), path_(std::move(path)), size_(size) {}

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return size_; }
  void will_need(uint64_t, uint64_t) const override {}  // there is no cache that could fetch it

  Result<void> read_at(uint64_t offset, std::span<std::byte> to) const override {
    SW_TRY(check(offset, to.size()));
    if (to.empty()) return {};
    SW_ASSIGN(
        const Allocation bounce,
        Allocation::create(std::min(round_up(to.size()), kBounceBytes) + kWindowSlackBytes, Pages::kSmall));
    while (!to.empty()) {
      const size_t n = std::min<uint64_t>(to.size(), kBounceBytes);
      SW_ASSIGN(const std::span<const std::byte> got, read_window(offset, n, bounce.bytes()));
      std::ranges::copy(got, to.begin());
      to = to.subspan(n);
      offset += n;
    }
    return {};
  }

  Result<std::span<const std::byte>> read_window(uint64_t offset, uint64_t bytes,
                                                 std::span<std::byte> buffer) const override {
    SW_TRY(check(offset, bytes));
    if (bytes == 0) return std::span<const std::byte>();
    const uint64_t begin = round_down(offset), wanted = offset + bytes - begin;
    SW_ASSERT(reinterpret_cast<uintptr_t>(buffer.data()) % kDirectBlockBytes == 0);
    SW_ASSERT(buffer.size() >= round_up(wanted));
    for (uint64_t done = 0; done < wanted;) {
      SW_ASSIGN(const size_t n,
                reader_->read_blocks(begin + done, buffer.subspan(done, round_up(wanted) - done)));
      done += n;
      if (done < wanted && (n == 0 || n % kDirectBlockBytes != 0))
        return fail(Error::Kind::kIo,
                    "{}: the file ends at byte {}, but had {} bytes when it was opened; it was changed "
                    "while in use",
                    path_, begin + done, size_);
    }
    return std::span<const std::byte>(buffer).subspan(offset - begin, bytes);
  }

 private:
  Result<void> check(uint64_t offset, uint64_t bytes) const {
    if (offset > size_ || bytes > size_ - offset)
      return invalid("{}: {} bytes at {} were asked for, but the file has {}", path_, bytes, offset, size_);
    return {};
  }

  std::unique_ptr<BlockReader> reader_;
  std::string path_;
  uint64_t size_;
};

class DescriptorReader final : public BlockReader {
 public:
  DescriptorReader(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  Result<size_t> read_blocks(uint64_t offset, std::span<std::byte> to) const override {
    while (true) {
      const ssize_t n = pread(descriptor_.get(), to.data(), to.size(), static_cast<off_t>(offset));
      if (n >= 0) return static_cast<size_t>(n);
      if (errno == EINTR) continue;
      return fail(Error::Kind::kIo, "{}: reading {} bytes at {} around the page cache failed: {}", path_,
                  to.size(), offset, std::strerror(errno));
    }
  }

 private:
  Descriptor descriptor_;
  std::string path_;
};

}  // namespace

Result<std::unique_ptr<ReadableFile>> make_direct_file(std::unique_ptr<BlockReader> reader, std::string path,
                                                       uint64_t size) {
  auto file = std::make_unique<DirectFile>(std::move(reader), std::move(path), size);
  if (size > 0) {
    std::byte first, last;
    for (auto [offset, to] : {std::pair(uint64_t{0}, &first), std::pair(size - 1, &last)})
      if (auto read = file->read_at(offset, std::span(to, 1)); !read)
        return fail(Error::Kind::kUnsupported, "{}", read.error().message);
  }
  return file;
}

Result<std::unique_ptr<ReadableFile>> open_direct_file(const std::string& path) {
  SW_ASSIGN(const Descriptor plain, open_descriptor(path));  // says what is wrong with the path itself
  SW_ASSIGN(const uint64_t size, regular_file_size(plain, path));
  int descriptor;
  do {
    descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0)
    return unsupported("{} can't be read around the page cache: {}", path, std::strerror(errno));
  return make_direct_file(std::make_unique<DescriptorReader>(Descriptor(descriptor), path), path, size);
}

}  // namespace spillway::sys
