// Compute pipelines, made when they are first used and kept on disk between runs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backend/vulkan/context.h"

namespace spillway::vulkan {

inline constexpr uint32_t kPushBytes = 128;  // the specification's least

class Pipelines {
 public:
  enum class OnDisk : uint8_t { kNo, kYes };
  Pipelines(const Context& context, OnDisk on_disk);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;

  // All of them take kPushBytes of push constants and nothing else.
  Result<void> create_layout();
  VkPipelineLayout layout() const { return layout_; }

  // The pipeline of a shader with its specialisation constants 0, 1, ...
  Result<VkPipeline> get(std::string_view shader, std::vector<uint32_t> constants);

 private:
  std::string cache_path() const;
  void load_cache();
  void save_cache() const;

  const Context& context_;
  const OnDisk on_disk_;
  VkPipelineLayout layout_ = nullptr;
  VkPipelineCache cache_ = nullptr;
  bool changed_ = false;
  std::map<std::pair<std::string, std::vector<uint32_t>>, VkPipeline, std::less<>> pipelines_;
};

}  // namespace spillway::vulkan
