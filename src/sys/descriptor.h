// An open file of the operating system, closed at the end of its life. For this room only.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"

namespace spillway::sys {

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor();
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// Opens for reading.
Result<Descriptor> open_descriptor(const std::string& path);

// The size, or kInvalid where it is not a regular file.
Result<uint64_t> regular_file_size(const Descriptor& descriptor, const std::string& path);

}  // namespace spillway::sys
