#include "backend/vulkan/memory.h"

#include <algorithm>

#include "base/assert.h"

namespace spillway::vulkan {
namespace {

// Large enough that few allocations are made, small enough to be found in a fragmented memory.
constexpr uint64_t kBlockBytes = uint64_t{1} << 30;

constexpr VkBufferUsageFlags kDeviceUsage =
    VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
    VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;

struct Created {
  VkBuffer buffer = nullptr;
  VkMemoryRequirements needs = {};
};

Result<Created> create_buffer(const Context& context, uint64_t bytes, VkBufferUsageFlags usage,
                              const void* next) {
  const uint32_t families[] = {context.physical().stream_family, context.link_family()};
  const bool shared = families[0] != families[1];
  const VkBufferCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .pNext = next,
      .size = bytes,
      .usage = usage,
      .sharingMode = shared ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
      .queueFamilyIndexCount = shared ? 2u : 0u,
      .pQueueFamilyIndices = families};
  Created created;
  SW_TRY(check(context.vk().vkCreateBuffer(context.device(), &info, nullptr, &created.buffer),
               fmt::format("make a buffer of {} bytes", bytes)));
  context.vk().vkGetBufferMemoryRequirements(context.device(), created.buffer, &created.needs);
  return created;
}

}  // namespace

Result<Buffer> Buffer::create(const Context& context, uint64_t bytes, MemoryUse use) {
  Buffer self;
  self.context_ = &context;
  self.bytes_ = bytes;
  SW_ASSIGN(const Created created, create_buffer(context, bytes, kDeviceUsage, nullptr));
  self.buffer_ = created.buffer;

  const VkMemoryPropertyFlags host =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags cached =
      use == MemoryUse::kReadback ? VkMemoryPropertyFlags{VK_MEMORY_PROPERTY_HOST_CACHED_BIT} : 0;
  const auto type =
      use == MemoryUse::kDevice
          ? context.memory_type(created.needs.memoryTypeBits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0,
                                Context::FromHeap::kDevice)
          : context.memory_type(created.needs.memoryTypeBits, host, cached, Context::FromHeap::kAny);
  if (!type) return unsupported("vulkan: {} has no fitting type of memory", context.physical().info.name);
  const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                           .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  const VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                         .pNext = &flags,
                                         .allocationSize = created.needs.size,
                                         .memoryTypeIndex = *type};
  SW_TRY(check(context.vk().vkAllocateMemory(context.device(), &allocate, nullptr, &self.memory_),
               fmt::format("allocate {} bytes", created.needs.size)));
  SW_TRY(
      check(context.vk().vkBindBufferMemory(context.device(), self.buffer_, self.memory_, 0), "bind memory"));
  const VkBufferDeviceAddressInfo address = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                             .buffer = self.buffer_};
  self.address_ = context.vk().vkGetBufferDeviceAddress(context.device(), &address);
  if (use != MemoryUse::kDevice) {
    void* mapped = nullptr;
    SW_TRY(check(context.vk().vkMapMemory(context.device(), self.memory_, 0, VK_WHOLE_SIZE, 0, &mapped),
                 "map memory"));
    self.mapped_ = static_cast<std::byte*>(mapped);
  }
  return self;
}

Result<Buffer> Buffer::import(const Context& context, std::span<const std::byte> memory) {
  constexpr auto kHandle = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  void* pointer = const_cast<std::byte*>(memory.data());  // only read: the buffer is a source of copies
  VkMemoryHostPointerPropertiesEXT properties = {.sType =
                                                     VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  SW_TRY(
      check(context.vk().vkGetMemoryHostPointerPropertiesEXT(context.device(), kHandle, pointer, &properties),
            "ask about host memory"));
  Buffer self;
  self.context_ = &context;
  self.bytes_ = memory.size();
  const VkExternalMemoryBufferCreateInfo external = {
      .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = kHandle};
  SW_ASSIGN(const Created created,
            create_buffer(context, memory.size(), VK_BUFFER_USAGE_TRANSFER_SRC_BIT, &external));
  self.buffer_ = created.buffer;
  const auto type = context.memory_type(properties.memoryTypeBits & created.needs.memoryTypeBits, 0, 0,
                                        Context::FromHeap::kAny);
  if (!type) return unsupported("no type of memory takes it");
  const VkImportMemoryHostPointerInfoEXT import = {
      .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
      .handleType = kHandle,
      .pHostPointer = pointer};
  const VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                         .pNext = &import,
                                         .allocationSize = memory.size(),
                                         .memoryTypeIndex = *type};
  SW_TRY(check(context.vk().vkAllocateMemory(context.device(), &allocate, nullptr, &self.memory_),
               fmt::format("import {} bytes of host memory", memory.size())));
  SW_TRY(
      check(context.vk().vkBindBufferMemory(context.device(), self.buffer_, self.memory_, 0), "bind memory"));
  return self;
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(buffer_, other.buffer_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  std::swap(address_, other.address_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

Buffer::~Buffer() {
  if (context_ == nullptr) return;
  context_->vk().vkDestroyBuffer(context_->device(), buffer_, nullptr);
  context_->vk().vkFreeMemory(context_->device(), memory_, nullptr);
}

Range Buffer::range(uint64_t offset, uint64_t bytes) const {
  SW_ASSERT(offset + bytes <= bytes_);
  return {buffer_, offset, bytes, address_ + offset, mapped_ == nullptr ? nullptr : mapped_ + offset};
}

uint32_t Arena::add(uint64_t bytes) {
  pieces_.push_back({.bytes = bytes});
  total_bytes_ += aligned(bytes);
  return static_cast<uint32_t>(pieces_.size() - 1);
}

Result<void> Arena::allocate(const Context& context) {
  const uint64_t most = context.physical().info.max_allocation_bytes;
  std::vector<uint64_t> blocks;
  for (Piece& piece : pieces_) {
    const uint64_t bytes = aligned(piece.bytes);
    if (bytes > most)
      return unsupported("vulkan: a matrix of {} bytes, but {} allocates at most {} at once", piece.bytes,
                         context.physical().info.name, most);
    if (blocks.empty() || blocks.back() + bytes > std::min(most, kBlockBytes)) blocks.push_back(0);
    piece.block = static_cast<uint32_t>(blocks.size() - 1);
    piece.offset = blocks.back();
    blocks.back() += bytes;
  }
  for (const uint64_t bytes : blocks) {
    SW_ASSIGN(Buffer buffer, Buffer::create(context, std::max(bytes, kAlignment), MemoryUse::kDevice));
    blocks_.push_back(std::move(buffer));
  }
  return {};
}

Range Arena::range(uint32_t piece) const {
  const Piece& p = pieces_[piece];
  return blocks_[p.block].range(p.offset, p.bytes);
}

}  // namespace spillway::vulkan
