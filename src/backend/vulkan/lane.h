// A queue with its command buffers and a timeline. Work is enqueued in lists and handed over in batches;
// batch n is done when the timeline reaches n.
//
// A list is either made anew each time, or kept: the command buffer of a kept list is found again by the
// list's bytes, and nothing is recorded a second time.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/vulkan/commands.h"

namespace spillway::vulkan {

class Lane {
 public:
  Lane(const Context& context, VkQueue queue, uint32_t family)
      : context_(context), queue_(queue), family_(family) {}
  ~Lane();
  Lane(const Lane&) = delete;
  Result<void> create(VkPipelineLayout layout);

  // The list to write to next, which begins behind a barrier.
  enum class Keep : uint8_t { kNo, kYes };
  CommandList& list(Keep keep);

  // What is enqueued from here on waits for a batch of another lane, which must have been submitted.
  void wait_for(const Lane& other, uint64_t batch);

  // The batch that what is enqueued now will belong to.
  uint64_t open_batch() const { return submitted_ + 1; }
  uint64_t submitted() const { return submitted_; }
  bool has_work() const { return !parts_.empty() || !list_.empty(); }

  // Hands over what was enqueued, if anything.
  Result<void> submit();
  // The last batch that is done. Asks the device.
  Result<uint64_t> completed();
  uint64_t known_completed() const { return completed_; }
  // Blocks until the batch is done; submits first where it is still open.
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
  VkPipelineLayout layout_ = nullptr;
  VkCommandPool pool_ = nullptr;
  VkSemaphore timeline_ = nullptr;
  uint64_t submitted_ = 0, completed_ = 0;
  CommandList list_;
  Keep list_keep_ = Keep::kNo;
  std::vector<Part> parts_;
  std::vector<VkCommandBuffer> free_;
  std::deque<std::pair<uint64_t, VkCommandBuffer>> in_use_;  // with its batch
  std::unordered_map<std::string, Kept> kept_;
  Result<void> recording_ = {};  // the first fault while recording, told by submit()
};

}  // namespace spillway::vulkan
