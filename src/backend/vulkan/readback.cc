#include "backend/vulkan/readback.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace spillway::vulkan {

void row_regions(std::vector<VkBufferCopy>& regions, uint64_t from, uint64_t from_stride, uint64_t to,
                 uint64_t to_stride, uint64_t row_bytes, uint32_t rows) {
  regions.clear();
  if (from_stride == row_bytes && to_stride == row_bytes) {
    regions.push_back({from, to, row_bytes * rows});
    return;
  }
  for (uint32_t r = 0; r < rows; ++r)
    regions.push_back({from + r * from_stride, to + r * to_stride, row_bytes});
}

Result<void> Readback::create(const Context& context, uint64_t bytes) {
  bytes_ = aligned(bytes);
  SW_ASSIGN(buffer_, Buffer::create(context, bytes_, MemoryUse::kReadback));
  return {};
}

Result<void> Readback::read(Lane& lane, Lane::Keep keep, const Rows& rows) {
  const uint64_t bytes = aligned(rows.rows * rows.row_bytes);
  SW_ASSERT(bytes <= bytes_);
  if (used_ + bytes > bytes_) {
    SW_TRY(lane.wait(lane.last_batch()));
    deliver(lane);
  }
  row_regions(regions_, rows.from.offset, rows.from_stride, used_, rows.row_bytes, rows.row_bytes, rows.rows);
  CommandList& list = lane.list(keep);
  list.barrier();
  list.copy(rows.from.buffer, buffer_.all().buffer, regions_);
  list.host_barrier();
  pending_.push_back({lane.open_batch(), used_, rows});
  used_ += bytes;
  return {};
}

void Readback::deliver(const Lane& lane) {
  std::erase_if(pending_, [&](const Pending& pending) {
    if (pending.batch > lane.known_completed()) return false;
    const std::byte* from = buffer_.all().mapped + pending.offset;
    for (uint32_t r = 0; r < pending.rows.rows; ++r)
      std::memcpy(pending.rows.to + r * pending.rows.to_stride, from + r * pending.rows.row_bytes,
                  pending.rows.row_bytes);
    return true;
  });
  if (pending_.empty()) used_ = 0;
}

}  // namespace spillway::vulkan
