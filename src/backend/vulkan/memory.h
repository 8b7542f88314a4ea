// Device and staging memory, allocated once. Buffers carry their device address, so no binding limit applies;
// an allocation never exceeds the device's limit for one.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "backend/vulkan/context.h"

namespace spillway::vulkan {

inline constexpr uint64_t kAlignment = 256;  // the largest that Vulkan's offset limits ask for
constexpr uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A piece of a buffer.
struct Range {
  VkBuffer buffer = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  VkDeviceAddress address = 0;  // of its first byte
  std::byte* mapped = nullptr;  // where the host sees it, else null
};

enum class MemoryUse : uint8_t {
  kDevice,    // the device's own
  kStaging,   // written by the host
  kReadback,  // read by the host
};

// One buffer with memory of its own.
class Buffer {
 public:
  static Result<Buffer> create(const Context& context, uint64_t bytes, MemoryUse use);
  // Host memory of the caller, which must outlive it. Requires: host_import, and range aligned to it.
  static Result<Buffer> import(const Context& context, std::span<const std::byte> memory);
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  Range range(uint64_t offset, uint64_t bytes) const;
  Range all() const { return range(0, bytes_); }

 private:
  const Context* context_ = nullptr;
  VkBuffer buffer_ = nullptr;
  VkDeviceMemory memory_ = nullptr;
  uint64_t bytes_ = 0;
  VkDeviceAddress address_ = 0;
  std::byte* mapped_ = nullptr;
};

// Many pieces of device memory, packed into few allocations: add() all, allocate() once, then range().
class Arena {
 public:
  // The number of the piece.
  uint32_t add(uint64_t bytes);
  uint64_t total_bytes() const { return total_bytes_; }
  // kNoMemory where the device has not enough; kUnsupported for a piece above its limit for one allocation.
  Result<void> allocate(const Context& context);
  Range range(uint32_t piece) const;
  std::span<const Buffer> blocks() const { return blocks_; }

 private:
  struct Piece {
    uint64_t bytes = 0;
    uint32_t block = 0;
    uint64_t offset = 0;
  };
  std::vector<Piece> pieces_;
  std::vector<Buffer> blocks_;
  uint64_t total_bytes_ = 0;
};

}  // namespace spillway::vulkan
