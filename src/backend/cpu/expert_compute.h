// The routed experts of a layer on the CPU: gathers the tokens of each expert, and runs gate, up and down of
// all experts in one parallel region with barriers between the stages. Any subset of the experts can be run,
// from wherever their weights lie: what a pair (token, expert) gives does not depend on its company.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "backend/compute.h"
#include "backend/cpu/activation_store.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/product_plan.h"
#include "backend/device.h"
#include "base/aligned_array.h"
#include "sys/thread_pool.h"

namespace spillway::cpu {

// Rows and the experts that the router chose for them: rank r of row t is ids[t * used + r], a pair whose
// number is t * used + r. The experts of a row differ.
struct ExpertInput {
  const float* x = nullptr;  // row t at x + t * x_stride, `hidden` values
  size_t x_stride = 0;
  uint32_t rows = 0;
  uint32_t used = 0;
  std::span<const uint32_t> ids;  // (rows, used)
};

// An expert that takes part, and its weights in either layout.
struct ExpertPart {
  uint32_t expert = 0;
  backend::ExpertMatrices matrices;
};

// Where the weighted sums of the pairs' outputs go.
struct ExpertSum {
  const float* weights = nullptr;  // (rows, used)
  float* out = nullptr;            // row t at out + t * out_stride, `hidden` values
  size_t out_stride = 0;
};

class ExpertCompute {
 public:
  // The weights are by WeightId, for the calls that name experts by a MoeSpec; they and the pool must outlive
  // this. Allocates all that it ever needs.
  ExpertCompute(sys::ThreadPool& pool, const Kernels& kernels, const backend::ComputeSizes& sizes,
                std::span<const Matrix> weights);

  // Bytes that the constructor allocates, for the memory plan.
  static uint64_t bytes(const backend::ComputeSizes& sizes, uint32_t threads, const Kernels& kernels);

  // Computes the outputs of the pairs whose expert takes part: all of the spec's experts, or those e with
  // takes_part[e] != 0. Results are in pairs() and outputs().
  void run(const ExpertInput& input, const backend::MoeSpec& spec, std::span<const uint8_t> takes_part = {});
  // The same of experts whose weights lie anywhere; each is named once.
  void run(const ExpertInput& input, std::span<const ExpertPart> parts);
  // All of the spec's experts, and then the sums, in the same region.
  void run_and_sum(const ExpertInput& input, const backend::MoeSpec& spec, const ExpertSum& sum);

  // Of the last run, until the next: the numbers of the computed pairs, grouped by expert (in ascending order
  // or that of `parts`), ascending within; and their outputs (pairs, hidden) in the same order.
  std::span<const uint32_t> pairs() const { return std::span(pairs_).first(n_pairs_); }
  const float* outputs() const { return out_.data(); }

 private:
  // The pairs of one part, at first .. first+n-1 of pairs_.
  struct Range {
    uint32_t part;
    uint32_t first;
    uint32_t n;
  };

  Scratch scratch(uint32_t thread) { return {scratch_.data() + thread * scratch_stride_, scratch_stride_}; }
  void select(const backend::MoeSpec& spec, std::span<const uint8_t> takes_part);
  void group_pairs(const ExpertInput& input);
  void plan_products(const ExpertInput& input);
  void run_parts(const ExpertInput& input, const ExpertSum* sum);
  void activate();
  void sum_rows(const ExpertInput& input, const ExpertSum& sum);

  sys::ThreadPool& pool_;
  const Kernels& kernels_;
  const std::span<const Matrix> weights_;
  ActivationStore inputs_;           // (max_rows, hidden)
  ActivationStore middle_;           // (max_rows * used, expert_width): what `down` multiplies
  AlignedArray<float> gate_;         // (max_rows * used, expert_width)
  AlignedArray<float> up_;           // (max_rows * used, expert_width)
  AlignedArray<float> out_;          // (max_rows * used, hidden)
  AlignedArray<std::byte> scratch_;  // (threads, scratch_stride_)
  size_t scratch_stride_ = 0;

  std::vector<ExpertPart> parts_;      // of this run
  std::vector<uint32_t> part_of_;      // by expert; kNone where it takes no part
  std::vector<uint32_t> next_;         // by part, while numbering
  std::vector<uint32_t> pairs_;        // numbers of the pairs by place
  std::vector<uint32_t> pair_rows_;    // their rows
  std::vector<uint32_t> place_;        // of each pair that takes part
  std::vector<uint32_t> needed_rows_;  // rows with a pair that takes part
  uint32_t n_pairs_ = 0;
  std::vector<Range> ranges_;
  ProductPlan plan_, down_plan_;
  sys::TaskCounter counter_, activation_counter_, sum_counter_;
};

// out = the sum of weights[r] * outputs of rank r in ascending rank from +0, whatever order the experts were
// computed in; rank r's `hidden` values lie at outputs + place(r) * hidden.
template <class Place>
void sum_ranks(const Kernels& kernels, const float* outputs, const float* weights, uint32_t used,
               uint32_t hidden, float* out, Place&& place) {
  std::fill_n(out, hidden, 0.0f);
  for (uint32_t rank = 0; rank < used; ++rank)
    kernels.add_scaled(out, outputs + size_t{place(rank)} * hidden, weights[rank], hidden);
}

}  // namespace spillway::cpu
