#include "sys/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sys/descriptor.h"

namespace spillway::sys {
namespace {

// Linux moves at most 2^31 - 4096 bytes in one call.
constexpr size_t kMostPerCall = size_t{1} << 30;

class DiskFile final : public ReadableFile {
 public:
  DiskFile(Descriptor descriptor, std::string path, uint64_t size)
      : descriptor_(std::move(descriptor)), path_(std::move(path)), size_(size) {}

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return size_; }

  Result<void> read_at(uint64_t offset, std::span<std::byte> to) const override {
    if (offset > size_ || to.size() > size_ - offset)
      return invalid("{}: {} bytes at {} were asked for, but the file has {}", path_, to.size(), offset,
                     size_);
    while (!to.empty()) {
      const ssize_t n =
          pread(descriptor_.get(), to.data(), std::min(to.size(), kMostPerCall), static_cast<off_t>(offset));
      if (n < 0) {
        if (errno == EINTR) continue;
        return fail(Error::Kind::kIo, "{}: reading {} bytes at {} failed: {}", path_, to.size(), offset,
                    std::strerror(errno));
      }
      if (n == 0)
        return fail(Error::Kind::kIo,
                    "{}: the file ends at byte {}, but had {} bytes when it was opened; it was changed "
                    "while in use",
                    path_, offset, size_);
      to = to.subspan(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return {};
  }

  void will_need(uint64_t offset, uint64_t bytes) const override {
    posix_fadvise(descriptor_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes),
                  POSIX_FADV_WILLNEED);
  }

 private:
  Descriptor descriptor_;
  std::string path_;
  uint64_t size_;
};

}  // namespace

Result<Descriptor> open_descriptor(const std::string& path) {
  while (true) {
    // A pipe without a writer must not hold the call up; for a regular file O_NONBLOCK says nothing.
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor >= 0) return Descriptor(descriptor);
    if (errno == EINTR) continue;
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    return fail(missing ? Error::Kind::kNotFound : Error::Kind::kIo, "{} can't be opened: {}", path,
                std::strerror(errno));
  }
}

Result<uint64_t> regular_file_size(const Descriptor& descriptor, const std::string& path) {
  struct stat status;
  if (fstat(descriptor.get(), &status) != 0)
    return fail(Error::Kind::kIo, "{}: its size can't be read: {}", path, std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    return invalid("{} is {}; it needs to be a regular file", path,
                   S_ISDIR(status.st_mode) ? "a folder" : "no file");
  return static_cast<uint64_t>(status.st_size);
}

Descriptor::~Descriptor() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<std::unique_ptr<ReadableFile>> open_file(const std::string& path) {
  SW_ASSIGN(Descriptor descriptor, open_descriptor(path));
  SW_ASSIGN(const uint64_t size, regular_file_size(descriptor, path));
  return std::make_unique<DiskFile>(std::move(descriptor), path, size);
}

Result<void> MemoryFile::read_at(uint64_t offset, std::span<std::byte> to) const {
  if (offset > bytes_.size() || to.size() > bytes_.size() - offset)
    return invalid("{}: {} bytes at {} were asked for, but the file has {}", path_, to.size(), offset,
                   bytes_.size());
  if (offset + to.size() > fail_from_)
    return fail(Error::Kind::kIo, "{}: reading {} bytes at {} failed: as planned", path_, to.size(), offset);
  std::ranges::copy(std::span(bytes_).subspan(offset, to.size()), to.begin());
  return {};
}

Result<std::string> read_text(const std::string& path) {
  constexpr size_t kMost = 16 << 20;
  SW_ASSIGN(const Descriptor descriptor, open_descriptor(path));
  std::string text;
  char buffer[4096];
  while (text.size() <= kMost) {
    const ssize_t n = read(descriptor.get(), buffer, sizeof(buffer));
    if (n == 0) return text;
    if (n < 0) {
      if (errno == EINTR) continue;
      return fail(Error::Kind::kIo, "{} can't be read: {}", path, std::strerror(errno));
    }
    text.append(buffer, static_cast<size_t>(n));
  }
  return invalid("{} is larger than {} bytes", path, kMost);
}

}  // namespace spillway::sys
