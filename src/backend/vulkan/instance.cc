#include "backend/vulkan/instance.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace spillway::vulkan {
namespace {

// group.comp's arrays: a count for each of 4096 experts and two sums for each of 256 threads.
constexpr uint32_t kSharedBytes = 4096 * 4 + 2 * 256 * 4;
constexpr uint32_t kMinPushBytes = 128;  // the specification's least
constexpr uint32_t kMinGroupThreads = 256;

// volkInitialize writes global pointers.
bool load_loader() {
  static std::once_flag once;
  static bool loaded = false;
  std::call_once(once, [] { loaded = volkInitialize() == VK_SUCCESS; });
  return loaded;
}

VkBool32 VKAPI_PTR on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  (*static_cast<std::function<void(std::string_view)>*>(user))(data->pMessage);
  return VK_FALSE;
}

bool has_extension(const std::vector<VkExtensionProperties>& extensions, const char* name) {
  return std::any_of(extensions.begin(), extensions.end(),
                     [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
}

void choose_queues(PhysicalDevice& device) {
  uint32_t n = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device.handle, &n, nullptr);
  std::vector<VkQueueFamilyProperties> families(n);
  vkGetPhysicalDeviceQueueFamilyProperties(device.handle, &n, families.data());
  std::optional<uint32_t> stream;
  for (uint32_t i = 0; i < n; ++i) {
    const VkQueueFlags flags = families[i].queueFlags;
    if (families[i].queueCount == 0) continue;
    if ((flags & VK_QUEUE_COMPUTE_BIT) != 0) {
      if (!stream) stream = i;
    } else if ((flags & VK_QUEUE_TRANSFER_BIT) != 0 && (flags & VK_QUEUE_GRAPHICS_BIT) == 0 &&
               !device.link_family) {
      device.link_family = i;
      device.link_timestamp_bits = families[i].timestampValidBits;
    }
  }
  if (!stream) {
    device.unusable = "it has no compute queue";
    return;
  }
  device.stream_family = *stream;
  device.stream_timestamp_bits = families[*stream].timestampValidBits;
}

void read_memory(PhysicalDevice& device, bool has_budget) {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 memory = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                              has_budget ? &budget : nullptr};
  vkGetPhysicalDeviceMemoryProperties2(device.handle, &memory);
  device.memory = memory.memoryProperties;
  for (uint32_t i = 0; i < device.memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = device.memory.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0 || heap.size <= device.info.memory_bytes)
      continue;
    device.memory_heap = i;
    device.info.memory_bytes = heap.size;
  }
  device.info.available_bytes = device.info.memory_bytes;
  if (!has_budget) return;
  const uint64_t free = budget.heapBudget[device.memory_heap], used = budget.heapUsage[device.memory_heap];
  device.info.available_bytes = std::min(device.info.memory_bytes, free > used ? free - used : 0);
}

PhysicalDevice describe(VkPhysicalDevice handle, uint32_t index) {
  PhysicalDevice device;
  device.handle = handle;
  uint32_t n = 0;
  vkEnumerateDeviceExtensionProperties(handle, nullptr, &n, nullptr);
  std::vector<VkExtensionProperties> extensions(n);
  vkEnumerateDeviceExtensionProperties(handle, nullptr, &n, extensions.data());

  VkPhysicalDeviceProperties basic;
  vkGetPhysicalDeviceProperties(handle, &basic);
  device.api_version = basic.apiVersion;
  device.info.id = fmt::format("vulkan:{}", index);
  device.info.name = basic.deviceName;
  device.vendor = basic.vendorID;
  device.device = basic.deviceID;
  std::memcpy(device.cache_id, basic.pipelineCacheUUID, VK_UUID_SIZE);
  device.info.software = basic.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  device.info.unified_memory =
      device.info.software || basic.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  if (basic.apiVersion < VK_API_VERSION_1_2) {
    device.unusable =
        fmt::format("its driver offers Vulkan {}.{}, need 1.2", VK_API_VERSION_MAJOR(basic.apiVersion),
                    VK_API_VERSION_MINOR(basic.apiVersion));
    read_memory(device, false);
    return device;
  }

  device.host_import = has_extension(extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host_import = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  const bool has_dot = has_extension(extensions, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  VkPhysicalDeviceShaderIntegerDotProductProperties dot = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES};
  void* more_properties = nullptr;
  if (device.host_import) more_properties = &host_import;
  if (has_dot) {
    dot.pNext = more_properties;
    more_properties = &dot;
  }
  VkPhysicalDeviceVulkan12Properties v12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES,
                                            more_properties};
  VkPhysicalDeviceVulkan11Properties v11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, &v12};
  VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &v11};
  vkGetPhysicalDeviceProperties2(handle, &properties);
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot_feature = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  VkPhysicalDeviceVulkan12Features features12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                                 has_dot ? &dot_feature : nullptr};
  VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &features12};
  vkGetPhysicalDeviceFeatures2(handle, &features);

  device.info.driver = fmt::format("{} {}", v12.driverName, v12.driverInfo);
  device.info.max_allocation_bytes = v11.maxMemoryAllocationSize;
  device.host_import_alignment = host_import.minImportedHostPointerAlignment;
  device.host_query_reset = features12.hostQueryReset == VK_TRUE;
  device.integer_dot = has_dot && dot_feature.shaderIntegerDotProduct == VK_TRUE;
  device.fast_integer_dot =
      device.integer_dot && dot.integerDotProduct4x8BitPackedSignedAccelerated == VK_TRUE;
  device.round_to_even = v12.shaderRoundingModeRTEFloat32 == VK_TRUE;
  device.keep_special = v12.shaderSignedZeroInfNanPreserveFloat32 == VK_TRUE;
  device.timestamp_ns = basic.limits.timestampPeriod;
  read_memory(device, has_extension(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME));
  choose_queues(device);
  device.info.copy_queue = device.link_family.has_value();

  const VkPhysicalDeviceLimits& limits = basic.limits;
  if (features12.bufferDeviceAddress != VK_TRUE)
    device.unusable = "its driver lacks buffer device addresses";
  else if (features12.timelineSemaphore != VK_TRUE)
    device.unusable = "its driver lacks timeline semaphores";
  else if (limits.maxComputeSharedMemorySize < kSharedBytes)
    device.unusable = fmt::format("it has {} bytes of shared memory a workgroup, need {}",
                                  limits.maxComputeSharedMemorySize, kSharedBytes);
  else if (limits.maxComputeWorkGroupInvocations < kMinGroupThreads)
    device.unusable = fmt::format("it has {} threads a workgroup, need {}",
                                  limits.maxComputeWorkGroupInvocations, kMinGroupThreads);
  else if (limits.maxPushConstantsSize < kMinPushBytes)
    device.unusable = "it offers too few push constants";

  auto& notes = device.info.notes;
  if (!device.unusable.empty()) notes.push_back("It cannot be used: " + device.unusable + ".");
  if (!device.info.copy_queue) notes.push_back("No separate copy queue: copies run between operations.");
  if (!device.host_import)
    notes.push_back("Host memory cannot be imported: copies go through a staging buffer.");
  if (!device.fast_integer_dot)
    notes.push_back("No integer dot product in hardware: products take several instructions for it.");
  if (!device.round_to_even)
    notes.push_back("Rounding to nearest even cannot be asked for: the self-test decides.");
  if (!device.keep_special)
    notes.push_back("NaN and signed zeros cannot be asked for: the self-test decides.");
  return device;
}

}  // namespace

