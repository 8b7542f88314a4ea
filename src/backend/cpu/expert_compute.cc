#include "backend/cpu/expert_compute.h"

#include <algorithm>

#include "backend/cpu/row_loop.h"
#include "base/assert.h"
#include "base/checked.h"

namespace spillway::cpu {
namespace {

using namespace backend;

constexpr uint32_t kNone = UINT32_MAX;

size_t expert_scratch_stride(const ComputeSizes& sizes, const Kernels& kernels) {
  const uint32_t widest = std::max(sizes.hidden, sizes.expert_width);
  return ceil_div(kernels.scratch_bytes(widest, 0), kCacheLineBytes) * kCacheLineBytes;
}

uint64_t max_pairs(const ComputeSizes& sizes) { return uint64_t{sizes.max_rows} * sizes.max_experts_used; }

}  // namespace

ExpertCompute::ExpertCompute(sys::ThreadPool& pool, const Kernels& kernels, const ComputeSizes& sizes,
                             std::span<const Matrix> weights)
    : pool_(pool),
      kernels_(kernels),
      weights_(weights),
      inputs_(sizes.experts == 0 ? 0 : sizes.max_rows, sizes.hidden),
      middle_(sizes.max_rows * sizes.max_experts_used, sizes.expert_width),
      gate_(max_pairs(sizes) * sizes.expert_width),
      up_(max_pairs(sizes) * sizes.expert_width),
      out_(max_pairs(sizes) * sizes.hidden),
      scratch_(expert_scratch_stride(sizes, kernels) * pool.threads()),
      scratch_stride_(expert_scratch_stride(sizes, kernels)) {
  for (auto* numbers : {&pairs_, &pair_rows_, &place_}) numbers->resize(max_pairs(sizes));
  needed_rows_.reserve(sizes.max_rows);
  part_of_.resize(sizes.experts);
  next_.resize(sizes.experts);
  parts_.reserve(sizes.experts);
  ranges_.reserve(sizes.experts);
  plan_.reserve(size_t{2} * sizes.experts);
  down_plan_.reserve(sizes.experts);
}

uint64_t ExpertCompute::bytes(const ComputeSizes& sizes, uint32_t threads, const Kernels& kernels) {
  const uint64_t pairs = max_pairs(sizes);
  return pairs * (2 * sizes.expert_width + sizes.hidden) * sizeof(float) +
         ActivationStore::bytes(sizes.experts == 0 ? 0 : sizes.max_rows, sizes.hidden) +
         ActivationStore::bytes(sizes.max_rows * sizes.max_experts_used, sizes.expert_width) +
         (3 * pairs + sizes.max_rows) * sizeof(uint32_t) +
         uint64_t{threads} * expert_scratch_stride(sizes, kernels);
}

void ExpertCompute::run(const ExpertInput& input, const MoeSpec& spec, std::span<const uint8_t> takes_part) {
  select(spec, takes_part);
  run_parts(input, nullptr);
}

void ExpertCompute::run(const ExpertInput& input, std::span<const ExpertPart> parts) {
  parts_.assign(parts.begin(), parts.end());
  run_parts(input, nullptr);
}

void ExpertCompute::run_and_sum(const ExpertInput& input, const MoeSpec& spec, const ExpertSum& sum) {
  select(spec, {});
  run_parts(input, &sum);
}

void ExpertCompute::select(const MoeSpec& spec, std::span<const uint8_t> takes_part) {
  SW_ASSERT(takes_part.empty() || takes_part.size() == spec.experts.size());
  parts_.clear();
  for (uint32_t e = 0; e < spec.experts.size(); ++e) {
    if (!takes_part.empty() && takes_part[e] == 0) continue;
    const ExpertWeights& expert = spec.experts[e];
    parts_.push_back({e, {weights_[expert.gate], weights_[expert.up], weights_[expert.down]}});
  }
}

// Numbers the pairs by part.
void ExpertCompute::group_pairs(const ExpertInput& input) {
  std::ranges::fill(part_of_, kNone);
  std::fill_n(next_.begin(), parts_.size(), 0);
  for (uint32_t p = 0; p < parts_.size(); ++p) part_of_[parts_[p].expert] = p;
  const uint32_t all = input.rows * input.used;
  SW_ASSERT(input.ids.size() >= all && all <= pairs_.size());
  needed_rows_.clear();
  for (uint32_t pair = 0; pair < all; ++pair) {
    SW_ASSERT(input.ids[pair] < part_of_.size());
    const uint32_t part = part_of_[input.ids[pair]];
    if (part == kNone) continue;
    ++next_[part];
    const uint32_t row = pair / input.used;
    if (needed_rows_.empty() || needed_rows_.back() != row) needed_rows_.push_back(row);
  }
  ranges_.clear();
  n_pairs_ = 0;
  for (uint32_t p = 0; p < parts_.size(); ++p) {
    const uint32_t n = next_[p];
    next_[p] = n_pairs_;
    if (n > 0) ranges_.push_back({p, n_pairs_, n});
    n_pairs_ += n;
  }
  for (uint32_t pair = 0; pair < all; ++pair) {
    const uint32_t part = part_of_[input.ids[pair]];
    if (part == kNone) continue;
    place_[pair] = next_[part]++;
    pairs_[place_[pair]] = pair;
    pair_rows_[place_[pair]] = pair / input.used;
  }
}

void ExpertCompute::plan_products(const ExpertInput& input) {
  plan_.clear();
  down_plan_.clear();
  KindSet kinds;
  for (const Range& range : ranges_) {
    const ExpertMatrices& expert = parts_[range.part].matrices;
    const Matrix& down = expert.down;
    const size_t at = size_t{range.first} * down.cols;
    for (const auto& [weight, to] :
         {std::pair(&expert.gate, gate_.data()), std::pair(&expert.up, up_.data())}) {
      kinds.add(weight->type);
      plan_.add({.weight = weight,
                 .x = inputs_.view(activation_kind(weight->type), input.rows, weight->cols),
                 .tokens = {.index = pair_rows_.data() + range.first, .n = range.n},
                 .out = to + at,
                 .out_stride = down.cols});
    }
    down_plan_.add({.weight = &down,
                    .x = middle_.view(activation_kind(down.type), n_pairs_, down.cols).from(range.first),
                    .tokens = {.n = range.n},
                    .out = out_.data() + size_t{range.first} * down.rows,
                    .out_stride = down.rows});
  }
  plan_.cut(pool_.threads());
  down_plan_.cut(pool_.threads());
  const uint32_t hidden = parts_[ranges_[0].part].matrices.gate.cols;
  for_rows(pool_, counter_, static_cast<uint32_t>(needed_rows_.size()), [&](uint32_t i) {
    const uint32_t r = needed_rows_[i];
    inputs_.quantize_row(kernels_, kinds, input.x + r * input.x_stride, input.rows, hidden, r);
  });
}

void ExpertCompute::run_parts(const ExpertInput& input, const ExpertSum* sum) {
  group_pairs(input);
  if (n_pairs_ == 0) return;
  plan_products(input);
  activation_counter_.reset(ranges_.size());
  sum_counter_.reset(input.rows);
  pool_.run([&](uint32_t thread) {
    plan_.run(kernels_, scratch(thread));
    pool_.barrier();
    activate();
    pool_.barrier();
    down_plan_.run(kernels_, scratch(thread));
    if (sum == nullptr) return;
    pool_.barrier();
    sum_rows(input, *sum);
  });
}

void ExpertCompute::activate() {
  for (auto task = activation_counter_.next(); !task.empty(); task = activation_counter_.next()) {
    const Range& range = ranges_[task.begin];
    const Matrix& down = parts_[range.part].matrices.down;
    const Activations to = middle_.view(activation_kind(down.type), n_pairs_, down.cols);
    for (uint32_t place = range.first; place < range.first + range.n; ++place) {
      float* gate = gate_.data() + size_t{place} * down.cols;
      kernels_.silu_mul(gate, up_.data() + size_t{place} * down.cols, down.cols);
      kernels_.quantize(gate, to, place);
    }
  }
}

void ExpertCompute::sum_rows(const ExpertInput& input, const ExpertSum& sum) {
  const uint32_t hidden = parts_[0].matrices.down.rows;
  for (auto task = sum_counter_.next(); !task.empty(); task = sum_counter_.next()) {
    const size_t first = task.begin * input.used;
    sum_ranks(kernels_, out_.data(), sum.weights + first, input.used, hidden,
              sum.out + task.begin * sum.out_stride, [&](uint32_t rank) { return place_[first + rank]; });
  }
}

}  // namespace spillway::cpu
