// The weights in host memory: read into row-interleaved memory of our own, or used where the file is mapped.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/compute.h"
#include "backend/cpu/kernels.h"
#include "base/aligned_array.h"
#include "base/result.h"
#include "engine/model_files.h"
#include "engine/options.h"
#include "sys/memory.h"

namespace spillway::engine {

class HostWeights {
 public:
  // Weights that are not `on_host` (by WeightId) get no memory; vectors always do. Requires: mode is not
  // kAuto. An error names the file or the memory that is missing.
  static Result<HostWeights> load(const ModelFiles& files, std::span<const model::Weight> weights,
                                  const std::vector<bool>& on_host, LoadMode mode,
                                  const cpu::Kernels& kernels, uint32_t threads, const Progress& progress);

  // By WeightId. Vectors (one row of F32: norms, biases) are always copies, and flushed (docs/numerics.md).
  const std::vector<cpu::Matrix>& matrices() const { return matrices_; }

  // The values of a vector; empty for kNoWeight.
  std::span<const float> vector(backend::WeightId id) const;

  uint64_t own_bytes() const { return own_bytes_; }  // memory allocated here

  // What load() allocates for these weights in kRead mode.
  static uint64_t interleaved_bytes(std::span<const model::Weight> weights, const std::vector<bool>& on_host);

  // The memory that experts are copied from: the arena, or the mapped files.
  std::vector<std::span<const std::byte>> ranges() const;

 private:
  Result<void> map(const ModelFiles& files, std::span<const model::Weight> weights);
  Result<void> read(const ModelFiles& files, std::span<const model::Weight> weights,
                    const std::vector<bool>& on_host, LoadMode mode, const cpu::Kernels& kernels,
                    uint32_t threads, const Progress& progress);
  Result<void> copy_vectors(const ModelFiles& files, std::span<const model::Weight> weights);

  std::vector<cpu::Matrix> matrices_;
  std::vector<sys::MappedFile> mappings_;
  sys::Allocation arena_;
  AlignedArray<float> vectors_;
  uint64_t own_bytes_ = 0;
};

}  // namespace spillway::engine
