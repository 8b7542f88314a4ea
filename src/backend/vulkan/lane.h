// A queue with its command buffers and a timeline. Work is enqueued in lists; a batch of lists is sealed, and
// handed over later; batch n is done when the timeline reaches n.
//
// A list is either made anew each time, or kept: the command buffer of a kept list is found again by the
// list's bytes, and nothing is recorded a second time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/vulkan/commands.h"

namespace spillway::vulkan {

class Lane {
 public:
  Lane(const Context& context, VkQueue queue, uint32_t family, const QueueStages& stages)
      : context_(context), queue_(queue), family_(family), stages_(stages) {}
  ~Lane();
  Lane(const Lane&) = delete;
  Result<void> create(VkPipelineLayout layout);

  // The list to write to next, which begins behind a barrier.
  enum class Keep : uint8_t { kNo, kYes };
  CommandList& list(Keep keep);

  // What is enqueued from here on waits for a sealed batch of another lane.
  void wait_for(const Lane& other, uint64_t batch);

  // The batch that what is enqueued now will belong to.
  uint64_t open_batch() const { return sealed_ + 1; }
  uint64_t sealed() const { return sealed_; }
  uint64_t submitted() const { return submitted_; }
  bool has_work() const { return !parts_.empty() || !list_.empty(); }
  uint64_t last_batch() const { return has_work() ? open_batch() : sealed_; }

  // Ends the open batch, if there is anything in it.
  Result<void> seal();
  // Hands over the oldest sealed batch. Requires: there is one. Where two lanes share a queue, the order in
  // which they were sealed must be kept.
  Result<void> submit_one();
  // How to hand over everything, called by wait().
  void set_flush(std::function<Result<void>()> flush) { flush_ = std::move(flush); }
  // The last batch that is done. Asks the device.
  Result<uint64_t> completed();
  uint64_t known_completed() const { return completed_; }
  // Blocks until the batch is done; hands it over first where that is missing.
  Result<void> wait(uint64_t batch);

 private:
  struct Part {  // a submission: waits first, if at all
    VkSemaphore wait = nullptr;
    uint64_t wait_value = 0;
    std::vector<VkCommandBuffer> buffers;
  };
  struct Kept {
    VkCommandBuffer buffer = nullptr;
    uint64_t last_batch = 0;
  };

  Result<VkCommandBuffer> recorded(std::string_view list);
  Result<void> close_list();

  const Context& context_;
  const VkQueue queue_;
  const uint32_t family_;
  const QueueStages stages_;
  VkPipelineLayout layout_ = nullptr;
  VkCommandPool pool_ = nullptr;
  VkSemaphore timeline_ = nullptr;
  uint64_t sealed_ = 0, submitted_ = 0, completed_ = 0;
  std::function<Result<void>()> flush_;
  CommandList list_;
  Keep list_keep_ = Keep::kNo;
  std::vector<Part> parts_;                     // of the open batch
  std::deque<std::vector<Part>> sealed_parts_;  // of batches submitted_ + 1 .. sealed_
  std::vector<VkCommandBuffer> free_;
  std::deque<std::pair<uint64_t, VkCommandBuffer>> in_use_;  // with its batch
  std::unordered_map<std::string, Kept> kept_;
  Result<void> recording_ = {};  // the first fault while recording, told by submit()
};

}  // namespace spillway::vulkan
