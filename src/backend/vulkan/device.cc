// Opening a device, and what happens at load.
#include "backend/vulkan/device.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels.h"
#include "base/assert.h"
#include "numerics/layout.h"

namespace spillway::vulkan {

using namespace backend;

namespace {

// Large enough that a copy's fixed cost (some 10 us) is small beside it at 25 GB/s.
constexpr uint64_t kStagingBytes = uint64_t{16} << 20;

std::span<const std::byte> as_bytes(const auto& values) { return std::as_bytes(std::span(values)); }

}  // namespace

Result<std::unique_ptr<Device>> open_vulkan(uint32_t index, const VulkanOptions& options) {
  return VulkanDevice::open(index, options);
}

Result<std::unique_ptr<Device>> VulkanDevice::open(uint32_t index, const VulkanOptions& options) {
  SW_ASSIGN(std::unique_ptr<Instance> instance, Instance::create(options));
  std::vector<PhysicalDevice> devices = instance->devices();
  if (index >= devices.size())
    return fail(Error::Kind::kNotFound, "vulkan:{}: there are {} Vulkan devices", index, devices.size());
  SW_ASSIGN(std::unique_ptr<Context> context,
            Context::create(std::move(instance), std::move(devices[index]), options));
  std::unique_ptr<VulkanDevice> self(new VulkanDevice(std::move(context), options));
  SW_TRY(self->create());
  return self;
}

VulkanDevice::VulkanDevice(std::unique_ptr<Context> context, const VulkanOptions& options)
    : context_(std::move(context)),
      options_(options),
      pipelines_(*context_, options.pipeline_cache ? Pipelines::OnDisk::kYes : Pipelines::OnDisk::kNo),
      stream_(*context_, context_->stream_queue(), context_->physical().stream_family, {}),
      link_(*context_, context_->link_queue(), context_->link_family(),
            context_->physical().link_family ? kCopiesOnly : QueueStages{}),
      stream_points_(*context_, stream_, context_->physical().stream_timestamp_bits),
      link_points_(*context_, context_->link_beside() ? link_ : stream_,
                   context_->physical().link_family ? context_->physical().link_timestamp_bits
                                                    : context_->physical().stream_timestamp_bits) {}

Result<void> VulkanDevice::create() {
  SW_TRY(pipelines_.create_layout());
  SW_TRY(stream_.create(pipelines_.layout()));
  SW_TRY(link_.create(pipelines_.layout()));
  stream_.set_flush([this] { return flush(); });
  link_.set_flush([this] { return flush(); });
  SW_TRY(stream_points_.create());
  return link_points_.create();
}

VulkanDevice::~VulkanDevice() { context_->vk().vkDeviceWaitIdle(context_->device()); }

uint64_t VulkanDevice::staging_bytes() const {
  uint64_t bytes = kStagingBytes;
  const auto group_bytes = [](const WeightShape& shape) {
    return numerics::group_bytes(shape.type, shape.cols);
  };
  for (const WeightShape& shape : spec_.weights)
    if (shape.on_device) bytes = std::max(bytes, group_bytes(shape));
  for (const PoolSpec& pool : spec_.pools)
    for (const WeightShape* shape : {&pool.layout.gate, &pool.layout.up, &pool.layout.down})
      bytes = std::max(bytes, group_bytes(*shape));
  return std::max(bytes, (3 * uint64_t{plan_->max_rows} + plan_->max_step_pages) * 4);
}

uint64_t VulkanDevice::readback_bytes() const {
  uint64_t widest = spec_.sizes.hidden;
  for (const uint32_t width : spec_.sizes.buffer_widths) widest = std::max<uint64_t>(widest, width);
  return std::max({uint64_t{1} << 20, spec_.logits_rows * uint64_t{spec_.vocabulary} * 4,
                   spec_.sizes.max_rows * widest * 4});
}

Result<void> VulkanDevice::prepare(const DeviceSpec& spec) {
  SW_ASSERT(!plan_);
  SW_TRY(check_spec(spec));
  auto allocated = allocate(spec);
  if (!allocated) plan_.reset();  // one may try again with less
  SW_TRY(allocated);
  return fill_tables();
}

Result<void> VulkanDevice::allocate(const DeviceSpec& spec) {
  plan_.emplace(spec);
  const uint64_t needed = plan_->bytes().total(), free = info().available_bytes;
  if (needed > free)
    return fail(Error::Kind::kNoMemory, "{} ({}): {} bytes are needed, {} are free", info().id, info().name,
                needed, free);
  spec_ = spec;
  for (Arena* arena : {&plan_->weights, &plan_->kv, &plan_->scratch, &plan_->experts})
    SW_TRY(arena->allocate(*context_));
  SW_TRY(stream_staging_.create(*context_, staging_bytes()));
  SW_TRY(link_staging_.create(*context_, staging_bytes()));
  SW_TRY(readback_.create(*context_, readback_bytes()));
  SW_ASSIGN(routed_,
            Buffer::create(*context_,
                           aligned(plan_->max_pairs * uint64_t{4}) +
                               aligned(uint64_t{plan_->max_rows} * spec.sizes.hidden * 4) + kAlignment,
                           MemoryUse::kReadback));
  chosen_pairs_.assign(spec.layers.size(), 0);
  SW_ASSIGN(chosen_,
            Buffer::create(*context_, spec.layers.size() * uint64_t{plan_->max_pairs} * 4 + kAlignment,
                           MemoryUse::kReadback));
  return {};
}

Result<void> VulkanDevice::fill_tables() {
  std::vector<uint64_t> addresses;
  for (const uint32_t page : plan_->page) addresses.push_back(plan_->kv.range(page).address);
  SW_TRY(write_blocking(piece(plan_->page_addresses), as_bytes(addresses)));
  for (size_t pool = 0; pool < spec_.pools.size(); ++pool) {
    addresses.clear();
    for (const uint32_t slot : plan_->slot[pool]) addresses.push_back(plan_->experts.range(slot).address);
    SW_TRY(write_blocking(piece(plan_->slot_addresses[pool]), as_bytes(addresses)));
  }
  for (const uint32_t table : plan_->slot_table) {
    if (table == Plan::kNoPiece) continue;
    CommandList& list = stream_list(Lane::Keep::kNo);
    list.fill(piece(table), kNoSlot);
  }
  // Positions that nobody wrote read as zero, as they do on the host.
  for (const Buffer& block : plan_->kv.blocks()) stream_list(Lane::Keep::kNo).fill(block.all(), 0);
  for (size_t i = 0; i < spec_.ropes.size(); ++i) {
    RopeTable& table = spec_.ropes[i];
    const size_t values = size_t{table.positions} * (table.length / 2);
    const Range whole = piece(plan_->rope[i]);
    Range sines = whole;
    sines.offset += values * 4;
    sines.bytes -= values * 4;
    SW_TRY(write_blocking(whole, std::as_bytes(std::span(table.cos, values))));
    SW_TRY(write_blocking(sines, std::as_bytes(std::span(table.sin, values))));
    table.cos = table.sin = nullptr;  // copied
  }
  return stream_.wait(stream_.last_batch());
}

Result<void> VulkanDevice::write_blocking(const Range& to, std::span<const std::byte> bytes) {
  for (uint64_t at = 0; at < bytes.size();) {
    const uint64_t n = std::min<uint64_t>(bytes.size() - at, stream_staging_.bytes() / 2);
    SW_ASSIGN(const Range staged, stream_staging_.take(stream_, n));
    std::memcpy(staged.mapped, bytes.data() + at, n);
    Range part = to;
    part.offset += at;
    part.bytes -= at;
    stream_list(Lane::Keep::kNo).copy(staged, part);
    at += n;
  }
  return {};
}

uint64_t VulkanDevice::pin(std::span<const std::byte> range, std::string* why_not) {
  const auto refuse = [&](std::string why) {
    if (why_not != nullptr) *why_not = std::move(why);
    return uint64_t{0};
  };
  if (!context_->physical().host_import)
    return refuse("the driver cannot import host memory (VK_EXT_external_memory_host)");
  // Whole pages around the range: a page is mapped or it is not.
  const uint64_t unit = context_->physical().host_import_alignment;
  const auto begin = reinterpret_cast<uintptr_t>(range.data()) / unit * unit;
  const auto end = (reinterpret_cast<uintptr_t>(range.data()) + range.size() + unit - 1) / unit * unit;
  const uint64_t most = context_->physical().info.max_allocation_bytes / unit * unit;
  uint64_t pinned = 0;
  for (uintptr_t at = begin; at < end;) {
    const std::span<const std::byte> part(reinterpret_cast<const std::byte*>(at),
                                          std::min<uint64_t>(end - at, most));
    auto buffer = Buffer::import(*context_, part);
    if (!buffer) {
      if (why_not != nullptr) *why_not = buffer.error().message;
      break;
    }
    pinned_.push_back({part, std::move(*buffer)});
    pinned += part.size();
    at += part.size();
  }
  std::sort(pinned_.begin(), pinned_.end(),
            [](const Pinned& a, const Pinned& b) { return a.memory.data() < b.memory.data(); });
  return std::min<uint64_t>(pinned, range.size());
}

Result<void> VulkanDevice::upload(WeightId id, const Matrix& from) {
  SW_TRY(state());
  const WeightShape& shape = spec_.weights[id];
  SW_ASSERT(shape.on_device && from.type == shape.type && from.rows == shape.rows && from.cols == shape.cols);
  const Range to = plan_->weights.range(plan_->weight[id]);
  if (is_single_row(shape)) {
    std::vector<float> row(shape.cols);
    const size_t stride = from.layout == Layout::kFile ? 1 : kGroupRows;
    for (size_t c = 0; c < row.size(); ++c) std::memcpy(&row[c], from.data + c * stride * 4, 4);
    SW_TRY(write_blocking(to, as_bytes(row)));
  } else {
    copy_matrix(stream_, stream_points_, stream_staging_, from, to);
    SW_TRY(state());
  }
  if (const auto waited = stream_.wait(stream_.last_batch()); !waited) lose(waited.error());
  return state();
}

VkDeviceAddress VulkanDevice::weight_address(WeightId id) const {
  return id == kNoWeight ? 0 : plan_->weights.range(plan_->weight[id]).address;
}

void VulkanDevice::copy_matrix(Lane& lane, Points& points, Staging& staging, const Matrix& from,
                               const Range& to) {
  static const cpu::Kernels& kernels = cpu::kernels(cpu::best_instruction_set());
  const uint64_t group_bytes = numerics::group_bytes(from.type, from.cols);
  if (from.layout == Layout::kInterleaved) {
    const std::span<const std::byte> bytes(from.data, group_bytes * from.groups());
    points.begin_work();
    if (copy_pinned(lane.list(Lane::Keep::kNo), bytes, to)) return;
  }
  const uint64_t at_once = std::max<uint64_t>(1, staging.bytes() / 2 / group_bytes);
  for (uint64_t group = 0; group < from.groups(); group += at_once) {
    const uint64_t groups = std::min<uint64_t>(at_once, from.groups() - group);
    const auto staged = staging.take(lane, groups * group_bytes);
    if (!staged) return lose(staged.error());
    if (from.layout == Layout::kInterleaved) {
      std::memcpy(staged->mapped, from.data + group * group_bytes, groups * group_bytes);
    } else {
      const uint64_t first_row = group * kGroupRows;
      const uint64_t rows = std::min<uint64_t>(groups * kGroupRows, from.rows - first_row);
      kernels.interleave(from.type, rows, from.cols, from.data + first_row * row_bytes(from.type, from.cols),
                         staged->mapped);
    }
    Range part = to;
    part.offset += group * group_bytes;
    part.bytes -= group * group_bytes;
    points.begin_work();
    lane.list(Lane::Keep::kNo).copy(*staged, part);
  }
}

bool VulkanDevice::copy_pinned(CommandList& list, std::span<const std::byte> from, const Range& to) {
  auto at =
      std::upper_bound(pinned_.begin(), pinned_.end(), from.data(),
                       [](const std::byte* p, const Pinned& pinned) { return p < pinned.memory.data(); });
  if (at == pinned_.begin()) return false;
  --at;
  const auto end_of = [](std::span<const std::byte> memory) { return memory.data() + memory.size(); };
  const auto first = at;
  for (const std::byte* covered = from.data(); covered < end_of(from);) {
    if (at == pinned_.end() || at->memory.data() > covered || end_of(at->memory) <= covered) return false;
    covered = end_of(at++->memory);
  }
  at = first;
  for (uint64_t done = 0; done < from.size(); ++at) {
    const auto offset = static_cast<uint64_t>(from.data() + done - at->memory.data());
    const uint64_t n = std::min<uint64_t>(from.size() - done, at->memory.size() - offset);
    const VkBufferCopy region = {offset, to.offset + done, n};
    list.copy(at->buffer.all().buffer, to.buffer, std::span(&region, 1));
    done += n;
  }
  return true;
}

}  // namespace spillway::vulkan
