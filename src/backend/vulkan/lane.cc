#include "backend/vulkan/lane.h"

#include <algorithm>

namespace spillway::vulkan {
namespace {

// A model of 100 layers keeps a few lists a layer; beyond that the lists can't be those of single-token
// steps.
constexpr size_t kMostKept = 2048;

// A batch is a layer or a step; a software device may take a minute for a long prompt's.
constexpr uint64_t kPatienceNs = uint64_t{600} * 1'000'000'000;

}  // namespace

Result<void> Lane::create(VkPipelineLayout layout) {
  layout_ = layout;
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                        .queueFamilyIndex = family_};
  SW_TRY(check(context_.vk().vkCreateCommandPool(context_.device(), &pool, nullptr, &pool_),
               "make a command pool"));
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  return check(context_.vk().vkCreateSemaphore(context_.device(), &semaphore, nullptr, &timeline_),
               "make a timeline");
}

Lane::~Lane() {
  context_.vk().vkDestroySemaphore(context_.device(), timeline_, nullptr);
  context_.vk().vkDestroyCommandPool(context_.device(), pool_, nullptr);
}

CommandList& Lane::list(Keep keep) {
  if (!list_.empty() && keep != list_keep_)
    if (auto closed = close_list(); !closed && recording_) recording_ = closed;
  list_keep_ = keep;
  if (list_.empty()) list_.barrier();
  return list_;
}

void Lane::wait_for(const Lane& other, uint64_t batch) {
  if (batch <= other.completed_) return;
  if (auto closed = close_list(); !closed && recording_) recording_ = closed;
  parts_.push_back({.wait = other.timeline_, .wait_value = batch});
}

Result<VkCommandBuffer> Lane::recorded(std::string_view list) {
  VkCommandBuffer buffer = nullptr;
  if (!free_.empty()) {
    buffer = free_.back();
    free_.pop_back();
  } else {
    const VkCommandBufferAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                  .commandPool = pool_,
                                                  .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                  .commandBufferCount = 1};
    SW_TRY(check(context_.vk().vkAllocateCommandBuffers(context_.device(), &allocate, &buffer),
                 "make a command buffer"));
  }
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  SW_TRY(check(context_.vk().vkBeginCommandBuffer(buffer, &begin), "begin a command buffer"));
  CommandList::record(list, context_, layout_, stages_, buffer);
  SW_TRY(check(context_.vk().vkEndCommandBuffer(buffer), "end a command buffer"));
  return buffer;
}

Result<void> Lane::close_list() {
  if (list_.empty()) return {};
  if (parts_.empty()) parts_.emplace_back();
  VkCommandBuffer buffer = nullptr;
  Kept* kept = nullptr;
  if (list_keep_ == Keep::kYes) {
    const auto found = kept_.find(std::string(list_.bytes()));
    if (found != kept_.end()) {
      kept = &found->second;
    } else if (kept_.size() < kMostKept) {
      SW_ASSIGN(const VkCommandBuffer made, recorded(list_.bytes()));
      kept = &kept_.emplace(list_.bytes(), Kept{.buffer = made}).first->second;
    }
    // One that is still at work can't be handed over a second time.
    if (kept != nullptr && kept->last_batch > completed_) kept = nullptr;
  }
  if (kept != nullptr) {
    kept->last_batch = open_batch();
    buffer = kept->buffer;
  } else {
    SW_ASSIGN(buffer, recorded(list_.bytes()));
    in_use_.emplace_back(open_batch(), buffer);
  }
  parts_.back().buffers.push_back(buffer);
  list_.clear();
  return {};
}

Result<void> Lane::seal() {
  if (!has_work()) return {};
  SW_TRY(close_list());
  SW_TRY(recording_);
  sealed_parts_.push_back(std::move(parts_));
  parts_.clear();
  ++sealed_;
  return {};
}

Result<void> Lane::submit_one() {
  const std::vector<Part> parts = std::move(sealed_parts_.front());
  sealed_parts_.pop_front();
  const uint64_t batch = submitted_ + 1;
  std::vector<VkTimelineSemaphoreSubmitInfo> timelines(parts.size());
  std::vector<VkSubmitInfo> infos(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const uint32_t waits = part.wait != nullptr ? 1 : 0, signals = i + 1 == parts.size() ? 1 : 0;
    timelines[i] = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                    .waitSemaphoreValueCount = waits,
                    .pWaitSemaphoreValues = &part.wait_value,
                    .signalSemaphoreValueCount = signals,
                    .pSignalSemaphoreValues = &batch};
    infos[i] = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                .pNext = &timelines[i],
                .waitSemaphoreCount = waits,
                .pWaitSemaphores = &part.wait,
                .pWaitDstStageMask = &stages_.stages,
                .commandBufferCount = static_cast<uint32_t>(part.buffers.size()),
                .pCommandBuffers = part.buffers.data(),
                .signalSemaphoreCount = signals,
                .pSignalSemaphores = &timeline_};
  }
  SW_TRY(
      check(context_.vk().vkQueueSubmit(queue_, static_cast<uint32_t>(infos.size()), infos.data(), nullptr),
            "submit work"));
  submitted_ = batch;
  return {};
}

Result<uint64_t> Lane::completed() {
  if (completed_ < submitted_) {
    SW_TRY(check(context_.vk().vkGetSemaphoreCounterValue(context_.device(), timeline_, &completed_),
                 "ask how far the work is"));
    while (!in_use_.empty() && in_use_.front().first <= completed_) {
      free_.push_back(in_use_.front().second);
      in_use_.pop_front();
    }
  }
  return completed_;
}

Result<void> Lane::wait(uint64_t batch) {
  if (batch <= completed_) return {};
  if (batch > submitted_) SW_TRY(flush_());
  batch = std::min(batch, submitted_);  // there was nothing to submit
  const VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                    .semaphoreCount = 1,
                                    .pSemaphores = &timeline_,
                                    .pValues = &batch};
  const VkResult result = context_.vk().vkWaitSemaphores(context_.device(), &wait, kPatienceNs);
  if (result == VK_TIMEOUT)
    return fail(Error::Kind::kIo, "vulkan: {} has not finished its work within {} s",
                context_.physical().info.name, kPatienceNs / 1'000'000'000);
  SW_TRY(check(result, "wait for the device"));
  SW_TRY(completed());
  return {};
}

}  // namespace spillway::vulkan
