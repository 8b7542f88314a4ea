// The two queues as device.h describes them. Where copies have no queue of their own they are enqueued in the
// stream, in the order of the calls: then every point of the link is a point of the stream too, and nothing
// ever waits for the other.
#include <algorithm>
#include <cstring>

#include "backend/vulkan/device.h"
#include "base/assert.h"

namespace spillway::vulkan {

using namespace backend;

Result<void> VulkanDevice::seal(Lane& lane) {
  const uint64_t before = lane.sealed();
  SW_TRY(lane.seal());
  if (lane.sealed() != before) sealed_.push_back(&lane);
  return {};
}

Result<void> VulkanDevice::flush() {
  SW_TRY(seal(stream_));
  SW_TRY(seal(link_));  // the begun copy of an expert that is larger than the staging memory
  for (; !sealed_.empty(); sealed_.pop_front()) SW_TRY(sealed_.front()->submit_one());
  return {};
}

void VulkanDevice::submit() {
  if (!lost_) keep(flush());
}

Point VulkanDevice::mark() {
  if (lost_) return {};
  return {Point::Queue::kStream, stream_points_.mark()};
}

void VulkanDevice::stream_wait(Point link_point) {
  SW_ASSERT(link_point.queue == Point::Queue::kLink || link_point.value == 0);
  if (lost_ || !context_->link_beside() || link_point.value == 0) return;
  stream_.wait_for(link_, link_points_.batch_of(link_point.value));
}

bool VulkanDevice::reached(Point point) {
  if (lost_) return true;  // nobody should go on asking
  const bool beside = point.queue == Point::Queue::kLink && context_->link_beside();
  if (const auto done = (beside ? link_ : stream_).completed(); !done) {
    lose(done.error());
    return true;
  }
  return (point.queue == Point::Queue::kLink ? link_points_ : stream_points_).batch_of(point.value) == 0;
}

Result<void> VulkanDevice::wait(Point point) {
  if (!lost_) keep(flush());
  SW_TRY(state());
  Lane& lane = point.queue == Point::Queue::kLink && context_->link_beside() ? link_ : stream_;
  const Points& points = point.queue == Point::Queue::kLink ? link_points_ : stream_points_;
  keep(lane.wait(points.batch_of(point.value)));
  SW_TRY(state());
  readback_.deliver(stream_);
  return {};
}

Result<void> VulkanDevice::finish() {
  if (to_host_ && !lost_) stream_list(Lane::Keep::kNo).host_barrier();
  to_host_ = false;
  if (!lost_) keep(flush());
  SW_TRY(state());
  keep(stream_.wait(stream_.last_batch()));
  SW_TRY(state());
  readback_.deliver(stream_);
  return {};
}

Interval VulkanDevice::interval(Point point) {
  if (lost_) return {};
  return (point.queue == Point::Queue::kLink ? link_points_ : stream_points_).interval(point.value);
}

Point VulkanDevice::copy_expert(uint32_t pool, uint32_t slot, const ExpertMatrices& from, Point after) {
  if (lost_) return {};
  const bool beside = context_->link_beside();
  Lane& lane = beside ? link_ : stream_;
  if (beside) {
    // A point of the open batch ends the batch, so that the copy can begin there; it is handed over later.
    const uint64_t batch = stream_points_.batch_of(after.value);
    if (batch > stream_.sealed() && !keep(seal(stream_))) return {};
    link_.wait_for(stream_, batch);
  }
  link_points_.begin_work();
  const ExpertLayout& layout = spec_.pools[pool].layout;
  const Range whole = plan_->experts.range(plan_->slot[pool][slot]);
  lane.list(Lane::Keep::kNo).barrier();
  const std::pair<const Matrix*, uint64_t> parts[] = {
      {&from.gate, 0}, {&from.up, layout.up_offset()}, {&from.down, layout.down_offset()}};
  for (const auto& [matrix, offset] : parts) {
    Range to = whole;
    to.offset += offset;
    to.bytes -= offset;
    copy_matrix(lane, link_points_, link_staging_, *matrix, to);
    if (lost_) return {};
  }
  const Point point = {Point::Queue::kLink, link_points_.mark()};
  if (!beside) return point;
  const bool at_once = sealed_.empty();
  if (!keep(seal(link_))) return {};
  if (at_once) {
    sealed_.clear();
    keep(link_.submit_one());
  }
  return point;
}

void VulkanDevice::copy_kv_page(uint32_t from, uint32_t to) {
  if (lost_ || plan_->page.empty()) return;
  CommandList& list = stream_list(Lane::Keep::kNo);
  list.barrier();
  list.copy(plan_->kv.range(plan_->page[from]), plan_->kv.range(plan_->page[to]));
}

void VulkanDevice::write_buffer(BufferId id, const float* from) {
  if (lost_) return;
  const Range to = piece(plan_->buffer[id]);
  stream_list(Lane::Keep::kNo).barrier();
  keep(write_blocking(to, std::as_bytes(std::span(from, size_t{rows_} * spec_.sizes.buffer_widths[id]))));
}

void VulkanDevice::read_buffer(BufferId id, float* to) {
  if (lost_) return;
  const uint64_t row = uint64_t{spec_.sizes.buffer_widths[id]} * 4;
  stream_points_.begin_work();
  keep(readback_.read(stream_, Lane::Keep::kNo,
                      {.from = piece(plan_->buffer[id]),
                       .from_stride = row,
                       .rows = rows_,
                       .row_bytes = row,
                       .to = reinterpret_cast<std::byte*>(to),
                       .to_stride = row}));
}

}  // namespace spillway::vulkan
