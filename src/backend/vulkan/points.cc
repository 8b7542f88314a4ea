#include "backend/vulkan/points.h"

namespace spillway::vulkan {

Result<void> Points::create() {
  // Queries are reset by the host: a transfer queue can't.
  if (timestamp_bits_ == 0 || !context_.physical().host_query_reset) return {};
  const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                      .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                      .queryCount = 2 * kRing};
  return check(context_.vk().vkCreateQueryPool(context_.device(), &info, nullptr, &queries_),
               "make time stamps");
}

Points::~Points() { context_.vk().vkDestroyQueryPool(context_.device(), queries_, nullptr); }

void Points::forget_reached() {
  while (!batches_.empty() && batches_.front() <= lane_.known_completed()) {
    batches_.pop_front();
    ++first_;
  }
}

void Points::begin() {
  begun_ = true;
  if (queries_ == nullptr) return;
  const uint64_t point = last_ + 1;
  // The stamps of the point a ring ago must be out of use; that it is not done yet happens only where nobody
  // waits for thousands of points.
  if (point > kRing) {
    if (const uint64_t batch = batch_of(point - kRing); batch != 0 && !lane_.wait(batch)) return;
  }
  const auto query = static_cast<uint32_t>(2 * (point % kRing));
  context_.vk().vkResetQueryPool(context_.device(), queries_, query, 2);
  lane_.list(Lane::Keep::kNo).timestamp(queries_, query);
}

uint64_t Points::mark() {
  begin_work();
  ++last_;
  if (queries_ != nullptr)
    lane_.list(Lane::Keep::kNo).timestamp(queries_, static_cast<uint32_t>(2 * (last_ % kRing) + 1));
  begun_ = false;
  forget_reached();
  batches_.push_back(lane_.last_batch());
  return last_;
}

uint64_t Points::batch_of(uint64_t point) const {
  if (point < first_) return 0;
  const uint64_t batch = batches_[point - first_];
  return batch <= lane_.known_completed() ? 0 : batch;
}

backend::Interval Points::interval(uint64_t point) const {
  if (queries_ == nullptr || point == 0) return {};
  uint64_t ticks[2] = {};
  if (context_.vk().vkGetQueryPoolResults(context_.device(), queries_,
                                          static_cast<uint32_t>(2 * (point % kRing)), 2, sizeof ticks, ticks,
                                          sizeof ticks[0], VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
    return {};
  const uint64_t mask = timestamp_bits_ >= 64 ? ~uint64_t{0} : (uint64_t{1} << timestamp_bits_) - 1;
  const auto ns = [&](uint64_t t) {
    return static_cast<uint64_t>(static_cast<double>(t & mask) * context_.physical().timestamp_ns);
  };
  return {ns(ticks[0]), ns(ticks[1])};
}

}  // namespace spillway::vulkan
