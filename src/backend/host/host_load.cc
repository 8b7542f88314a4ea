#include <algorithm>
#include <cstring>
#include <new>

#include "backend/host/host_implementation.h"
#include "base/assert.h"
#include "numerics/layout.h"
#include "sys/memory_limits.h"

namespace spillway::backend {
namespace {

Result<uint64_t> free_bytes(const HostDeviceOptions& options) {
  if (options.memory_bytes != 0) return options.memory_bytes;
  SW_ASSIGN(const sys::MemoryLimits limits, sys::read_memory_limits());
  return limits.available_bytes;
}

uint64_t max_pairs(const ComputeSizes& sizes) { return uint64_t{sizes.max_rows} * sizes.max_experts_used; }

bool same_shape(const Matrix& matrix, const WeightShape& shape) {
  return matrix.type == shape.type && matrix.rows == shape.rows && matrix.cols == shape.cols;
}

}  // namespace

Result<DeviceInfo> host_info(const HostDeviceOptions& options) {
  DeviceInfo info{.id = "host", .name = "threads and memory of the host", .driver = "none", .software = true};
  SW_ASSIGN(info.available_bytes, free_bytes(options));
  info.memory_bytes = info.max_allocation_bytes = info.available_bytes;
  info.copy_queue = true;
  info.notes.push_back(
      "a pretended device: for tests and for trying the expert cache, never faster than the CPU");
  if (options.rates)
    info.notes.push_back("its times are simulated from given rates");
  else
    info.notes.push_back("its times are measured, and copies are copies from host memory to host memory");
  return info;
}

Result<std::unique_ptr<Device>> open_host(const HostDeviceOptions& options) {
  const cpu::InstructionSet best = cpu::best_instruction_set();
  const cpu::InstructionSet set = options.instruction_set.value_or(best);
  if (set > best)
    return unsupported("host device: this processor cannot run these kernels; its best are {}",
                       cpu::kernels(best).name);
  SW_ASSIGN(DeviceInfo info, host_info(options));
  SW_ASSIGN(std::unique_ptr<sys::ThreadPool> pool, sys::ThreadPool::create(options.threads));
  SW_ASSIGN(std::unique_ptr<HostQueues> queues, HostQueues::start(options));
  return std::make_unique<HostDevice>(options, std::move(info), cpu::kernels(set), std::move(pool),
                                      std::move(queues));
}

HostDevice::HostDevice(const HostDeviceOptions& options, DeviceInfo info, const cpu::Kernels& kernels,
                       std::unique_ptr<sys::ThreadPool> pool, std::unique_ptr<HostQueues> queues)
    : options_(options),
      info_(std::move(info)),
      kernels_(kernels),
      pool_(std::move(pool)),
      queues_(std::move(queues)) {}

DeviceBytes HostDevice::bytes(const DeviceSpec& spec) const {
  const uint64_t pairs = max_pairs(spec.sizes);
  uint64_t scratch = cpu::CpuCompute::scratch_bytes(spec.sizes, pool_->threads(), kernels_);
  scratch += pairs * (spec.sizes.hidden * sizeof(float) + 1);  // outputs
  scratch += pairs * sizeof(uint32_t) + uint64_t{spec.sizes.max_rows} * spec.sizes.hidden * sizeof(float);
  for (const DeviceLayer& layer : spec.layers) scratch += layer.n_experts * sizeof(uint32_t);  // tables
  return HostMemory::bytes(spec, scratch);
}

Result<void> HostDevice::prepare(const DeviceSpec& spec) {
  SW_ASSERT(compute_ == nullptr);
  const DeviceBytes needed = bytes(spec);
  SW_ASSIGN(const uint64_t free, free_bytes(options_));
  if (needed.total() > free)
    return fail(Error::Kind::kNoMemory,
                "host device: {} bytes are needed (weights {}, KV cache {}, scratch {}, experts {}) and {} "
                "are free",
                needed.total(), needed.weights, needed.kv, needed.scratch, needed.experts, free);
  try {
    SW_ASSIGN(memory_, HostMemory::allocate(spec, options_.faults.fail_allocation, allocations_));
    outputs_ = AlignedArray<float>(max_pairs(spec.sizes) * spec.sizes.hidden);
    routed_x_ = AlignedArray<float>(size_t{spec.sizes.max_rows} * spec.sizes.hidden);
    routed_ids_.assign(max_pairs(spec.sizes), 0);
    have_output_.assign(max_pairs(spec.sizes), 0);
    is_chosen_.assign(spec.sizes.experts, 0);
    in_table_.reserve(spec.sizes.experts);
    parts_.reserve(spec.sizes.experts);
    tables_.clear();
    chosen_.assign(spec.layers.size(), {});
    for (size_t l = 0; l < spec.layers.size(); ++l) {
      tables_.emplace_back(spec.layers[l].n_experts, kNoSlot);
      if (spec.layers[l].n_experts > 0) chosen_[l].reserve(max_pairs(spec.sizes));
    }
    compute_ = std::make_unique<cpu::CpuCompute>(*pool_, kernels_, spec.sizes, memory_.weights(),
                                                 spec.kv_types, memory_.kv(), memory_.ropes());
  } catch (const std::bad_alloc&) {
    return fail(Error::Kind::kNoMemory, "host device: {} bytes for activations were refused by the system",
                needed.scratch);
  }
  spec_ = spec;
  spec_.ropes.clear();  // the device has its own
  uploaded_.assign(spec.weights.size(), false);
  std::vector<uint32_t> slots;
  slots.reserve(spec.pools.size());
  for (const PoolSpec& pool : spec.pools) slots.push_back(pool.slots);
  watch_ = std::make_unique<SlotWatch>(slots);
  return {};
}

uint64_t HostDevice::pin(std::span<const std::byte> range, std::string* why_not) {
  if (options_.faults.refuse_pinning) {
    *why_not = "host device: pinned memory is refused, as this test asks";
    return 0;
  }
  const uint64_t left = options_.faults.pin_limit_bytes - pinned_bytes_;
  const uint64_t bytes = std::min<uint64_t>(range.size(), left);
  if (bytes < range.size())
    *why_not = fmt::format("host device: {} of {} bytes are pinned; the limit of this test is {} in all",
                           bytes, range.size(), options_.faults.pin_limit_bytes);
  pinned_bytes_ += bytes;
  if (bytes > 0) pinned_.push_back(range.first(bytes));
  return bytes;
}

bool HostDevice::is_pinned(const Matrix& matrix) const {
  const uint64_t bytes = matrix.layout == Layout::kInterleaved
                             ? numerics::interleaved_bytes(matrix.type, matrix.rows, matrix.cols)
                             : matrix.rows * row_bytes(matrix.type, matrix.cols);
  return std::ranges::any_of(pinned_, [&](std::span<const std::byte> range) {
    return matrix.data >= range.data() && matrix.data + bytes <= range.data() + range.size();
  });
}

// To the interleaved layout, from either.
void HostDevice::copy_matrix(const Matrix& from, std::byte* to) const {
  if (from.layout == Layout::kInterleaved)
    std::memcpy(to, from.data, numerics::interleaved_bytes(from.type, from.rows, from.cols));
  else
    kernels_.interleave(from.type, from.rows, from.cols, from.data, to);
}

Result<void> HostDevice::upload(WeightId id, const Matrix& from) {
  SW_ASSERT(id < spec_.weights.size() && spec_.weights[id].on_device);
  SW_ASSERT(same_shape(from, spec_.weights[id]));
  SW_TRY(finish());  // nothing may read it meanwhile
  if (++uploads_ == options_.faults.fail_upload)
    return fail(Error::Kind::kDeviceLost, "host device: upload {}, of weight {}, failed, as this test asks",
                uploads_, id);
  std::byte* to = memory_.weight_data(id);
  if (!is_vector(spec_.weights[id]))
    copy_matrix(from, to);
  else if (from.layout == Layout::kFile)
    std::memcpy(to, from.data, from.cols * sizeof(float));
  else
    numerics::deinterleave(from.type, 1, from.cols, from.data, to);
  uploaded_[id] = true;
  return {};
}

void HostDevice::need(WeightId id) {
  if (id != kNoWeight && !uploaded_[id])
    queues_->lose(
        {Error::Kind::kInvalid, fmt::format("host device: weight {} is used and was never uploaded", id)});
}

Point HostDevice::copy_expert(uint32_t pool, uint32_t slot, const ExpertMatrices& from, Point after) {
  SW_ASSERT(pool < spec_.pools.size() && slot < spec_.pools[pool].slots);
  const ExpertLayout& layout = memory_.layout(pool);
  SW_ASSERT(same_shape(from.gate, layout.gate) && same_shape(from.up, layout.up) &&
            same_shape(from.down, layout.down));
  const auto watched = watch_->copy({pool, slot}, queues_->copies() + 1, queues_->next_operation() - 1,
                                    queues_->operations_before_copy(after), queues_->operations_over());
  if (!watched) queues_->lose(watched.error());
  const bool pinned = is_pinned(from.gate) && is_pinned(from.up) && is_pinned(from.down);
  const auto copy = [this, from, &layout, to = memory_.slot(pool, slot)] {
    copy_matrix(from.gate, to);
    copy_matrix(from.up, to + layout.up_offset());
    copy_matrix(from.down, to + layout.down_offset());
  };
  return queues_->copy(copy, after, layout.slot_bytes(), pinned);
}

}  // namespace spillway::backend
