#include "backend/host/host_memory.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "numerics/layout.h"

namespace spillway::backend {
namespace {

// Kernels load whole registers; the same boundary as that of an expert's parts.
uint64_t aligned(uint64_t bytes) {
  return ceil_div(bytes, ExpertLayout::kAlignment) * ExpertLayout::kAlignment;
}

uint64_t weight_bytes(const WeightShape& w) {
  if (!w.on_device) return 0;
  return aligned(is_vector(w) ? w.cols * sizeof(float) : numerics::interleaved_bytes(w.type, w.rows, w.cols));
}

uint64_t all_weight_bytes(const DeviceSpec& spec) {
  uint64_t total = 0;
  for (const WeightShape& w : spec.weights) total += weight_bytes(w);
  return total;
}

cpu::KvLayer page_sizes(const DeviceSpec& spec, const DeviceLayer& layer) {
  if (!layer.on_device) return {};
  const auto page = [&](KvType type, uint32_t length) {
    return size_t{kv_value_bytes(type)} * kPagePositions * layer.kv_heads * length;
  };
  return {.key_page_bytes = page(spec.kv_types.key, layer.key_length),
          .value_page_bytes = page(spec.kv_types.value, layer.value_length)};
}

uint64_t kv_bytes(const DeviceSpec& spec) {
  uint64_t page = 0;
  for (const DeviceLayer& layer : spec.layers) {
    const cpu::KvLayer sizes = page_sizes(spec, layer);
    page += sizes.key_page_bytes + sizes.value_page_bytes;
  }
  return page * spec.kv_pages;
}

// Counts the allocations, and fails at the one that was asked for.
class Allocator {
 public:
  Allocator(uint32_t fail_at, uint32_t& count) : fail_at_(fail_at), count_(count) {}

  Result<sys::Allocation> get(uint64_t bytes, std::string_view what) {
    if (++count_ == fail_at_)
      return fail(Error::Kind::kNoMemory, "host device: {} bytes for {} were refused, as this test asks",
                  bytes, what);
    if (bytes == 0) return sys::Allocation();
    auto memory = sys::Allocation::create(bytes, sys::Pages::kPreferHuge);
    if (!memory)
      return std::unexpected(
          memory.error().in(fmt::format("host device: {} bytes for {} were refused", bytes, what)));
    return memory;
  }

  // For memory that comes from elsewhere.
  Result<void> pass(std::string_view what) {
    if (++count_ == fail_at_)
      return fail(Error::Kind::kNoMemory, "host device: memory for {} was refused, as this test asks", what);
    return {};
  }

 private:
  const uint32_t fail_at_;
  uint32_t& count_;
};

}  // namespace

DeviceBytes HostMemory::bytes(const DeviceSpec& spec, uint64_t scratch) {
  DeviceBytes bytes{.weights = all_weight_bytes(spec), .kv = kv_bytes(spec), .scratch = scratch};
  for (const RopeTable& rope : spec.ropes)
    bytes.scratch += uint64_t{2} * rope.positions * (rope.length / 2) * sizeof(float);
  for (const PoolSpec& pool : spec.pools) bytes.experts += pool.slots * pool.layout.slot_bytes();
  return bytes;
}

Result<HostMemory> HostMemory::allocate(const DeviceSpec& spec, uint32_t fail_at, uint32_t& count) {
  Allocator allocator(fail_at, count);
  HostMemory memory;
  SW_ASSIGN(memory.weight_memory_, allocator.get(all_weight_bytes(spec), "weights"));
  SW_ASSIGN(memory.kv_memory_, allocator.get(kv_bytes(spec), "the KV cache"));
  SW_TRY(allocator.pass("activations"));
  for (const PoolSpec& pool : spec.pools) {
    const uint64_t slot_bytes = pool.layout.slot_bytes();
    SW_ASSIGN(sys::Allocation slots,
              allocator.get(pool.slots * slot_bytes, fmt::format("{} expert slots", pool.slots)));
    memory.pools_.push_back({pool.layout, pool.slots, slot_bytes, std::move(slots)});
  }

  uint64_t offset = 0;
  for (const WeightShape& w : spec.weights) {
    memory.weight_offsets_.push_back(offset);
    memory.weights_.push_back({.type = w.type,
                               .layout = is_vector(w) ? Layout::kFile : Layout::kInterleaved,
                               .rows = w.rows,
                               .cols = w.cols,
                               .data = w.on_device ? memory.weight_memory_.data() + offset : nullptr});
    offset += weight_bytes(w);
  }
  memory.place_kv(spec);
  memory.copy_ropes(spec);
  return memory;
}

void HostMemory::place_kv(const DeviceSpec& spec) {
  std::byte* next = kv_memory_.data();
  for (const DeviceLayer& layer : spec.layers) {
    cpu::KvLayer kv = page_sizes(spec, layer);
    if (layer.on_device) {
      kv.keys = next;
      kv.values = kv.keys + spec.kv_pages * kv.key_page_bytes;
      next = kv.values + spec.kv_pages * kv.value_page_bytes;
    }
    kv_.push_back(kv);
  }
}

void HostMemory::copy_ropes(const DeviceSpec& spec) {
  for (const RopeTable& table : spec.ropes) {
    const size_t values = size_t{table.positions} * (table.length / 2);
    Rope rope{table, AlignedArray<float>(values), AlignedArray<float>(values)};
    std::copy_n(table.cos, values, rope.cos.data());
    std::copy_n(table.sin, values, rope.sin.data());
    ropes_.push_back(std::move(rope));
  }
}

std::vector<RopeTable> HostMemory::ropes() const {
  std::vector<RopeTable> tables;
  for (const Rope& rope : ropes_) {
    tables.push_back(rope.table);
    tables.back().cos = rope.cos.data();
    tables.back().sin = rope.sin.data();
  }
  return tables;
}

ExpertMatrices HostMemory::slot_matrices(uint32_t pool, uint32_t slot_number) const {
  return layout(pool).matrices(slot(pool, slot_number));
}

void HostMemory::copy_kv_page(uint32_t from, uint32_t to) {
  for (const cpu::KvLayer& kv : kv_) {
    if (kv.keys == nullptr) continue;
    std::memcpy(kv.keys + to * kv.key_page_bytes, kv.keys + from * kv.key_page_bytes, kv.key_page_bytes);
    std::memcpy(kv.values + to * kv.value_page_bytes, kv.values + from * kv.value_page_bytes,
                kv.value_page_bytes);
  }
}

}  // namespace spillway::backend
