#include "backend/vulkan/pipelines.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "backend/vulkan/shaders.h"

namespace spillway::vulkan {
namespace {

namespace fs = std::filesystem;

// Drivers check only the header of what they are given, so the rest gets a sum of its own (FNV-1a), kept
// behind the data.
uint64_t sum_of(const std::vector<char>& bytes) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (const char c : bytes) sum = (sum ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return sum;
}

fs::path cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return fs::path(cache) / "spillway";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fs::path(home) / ".cache" / "spillway";
  return {};
}

}  // namespace

Pipelines::Pipelines(const Context& context, OnDisk on_disk) : context_(context), on_disk_(on_disk) {}

Result<void> Pipelines::create_layout() {
  const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                           .pushConstantRangeCount = 1,
                                           .pPushConstantRanges = &push};
  SW_TRY(check(context_.vk().vkCreatePipelineLayout(context_.device(), &info, nullptr, &layout_),
               "make a pipeline layout"));
  load_cache();
  return {};
}

Pipelines::~Pipelines() {
  if (changed_ && on_disk_ == OnDisk::kYes) save_cache();
  for (const auto& [key, pipeline] : pipelines_)
    context_.vk().vkDestroyPipeline(context_.device(), pipeline, nullptr);
  context_.vk().vkDestroyPipelineCache(context_.device(), cache_, nullptr);
  context_.vk().vkDestroyPipelineLayout(context_.device(), layout_, nullptr);
}

Result<VkPipeline> Pipelines::get(std::string_view shader, std::vector<uint32_t> constants) {
  auto key = std::pair(std::string(shader), std::move(constants));
  if (const auto found = pipelines_.find(key); found != pipelines_.end()) return found->second;

  const std::vector<uint32_t> words = with_float_controls(
      shader_words(shader),
      {.round_to_even = context_.physical().round_to_even, .keep_special = context_.physical().keep_special});
  const VkShaderModuleCreateInfo module_info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                                .codeSize = words.size() * 4,
                                                .pCode = words.data()};
  VkShaderModule module = nullptr;
  SW_TRY(check(context_.vk().vkCreateShaderModule(context_.device(), &module_info, nullptr, &module),
               fmt::format("load shader '{}'", shader)));
  std::vector<VkSpecializationMapEntry> entries;
  entries.reserve(key.second.size());
  for (uint32_t i = 0; i < key.second.size(); ++i) entries.push_back({i, i * 4, 4});
  const VkSpecializationInfo special = {.mapEntryCount = static_cast<uint32_t>(entries.size()),
                                        .pMapEntries = entries.data(),
                                        .dataSize = key.second.size() * 4,
                                        .pData = key.second.data()};
  const VkComputePipelineCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
      .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = module,
                .pName = "main",
                .pSpecializationInfo = &special},
      .layout = layout_};
  VkPipeline pipeline = nullptr;
  const VkResult result =
      context_.vk().vkCreateComputePipelines(context_.device(), cache_, 1, &info, nullptr, &pipeline);
  context_.vk().vkDestroyShaderModule(context_.device(), module, nullptr);
  SW_TRY(check(result, fmt::format("compile shader '{}'", shader)));
  pipelines_.emplace(std::move(key), pipeline);
  changed_ = true;
  return pipeline;
}

std::string Pipelines::cache_path() const {
  const fs::path folder = cache_folder();
  if (folder.empty()) return {};
  std::string id;
  for (const uint8_t byte : context_.physical().cache_id) id += fmt::format("{:02x}", byte);
  return (folder / fmt::format("vulkan-{:04x}-{:04x}-{}.pipelines", context_.physical().vendor,
                               context_.physical().device, id))
      .string();
}

void Pipelines::load_cache() {
  std::vector<char> bytes;
  if (on_disk_ == OnDisk::kYes) {
    std::ifstream file(cache_path(), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
    uint64_t sum = 0;
    if (bytes.size() > sizeof sum) {
      std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
      bytes.resize(bytes.size() - sizeof sum);
    }
    if (sum_of(bytes) != sum) bytes.clear();
  }
  VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                    .initialDataSize = bytes.size(),
                                    .pInitialData = bytes.data()};
  if (context_.vk().vkCreatePipelineCache(context_.device(), &info, nullptr, &cache_) >= 0) return;
  cache_ = nullptr;  // a cache only saves time
}

// Written beside and renamed, so that two programs at once leave a whole file. Faults leave none.
void Pipelines::save_cache() const {
  const std::string path = cache_path();
  size_t size = 0;
  if (path.empty() || cache_ == nullptr ||
      context_.vk().vkGetPipelineCacheData(context_.device(), cache_, &size, nullptr) < 0)
    return;
  std::vector<char> bytes(size);
  if (context_.vk().vkGetPipelineCacheData(context_.device(), cache_, &size, bytes.data()) < 0) return;
  bytes.resize(size);
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  const std::string draft = fmt::format("{}.{:x}", path, reinterpret_cast<uintptr_t>(this));
  {
    std::ofstream file(draft, std::ios::binary);
    const uint64_t sum = sum_of(bytes);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.write(reinterpret_cast<const char*>(&sum), sizeof sum);
    if (!file) return;
  }
  fs::rename(draft, path, error);
  if (error) fs::remove(draft, error);
}

}  // namespace spillway::vulkan
