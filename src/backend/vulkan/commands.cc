#include "backend/vulkan/commands.h"

#include "backend/vulkan/pipelines.h"
#include "base/assert.h"

namespace spillway::vulkan {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }
  template <class T>
  T value() {
    T value;
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  std::string_view take(size_t n) {
    const auto bytes = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return bytes;
  }

 private:
  std::string_view rest_;
};

void record_barrier(const Context& context, VkCommandBuffer to, const QueueStages& from,
                    VkPipelineStageFlags stages, VkAccessFlags access) {
  const VkMemoryBarrier barrier = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = from.writes, .dstAccessMask = access};
  context.vk().vkCmdPipelineBarrier(to, from.stages, stages, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

}  // namespace

void CommandList::dispatch(VkPipeline pipeline, Groups groups, std::span<const std::byte> push) {
  SW_ASSERT(push.size() <= kPushBytes && push.size() % 4 == 0);
  append(Kind::kDispatch);
  append_value(pipeline);
  append_value(groups);
  append_value(static_cast<uint32_t>(push.size()));
  bytes_.append(reinterpret_cast<const char*>(push.data()), push.size());
}

void CommandList::copy(VkBuffer from, VkBuffer to, std::span<const VkBufferCopy> regions) {
  append(Kind::kCopy);
  append_value(from);
  append_value(to);
  append_value(static_cast<uint32_t>(regions.size()));
  for (const VkBufferCopy& region : regions) append_value(region);
}

void CommandList::copy(const Range& from, const Range& to) {
  SW_ASSERT(from.bytes <= to.bytes);
  const VkBufferCopy region = {from.offset, to.offset, from.bytes};
  copy(from.buffer, to.buffer, std::span(&region, 1));
}

void CommandList::update(const Range& to, std::span<const std::byte> bytes) {
  SW_ASSERT(bytes.size() <= 65536 && bytes.size() % 4 == 0 && bytes.size() <= to.bytes);
  append(Kind::kUpdate);
  append_value(to.buffer);
  append_value(to.offset);
  append_value(static_cast<uint32_t>(bytes.size()));
  bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void CommandList::fill(const Range& to, uint32_t word) {
  append(Kind::kFill);
  append_value(to.buffer);
  append_value(to.offset);
  append_value(to.bytes / 4 * 4);
  append_value(word);
}

void CommandList::timestamp(VkQueryPool pool, uint32_t query) {
  append(Kind::kTimestamp);
  append_value(pool);
  append_value(query);
}

void CommandList::record(std::string_view list, const Context& context, VkPipelineLayout layout,
                         const QueueStages& stages, VkCommandBuffer to) {
  const VolkDeviceTable& vk = context.vk();
  Reader reader(list);
  VkPipeline bound = nullptr;
  while (!reader.done()) {
    switch (reader.value<Kind>()) {
      case Kind::kBarrier:
        record_barrier(context, to, stages, stages.stages, stages.reads | stages.writes);
        break;
      case Kind::kHostBarrier:
        record_barrier(context, to, stages, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
        break;
      case Kind::kDispatch: {
        const auto pipeline = reader.value<VkPipeline>();
        const auto groups = reader.value<Groups>();
        const auto push_bytes = reader.value<uint32_t>();
        if (pipeline != bound) vk.vkCmdBindPipeline(to, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        bound = pipeline;
        vk.vkCmdPushConstants(to, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes,
                              reader.take(push_bytes).data());
        vk.vkCmdDispatch(to, groups.x, groups.y, groups.z);
        break;
      }
      case Kind::kCopy: {
        const auto from = reader.value<VkBuffer>();
        const auto into = reader.value<VkBuffer>();
        std::vector<VkBufferCopy> regions(reader.value<uint32_t>());
        for (VkBufferCopy& region : regions) region = reader.value<VkBufferCopy>();
        vk.vkCmdCopyBuffer(to, from, into, static_cast<uint32_t>(regions.size()), regions.data());
        break;
      }
      case Kind::kUpdate: {
        const auto into = reader.value<VkBuffer>();
        const auto offset = reader.value<uint64_t>();
        const auto n = reader.value<uint32_t>();
        vk.vkCmdUpdateBuffer(to, into, offset, n, reader.take(n).data());
        break;
      }
      case Kind::kFill: {
        const auto into = reader.value<VkBuffer>();
        const auto offset = reader.value<uint64_t>();
        const auto n = reader.value<uint64_t>();
        vk.vkCmdFillBuffer(to, into, offset, n, reader.value<uint32_t>());
        break;
      }
      case Kind::kTimestamp: {
        const auto pool = reader.value<VkQueryPool>();
        vk.vkCmdWriteTimestamp(to, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, pool, reader.value<uint32_t>());
        break;
      }
    }
  }
}

}  // namespace spillway::vulkan
