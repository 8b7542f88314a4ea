// The memory of the pretended device: which bytes hold what. Everything is allocated at once.
#pragma once

#include <span>
#include <vector>

#include "backend/cpu/cpu_compute.h"
#include "backend/device.h"
#include "base/aligned_array.h"
#include "sys/memory.h"

namespace spillway::backend {

class HostMemory {
 public:
  // Of everything but the scratch, which `scratch` adds (activations, tables).
  static DeviceBytes bytes(const DeviceSpec& spec, uint64_t scratch);

  // kNoMemory where the system refuses, or at the allocation that makes `count` reach `fail_at` (0 = never).
  static Result<HostMemory> allocate(const DeviceSpec& spec, uint32_t fail_at, uint32_t& count);

  // By WeightId; those not on the device have no data. Vectors (1, cols) of F32 lie as in the file, all else
  // interleaved.
  const std::vector<Matrix>& weights() const { return weights_; }
  std::byte* weight_data(WeightId id) { return weight_memory_.data() + weight_offsets_[id]; }

  std::byte* slot(uint32_t pool, uint32_t slot) const {
    return pools_[pool].memory.data() + slot * pools_[pool].slot_bytes;
  }
  uint32_t slots(uint32_t pool) const { return pools_[pool].slots; }
  const ExpertLayout& layout(uint32_t pool) const { return pools_[pool].layout; }
  ExpertMatrices slot_matrices(uint32_t pool, uint32_t slot) const;

  const std::vector<cpu::KvLayer>& kv() const { return kv_; }  // by layer; empty for one not on the device
  void copy_kv_page(uint32_t from, uint32_t to);

  // Tables of our own, copies of the spec's.
  std::vector<RopeTable> ropes() const;

 private:
  struct Pool {
    ExpertLayout layout;
    uint32_t slots = 0;
    uint64_t slot_bytes = 0;
    sys::Allocation memory;
  };
  struct Rope {
    RopeTable table;
    AlignedArray<float> cos, sin;
  };

  void place_kv(const DeviceSpec& spec);
  void copy_ropes(const DeviceSpec& spec);

  sys::Allocation weight_memory_, kv_memory_;
  std::vector<uint64_t> weight_offsets_;
  std::vector<Matrix> weights_;
  std::vector<Pool> pools_;
  std::vector<cpu::KvLayer> kv_;
  std::vector<Rope> ropes_;
};

// Whether a weight is a vector, which no layout rearranges.
inline bool is_vector(const WeightShape& w) { return w.rows == 1 && w.type == TensorType::kF32; }

}  // namespace spillway::backend
