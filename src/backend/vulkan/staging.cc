#include "backend/vulkan/staging.h"

#include "base/assert.h"

namespace spillway::vulkan {

Result<void> Staging::create(const Context& context, uint64_t bytes) {
  bytes_ = aligned(bytes);
  SW_ASSIGN(buffer_, Buffer::create(context, bytes_, MemoryUse::kStaging));
  return {};
}

Result<Range> Staging::take(Lane& lane, uint64_t bytes) {
  const uint64_t wanted = aligned(bytes);
  SW_ASSERT(wanted <= bytes_);
  const uint64_t to_end = bytes_ - head_ % bytes_;
  const uint64_t skipped = wanted > to_end ? to_end : 0;  // a piece does not wrap
  const auto drop_done = [&] {
    while (!taken_.empty() && taken_.front().batch <= lane.known_completed()) {
      tail_ = taken_.front().end;
      taken_.pop_front();
    }
  };
  drop_done();
  while (head_ + skipped + wanted - tail_ > bytes_) {
    if (taken_.empty()) {  // only the skipped end is in the way
      tail_ = head_ + skipped;
      continue;
    }
    SW_TRY(lane.wait(taken_.front().batch));
    drop_done();
  }
  head_ += skipped;
  const Range range = buffer_.range(head_ % bytes_, bytes);
  head_ += wanted;
  taken_.push_back({head_, lane.open_batch()});
  return range;
}

}  // namespace spillway::vulkan
