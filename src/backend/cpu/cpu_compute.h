// The CPU as a device: every operation at once, on a pool of threads.
#pragma once

#include <vector>

#include "backend/compute.h"
#include "backend/cpu/activation_store.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/product_plan.h"
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

 private:
  // Rows below which work of well under a microsecond a row is not worth waking the pool.
  static constexpr uint32_t kMinParallelRows = 4;

  // Which forms of activations some products want.
  struct KindSet {
    bool wanted[3] = {};
    void add(TensorType type) { wanted[static_cast<size_t>(activation_kind(type))] = true; }
  };

  // The assignments of one expert: (token, rank) pairs in token order, numbered first .. first+n-1.
  struct ExpertRange {
    uint32_t expert;
    uint32_t first;
    uint32_t n;
  };

  uint32_t rows() const { return step_.rows(); }
  float* buffer(backend::BufferId id) { return buffers_[id].data(); }
  float* row(backend::BufferId id, uint32_t r) { return buffer(id) + size_t{sizes_.buffer_widths[id]} * r; }
  const float* vector_of(backend::WeightId id) const;
  KvView kv_view(const backend::AttentionSpec& spec, const backend::Piece& piece);
  Scratch scratch(uint32_t thread);

  // Calls body(row) for each row of the step, on the pool where that pays.
  template <class Body>
  void for_rows(Body&& body) {
    if (rows() < kMinParallelRows) {
      for (uint32_t r = 0; r < rows(); ++r) body(r);
      return;
    }
    counter_.reset(rows());
    pool_.run([&](uint32_t) {
      for (auto range = counter_.next(4); !range.empty(); range = counter_.next(4))
        for (uint64_t r = range.begin; r < range.end; ++r) body(static_cast<uint32_t>(r));
    });
  }

  // Quantizes all rows of x into inputs_, in each form of `kinds`.
  void quantize_inputs(const float* x, size_t stride, uint32_t cols, KindSet kinds);
  // Runs what plan_ holds as one region.
  void run_plan();

  void route(backend::BufferId x, const backend::MoeSpec& spec);
  void plan_experts(const backend::MoeSpec& spec, backend::BufferId x);
  void run_experts(const backend::MoeSpec& spec, backend::BufferId x, backend::BufferId out);

  sys::ThreadPool& pool_;
  const Kernels& kernels_;
  const ComputeSizes sizes_;
  const std::vector<Matrix> weights_;
  const backend::KvTypes kv_types_;
  const std::vector<KvLayer> kv_;
  const std::vector<RopeTable> ropes_;

  backend::Step step_;
  std::vector<AlignedArray<float>> buffers_;
  ActivationStore inputs_;           // (max_rows, max_width)
  ActivationStore expert_inputs_;    // (max_rows * used, expert_width): what `down` multiplies
  AlignedArray<float> router_;       // (max_rows, experts)
  AlignedArray<float> expert_gate_;  // (max_rows * used, expert_width)
  AlignedArray<float> expert_up_;    // (max_rows * used, expert_width)
  AlignedArray<float> expert_out_;   // (max_rows * used, hidden)
  AlignedArray<std::byte> scratch_;  // (threads, scratch_stride_)
  size_t scratch_stride_ = 0;

  // Routing of the present MoE layer: rank r of row t is expert chosen_[t*used + r] with weight
  // chosen_weight_[...], and its assignment (the row of expert_gate_ and the others) is assignment_[t*used +
  // r].
  std::vector<uint32_t> chosen_, assignment_;
  std::vector<uint32_t> assignment_row_;   // the step's row of each assignment
  std::vector<uint32_t> next_assignment_;  // per expert, while numbering
  std::vector<float> chosen_weight_;
  std::vector<ExpertRange> ranges_;
  ProductPlan plan_, down_plan_;
  std::vector<AttentionQuery> queries_;
  std::vector<void*> key_pages_, value_pages_;
  sys::TaskCounter counter_, activation_counter_, combine_counter_;
};

}  // namespace spillway::cpu