Result<std::unique_ptr<Instance>> Instance::create(const VulkanOptions& options) {
  if (!load_loader())
    return fail(Error::Kind::kNotFound, "vulkan: there is no loader (Debian package libvulkan1)");
  if (volkGetInstanceVersion() < VK_API_VERSION_1_2)
    return fail(Error::Kind::kNotFound, "vulkan: the loader is older than Vulkan 1.2");

  std::unique_ptr<Instance> self(new Instance);
  self->on_validation_ = options.on_validation;
  const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                         .pApplicationName = "spillway",
                                         .apiVersion = VK_API_VERSION_1_2};
  const VkDebugUtilsMessengerCreateInfoEXT messenger = {
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
      .messageSeverity =
          VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
      .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                     VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                     VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
      .pfnUserCallback = on_message,
      .pUserData = &self->on_validation_};
  const char* layer = "VK_LAYER_KHRONOS_validation";
  const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  VkInstanceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &application};
  if (self->on_validation_) {
    create.pNext = &messenger;
    create.enabledLayerCount = 1;
    create.ppEnabledLayerNames = &layer;
    create.enabledExtensionCount = 1;
    create.ppEnabledExtensionNames = &extension;
  }
  const VkResult result = vkCreateInstance(&create, nullptr, &self->instance_);
  if (result == VK_ERROR_LAYER_NOT_PRESENT)
    return fail(Error::Kind::kNotFound,
                "vulkan: there is no validation layer (Debian package vulkan-validationlayers)");
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    return fail(Error::Kind::kNotFound, "vulkan: there is no driver");
  SW_TRY(check(result, "create an instance"));
  volkLoadInstanceOnly(self->instance_);
  self->destroy_messenger_ = vkDestroyDebugUtilsMessengerEXT;
  if (self->on_validation_)
    SW_TRY(check(vkCreateDebugUtilsMessengerEXT(self->instance_, &messenger, nullptr, &self->messenger_),
                 "listen to the validation layer"));
  return self;
}

Instance::~Instance() {
  if (messenger_ != nullptr) destroy_messenger_(instance_, messenger_, nullptr);
  if (instance_ != nullptr) vkDestroyInstance(instance_, nullptr);
}

std::vector<PhysicalDevice> Instance::devices() const {
  uint32_t n = 0;
  if (vkEnumeratePhysicalDevices(instance_, &n, nullptr) < 0) return {};
  std::vector<VkPhysicalDevice> handles(n);
  if (vkEnumeratePhysicalDevices(instance_, &n, handles.data()) < 0) return {};
  std::vector<PhysicalDevice> devices;
  devices.reserve(n);
  for (uint32_t i = 0; i < n; ++i) devices.push_back(describe(handles[i], i));
  return devices;
}

std::vector<backend::DeviceInfo> vulkan_devices() {
  std::vector<backend::DeviceInfo> infos;
  if (const auto instance = Instance::create({}))
    for (PhysicalDevice& device : (*instance)->devices()) infos.push_back(std::move(device.info));
  return infos;
}

}  // namespace spillway::vulkan
