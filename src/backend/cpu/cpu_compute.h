// The CPU as a device: every operation at once, on a pool of threads.
#pragma once

#include <vector>

#include "backend/compute.h"
#include "backend/cpu/activation_store.h"
#include "backend/cpu/expert_compute.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/product_plan.h"
#include "backend/cpu/row_loop.h"
#include "base/aligned_array.h"
#include "sys/thread_pool.h"

namespace spillway::cpu {

// Keys and values of one layer in host memory, by page.
struct KvLayer {
  std::byte* keys = nullptr;    // (pages, key_page_bytes)
  std::byte* values = nullptr;  // (pages, value_page_bytes)
  size_t key_page_bytes = 0;
  size_t value_page_bytes = 0;
};

using backend::ComputeSizes;
using backend::RopeTable;

class CpuCompute final : public backend::Compute {
 public:
  // What the pool, the weights (by WeightId), the KV memory and the tables point to must outlive this.
  CpuCompute(sys::ThreadPool& pool, const Kernels& kernels, ComputeSizes sizes, std::vector<Matrix> weights,
             backend::KvTypes kv_types, std::vector<KvLayer> kv, std::vector<RopeTable> ropes);

  // Bytes that the constructor allocates for these sizes, for the memory plan.
  static uint64_t scratch_bytes(const ComputeSizes& sizes, uint32_t threads, const Kernels& kernels);

  void begin(const backend::Step& step) override;
  void embed(backend::WeightId table, backend::BufferId out) override;
  void rms_norm(backend::BufferId x, uint32_t width, backend::WeightId weight, float epsilon,
                backend::BufferId y) override;
  void head_norm(backend::BufferId x, uint32_t heads, uint32_t head_length, backend::WeightId weight,
                 float epsilon) override;
  void linear(backend::BufferId x, std::span<const backend::Linear> targets) override;
  void rope(backend::BufferId x, const backend::RopeSpec& spec) override;
  void store_kv(backend::BufferId key, backend::BufferId value, const backend::AttentionSpec& spec) override;
  void attention(backend::BufferId q, const backend::AttentionSpec& spec, backend::BufferId out) override;
  void silu_mul(backend::BufferId gate, backend::BufferId up, uint32_t width) override;
  void add(backend::BufferId y, backend::BufferId x, uint32_t width) override;
  void add_gated(backend::BufferId y, backend::BufferId x, backend::BufferId gate, uint32_t width) override;
  void moe(backend::BufferId x, const backend::MoeSpec& spec, backend::BufferId out) override;
  void logits(backend::BufferId x, std::span<const uint32_t> rows, backend::WeightId norm, float epsilon,
              backend::WeightId output, float* out, size_t out_stride) override;
  Result<void> finish() override { return {}; }

  // ---- for an engine or a device that takes a step apart ----

  uint32_t rows() const { return step_.rows(); }
  // The step's rows of a buffer, (rows, width), to be read or overwritten between operations.
  std::span<float> buffer_rows(backend::BufferId id) {
    return {buffer(id), size_t{rows()} * sizes_.buffer_widths[id]};
  }
  // The first half of moe(): chosen_weights() (rows, used) and expert_input() are valid until the next
  // route() or moe().
  void route(backend::BufferId x, const backend::MoeSpec& spec);
  ExpertInput expert_input(backend::BufferId x, const backend::MoeSpec& spec);
  const float* chosen_weights() const { return chosen_weight_.data(); }
  ExpertCompute& experts() { return experts_; }

 private:
  float* buffer(backend::BufferId id) { return buffers_[id].data(); }
  float* row(backend::BufferId id, uint32_t r) { return buffer(id) + size_t{sizes_.buffer_widths[id]} * r; }
  const float* vector_of(backend::WeightId id) const;
  KvView kv_view(const backend::AttentionSpec& spec, const backend::Piece& piece);
  Scratch scratch(uint32_t thread);

  template <class Body>
  void each_row(Body&& body) {
    for_rows(pool_, counter_, rows(), body);
  }

  // Quantizes all rows of x into inputs_, in each form of `kinds`.
  void quantize_inputs(const float* x, size_t stride, uint32_t cols, KindSet kinds);
  // Runs what plan_ holds as one region.
  void run_plan();

  sys::ThreadPool& pool_;
  const Kernels& kernels_;
  const ComputeSizes sizes_;
  const std::vector<Matrix> weights_;
  const backend::KvTypes kv_types_;
  const std::vector<KvLayer> kv_;
  const std::vector<RopeTable> ropes_;

  backend::Step step_;
  std::vector<AlignedArray<float>> buffers_;
  ActivationStore inputs_;  // (max_rows, max_width)
  ExpertCompute experts_;
  AlignedArray<float> router_;       // (max_rows, experts)
  AlignedArray<std::byte> scratch_;  // (threads, scratch_stride_)
  size_t scratch_stride_ = 0;

  // Routing of the present MoE layer: rank r of row t is expert chosen_[t*used + r] with weight
  // chosen_weight_[...].
  std::vector<uint32_t> chosen_;
  std::vector<float> chosen_weight_;
  ProductPlan plan_;
  std::vector<AttentionQuery> queries_;
  std::vector<void*> key_pages_, value_pages_;
  sys::TaskCounter counter_;
};

}  // namespace spillway::cpu
