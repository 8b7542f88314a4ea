#include "tune/probe_device_bench.h"

#include "base/assert.h"
#include "numerics/layout.h"

namespace spillway::tune {
namespace {

using namespace backend;

// Pools of three sizes of experts: 0.1, 0.4 and 3.5 MB. The first is for copies alone: where a copy's own
// cost shows.
enum PoolId : uint32_t { kTiny, kSmall, kLarge, kPools };
constexpr uint32_t kWidths[kPools] = {32, 256, 2048};
constexpr TensorType kTypes[kPools] = {TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kQ4_K};

enum Buffers : BufferId { kX, kWide };
constexpr uint32_t kWideValues = 16384;  // of a row: 64 KiB, so that 64 rows are a copy of 4 MiB
constexpr uint32_t kMostTokens = 64, kSoftwareTokens = 4;
constexpr uint32_t kReadRows[] = {1, 8, kMostTokens};

// Weights that repeat from the device's own cache would not show its memory: 256 MiB are beyond any.
constexpr uint64_t kPoolBytes = uint64_t{256} << 20, kSoftwarePoolBytes = uint64_t{32} << 20;
constexpr uint64_t kPageableBytes = uint64_t{64} << 20;

constexpr uint32_t kRepeatedRoutings = 32, kWaitedRoutings = 8;

ExpertLayout layout_of(uint32_t pool) {
  const TensorType type = kTypes[pool];
  return {{type, kWidths[pool], DeviceBench::kHidden, true},
          {type, kWidths[pool], DeviceBench::kHidden, true},
          {type, DeviceBench::kHidden, kWidths[pool], true}};
}

}  // namespace

Result<std::unique_ptr<DeviceBench>> DeviceBench::create(std::unique_ptr<Device> device, CpuBench& cpu,
                                                         const sys::Clock& clock) {
  std::unique_ptr<DeviceBench> bench(new DeviceBench(std::move(device), cpu, clock));
  SW_TRY(bench->prepare());
  SW_TRY(bench->fill_slots());
  return bench;
}

DeviceBench::DeviceBench(std::unique_ptr<Device> device, CpuBench& cpu, const sys::Clock& clock)
    : cpu_(cpu), clock_(clock), device_(std::move(device)) {}

Result<void> DeviceBench::prepare() {
  SW_ASSIGN(pageable_, sys::Allocation::create(kPageableBytes, sys::Pages::kPreferHuge));
  std::ranges::copy(cpu_.arena().first(std::min<uint64_t>(cpu_.arena().size(), kPageableBytes)),
                    pageable_.data());
  if (device_->pin(cpu_.arena(), &why_not_pinned_) == cpu_.arena().size()) why_not_pinned_.clear();

  const uint64_t most =
      std::min(info().software ? kSoftwarePoolBytes : kPoolBytes, info().available_bytes / 8);
  DeviceSpec spec;
  for (uint32_t pool = 0; pool < kPools; ++pool) {
    const ExpertLayout layout = layout_of(pool);
    const uint64_t slots = std::clamp<uint64_t>(most / layout.slot_bytes(), kExperts, 512);
    pools_.push_back({layout, static_cast<uint32_t>(slots)});
  }
  next_slot_.assign(kPools, 0);
  spec.pools = pools_;
  spec.weights.push_back({TensorType::kF32, kExperts, kHidden, true});  // the router
  for (const uint32_t pool : {kSmall, kLarge})
    spec.layers.push_back({.on_device = true,
                           .kv_heads = 1,
                           .key_length = 64,
                           .value_length = 64,
                           .pool = pool,
                           .n_experts = kExperts});
  spec.kv_pages = kMostTokens / kPagePositions;
  spec.sizes.max_rows = kMostTokens;
  spec.sizes.max_width = spec.sizes.hidden = kHidden;
  spec.sizes.experts = spec.sizes.max_experts_used = kExperts;
  spec.sizes.expert_width = kWidths[kLarge];
  spec.sizes.max_head_length = 64;
  spec.sizes.buffer_widths = {kHidden, kWideValues};
  SW_TRY(device_->prepare(spec));

  for (uint32_t page = 0; page < spec.kv_pages; ++page) pages_.push_back(page);
  x_.resize(size_t{kMostTokens} * kHidden);
  for (size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(i % 255) / 128.0f - 1.0f;
  wide_.resize(size_t{kMostTokens} * kWideValues);
  return device_->upload(
      0, {TensorType::kF32, Layout::kFile, kExperts, kHidden, reinterpret_cast<const std::byte*>(x_.data())});
}

Result<void> DeviceBench::fill_slots() {
  for (uint32_t pool = 0; pool < kPools; ++pool)
    SW_TRY(copy_us({.size = pool, .copies = pools_[pool].slots}));
  return {};
}

std::string DeviceBench::why_no_copies(HostMemory memory) const {
  return memory == HostMemory::kPinned ? why_not_pinned_ : std::string();
}

std::vector<uint64_t> DeviceBench::copy_sizes(Direction direction) const {
  std::vector<uint64_t> sizes;
  if (direction == Direction::kUp)
    for (const PoolSpec& pool : pools_) sizes.push_back(pool.layout.slot_bytes());
  else
    for (const uint32_t rows : kReadRows) sizes.push_back(rows * kWideValues * sizeof(float));
  return sizes;
}

std::vector<uint64_t> DeviceBench::expert_sizes() const {
  return {pools_[kSmall].layout.slot_bytes(), pools_[kLarge].layout.slot_bytes()};
}

uint32_t DeviceBench::tokens() const { return info().software ? kSoftwareTokens : kMostTokens; }

std::span<const std::byte> DeviceBench::source(HostMemory memory, uint64_t bytes) {
  if (memory == HostMemory::kPinned) return cpu_.next_bytes(bytes);
  if (next_pageable_ + bytes > pageable_.size()) next_pageable_ = 0;
  next_pageable_ += bytes;
  return pageable_.bytes().subspan(next_pageable_ - bytes, bytes);
}

Point DeviceBench::copy_one(const CopyLoad& load) {
  const ExpertLayout& layout = pools_[load.size].layout;
  const std::byte* from = source(load.memory, layout.slot_bytes()).data();
  uint32_t& slot = next_slot_[load.size];
  slot = (slot + 1) % pools_[load.size].slots;
  return device_->copy_expert(load.size, slot, layout.matrices(from), {});
}

Result<double> DeviceBench::copy_us(const CopyLoad& load) {
  return copy_beside_us(load, [] { return Result<void>(); });
}

Result<double> DeviceBench::copy_beside_us(const CopyLoad& load,
                                           const std::function<Result<void>()>& meanwhile) {
  if (load.direction == Direction::kDown) return read_back_us(load);
  SW_TRY(device_->finish());
  const double begin_us = now_us();
  Point last;
  for (uint32_t i = 0; i < load.copies; ++i) last = copy_one(load);
  device_->submit();
  SW_TRY(meanwhile());
  SW_TRY(device_->wait(last));
  return now_us() - begin_us;
}

Result<double> DeviceBench::read_back_us(const CopyLoad& load) {
  begin(kReadRows[load.size]);
  SW_TRY(device_->finish());
  const double begin_us = now_us();
  for (uint32_t i = 0; i < load.copies; ++i) device_->read_buffer(kWide, wide_.data());
  SW_TRY(device_->finish());
  return now_us() - begin_us;
}

void DeviceBench::begin(uint32_t rows) {
  tokens_.assign(rows, 0);
  positions_.resize(rows);
  for (uint32_t r = 0; r < rows; ++r) positions_[r] = r;
  piece_ = {0, rows, 0, pages_};
  device_->begin({tokens_, positions_, {&piece_, 1}});
  device_->write_buffer(kX, x_.data());
}

MoeSpec DeviceBench::layer(uint32_t number) const {
  MoeSpec spec;
  spec.layer = number;
  spec.routing.n_experts = spec.routing.n_used = kExperts;
  spec.router = 0;
  return spec;
}

Result<double> DeviceBench::experts_us(const DeviceLoad& load) {
  SW_ASSERT(load.experts <= kExperts && load.tokens <= kMostTokens);
  const MoeSpec spec = layer(load.size);
  const uint32_t pool = kSmall + load.size;
  begin(load.tokens);
  device_->route(kX, spec, Device::ForHost::kNo);
  SW_TRY(device_->finish());
  const double begin_us = now_us();
  for (uint32_t i = 0; i < load.operations; ++i) {
    experts_.clear();
    for (uint32_t e = 0; e < load.experts; ++e) {
      next_slot_[pool] = (next_slot_[pool] + 1) % pools_[pool].slots;
      experts_.push_back({e, next_slot_[pool]});
    }
    device_->experts_in_slots(kX, spec, experts_);
  }
  SW_TRY(device_->wait(device_->mark()));
  return now_us() - begin_us;
}

Result<double> DeviceBench::routing_us(bool for_host) {
  const MoeSpec spec = layer(0);
  begin(1);
  SW_TRY(device_->finish());
  const double begin_us = now_us();
  if (!for_host) {
    for (uint32_t i = 0; i < kRepeatedRoutings; ++i) device_->route(kX, spec, Device::ForHost::kNo);
    SW_TRY(device_->wait(device_->mark()));
    return (now_us() - begin_us) / kRepeatedRoutings;
  }
  for (uint32_t i = 0; i < kWaitedRoutings; ++i) {
    device_->route(kX, spec, Device::ForHost::kNow);
    SW_TRY(device_->wait(device_->mark()));
  }
  return (now_us() - begin_us) / kWaitedRoutings;
}

Result<double> DeviceBench::wait_us(Wait what) {
  if (what == Wait::kPlanned) return routing_us(true);
  if (what == Wait::kResident) return routing_us(false);
  if (what == Wait::kHandOver) {
    static constexpr uint32_t kPairs[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const MoeSpec spec = layer(0);
    begin(1);
    device_->route(kX, spec, Device::ForHost::kNo);
    SW_TRY(device_->finish());
    const double begin_us = now_us();
    device_->take_outputs(spec, kPairs, x_.data());
    device_->submit();
    const double us = now_us() - begin_us;
    SW_TRY(device_->finish());
    return us;
  }
  SW_TRY(device_->finish());
  const double begin_us = now_us();
  SW_TRY(device_->wait(device_->mark()));
  return now_us() - begin_us;
}

}  // namespace spillway::tune
