// A small model with every kind of weight, a device that holds it, and the CPU's results to compare with.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <random>

#include "backend/cpu/cpu_compute.h"
#include "backend/host/host_device.h"
#include "support/random_matrix.h"

namespace spillway::backend {

using test_support::RandomMatrix;

constexpr uint32_t kLayers = 2, kHidden = 256, kHeads = 4, kKvHeads = 2, kHead = 64, kWidth = 256,
                   kExperts = 8, kUsed = 3, kExpertWidth = 256, kVocabulary = 99, kPages = 6, kMaxRows = 12,
                   kPositions = 128;

enum TestBuffer : BufferId { kX, kNormed, kQ, kK, kV, kAttended, kBranch, kGate, kUp, kOne, kBuffers };
const std::vector<uint32_t> kWidths = {
    kHidden,       kHidden, kHeads* kHead, kKvHeads* kHead, kKvHeads* kHead,
    kHeads* kHead, kHidden, kWidth,        kWidth,          1};

enum TestWeight : WeightId {
  kEmbedding,
  kNorm,
  kHeadNorm,
  kQuery,
  kQueryBias,
  kKeyW,
  kValueW,
  kOutput,
  kDenseGate,
  kDenseUp,
  kDenseDown,
  kOneGate,
  kRouter,
  kBias,
  kLogits,
  kFirstExpert,  // kLayers * kExperts * 3 of them
};

// Both results to compare are bits.
inline testing::AssertionResult same_bits(std::span<const float> expected, std::span<const float> got) {
  if (expected.size() != got.size()) return testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < expected.size(); ++i)
    if (std::memcmp(&expected[i], &got[i], sizeof(float)) != 0)
      return testing::AssertionFailure() << "value " << i << " of " << expected.size() << ": "
                                         << fmt::format("{:a}, need {:a}", got[i], expected[i]);
  return testing::AssertionSuccess();
}

class Model {
 public:
  explicit Model(Layout layout) : random_(17) {
    const auto vector = [&](uint32_t n) { add(TensorType::kF32, 1, n, Layout::kFile); };
    add(TensorType::kQ8_0, kVocabulary, kHidden, layout);
    vector(kHidden);
    vector(kHead);
    add(TensorType::kQ4_K, kHeads * kHead, kHidden, layout);
    vector(kHeads * kHead);
    add(TensorType::kQ8_0, kKvHeads * kHead, kHidden, layout);
    add(TensorType::kBF16, kKvHeads * kHead, kHidden, layout);
    add(TensorType::kQ6_K, kHidden, kHeads * kHead, layout);
    add(TensorType::kQ4_0, kWidth, kHidden, layout);
    add(TensorType::kQ4_0, kWidth, kHidden, layout);
    add(TensorType::kIQ4_NL, kHidden, kWidth, layout);
    vector(kHidden);
    add(TensorType::kF32, kExperts, kHidden, layout);
    vector(kExperts);
    add(TensorType::kQ6_K, kVocabulary, kHidden, layout);
    for (uint32_t e = 0; e < kLayers * kExperts; ++e) {
      add(TensorType::kQ4_K, kExpertWidth, kHidden, layout);
      add(TensorType::kQ8_0, kExpertWidth, kHidden, layout);
      add(TensorType::kQ6_K, kHidden, kExpertWidth, layout);
      experts_.push_back({kFirstExpert + 3 * e, kFirstExpert + 3 * e + 1, kFirstExpert + 3 * e + 2});
    }
    for (const bool neox : {true, false}) {
      std::vector<float>& table = rope_values_.emplace_back(size_t{2} * kPositions * (kHead / 2));
      for (float& x : table) x = std::normal_distribution<float>()(random_);
      ropes_.push_back({neox, kHead, kPositions, table.data(), table.data() + table.size() / 2});
    }
  }

  std::vector<Matrix> weights() const {
    std::vector<Matrix> all;
    for (const RandomMatrix& m : made_) all.push_back(m.view());
    return all;
  }

  MoeSpec moe(uint32_t layer) const {
    return {.layer = layer,
            .routing = {.n_experts = kExperts, .n_used = kUsed, .renormalise = true},
            .router = kRouter,
            .selection_bias = layer == 0 ? kNoWeight : WeightId{kBias},
            .experts = std::span(experts_).subspan(size_t{layer} * kExperts, kExperts)};
  }
  ExpertMatrices expert(uint32_t layer, uint32_t e) const {
    const ExpertWeights& w = experts_[layer * kExperts + e];
    return {made_[w.gate].view(), made_[w.up].view(), made_[w.down].view()};
  }

  static ComputeSizes sizes() {
    return {.max_rows = kMaxRows,
            .max_width = kHidden,
            .hidden = kHidden,
            .experts = kExperts,
            .max_experts_used = kUsed,
            .expert_width = kExpertWidth,
            .max_head_length = kHead,
            .buffer_widths = kWidths};
  }
  const std::vector<RopeTable>& ropes() const { return ropes_; }

  DeviceSpec spec(uint32_t slots) const {
    DeviceSpec spec{.pools = {{.slots = slots}},
                    .layers = std::vector<DeviceLayer>(kLayers, {.on_device = true,
                                                                 .kv_heads = kKvHeads,
                                                                 .key_length = kHead,
                                                                 .value_length = kHead,
                                                                 .pool = 0,
                                                                 .n_experts = kExperts}),
                    .ropes = ropes_,
                    .kv_pages = kPages,
                    .vocabulary = kVocabulary,
                    .logits_rows = 4,
                    .sizes = sizes()};
    for (WeightId id = 0; id < made_.size(); ++id) {
      const Matrix& m = made_[id].matrix;
      spec.weights.push_back({m.type, m.rows, m.cols, id < kFirstExpert});
    }
    const auto part = [&](uint32_t i) { return spec.weights[kFirstExpert + i]; };
    spec.pools[0].layout = {part(0), part(1), part(2)};
    return spec;
  }

 private:
  void add(TensorType type, uint32_t rows, uint32_t cols, Layout layout) {
    made_.push_back(test_support::random_matrix(type, rows, cols, random_, layout));
  }

  std::mt19937_64 random_;
  std::vector<RandomMatrix> made_;
  std::vector<ExpertWeights> experts_;
  std::vector<std::vector<float>> rope_values_;
  std::vector<RopeTable> ropes_;
};

// One for all tests of a layout: making it takes a while.
inline const Model& test_model(Layout layout = Layout::kInterleaved) {
  static const Model interleaved(Layout::kInterleaved), file(Layout::kFile);
  return layout == Layout::kInterleaved ? interleaved : file;
}

// Two sequences: one goes on at position 0, the other at 40 (pages 3 and 5).
struct TestStep {
  explicit TestStep(uint32_t first_rows = 5, uint32_t second_rows = 2, uint32_t seed = 0) {
    for (uint32_t i = 0; i < first_rows + second_rows; ++i) {
      tokens.push_back(static_cast<int32_t>((7 * i + seed) % kVocabulary));
      positions.push_back(i < first_rows ? i : 40 + i - first_rows);
    }
    pieces.push_back({0, first_rows, 0, first_pages});
    if (second_rows > 0) pieces.push_back({first_rows, second_rows, 40, second_pages});
  }
  TestStep(const TestStep&) = delete;
  Step step() const { return {tokens, positions, pieces}; }
  std::vector<int32_t> tokens;
  std::vector<uint32_t> positions;
  std::vector<uint32_t> first_pages = {2}, second_pages = {3, 5};
  std::vector<Piece> pieces;
};

// The CPU with the same model.
struct Reference {
  explicit Reference(const Model& model) : pool(*sys::ThreadPool::create(1)) {
    constexpr size_t kPage = size_t{2} * kPagePositions * kKvHeads * kHead;
    for (auto& memory : kv_memory) {
      memory.resize(2 * kPage * kPages);
      kv.push_back({memory.data(), memory.data() + kPage * kPages, kPage, kPage});
    }
    compute =
        std::make_unique<cpu::CpuCompute>(*pool, cpu::kernels(cpu::best_instruction_set()), Model::sizes(),
                                          model.weights(), KvTypes{}, kv, model.ropes());
  }
  std::vector<float> rows(BufferId id) {
    const auto span = compute->buffer_rows(id);
    return {span.begin(), span.end()};
  }
  std::unique_ptr<sys::ThreadPool> pool;
  std::array<std::vector<std::byte>, kLayers> kv_memory;
  std::vector<cpu::KvLayer> kv;
  std::unique_ptr<cpu::CpuCompute> compute;
};

inline std::unique_ptr<Device> open_device(const HostDeviceOptions& options = {}) {
  auto device = open_host(options);
  EXPECT_TRUE(device) << device.error().message;
  return std::move(*device);
}

inline Result<void> upload_all(Device& device, const Model& model) {
  const std::vector<Matrix> weights = model.weights();
  for (WeightId id = 0; id < kFirstExpert; ++id) SW_TRY(device.upload(id, weights[id]));
  return {};
}

// Prepared, dense weights uploaded.
inline std::unique_ptr<Device> ready_device(const Model& model, uint32_t slots,
                                            const HostDeviceOptions& options = {}) {
  auto device = open_device(options);
  const auto prepared = device->prepare(model.spec(slots));
  EXPECT_TRUE(prepared) << prepared.error().message;
  const auto uploaded = upload_all(*device, model);
  EXPECT_TRUE(uploaded) << uploaded.error().message;
  return device;
}

// Everything runs from the slots: expert e of layer l lies in slot l * kExperts + e.
class ResidentRunner final : public ExpertRunner {
 public:
  ResidentRunner(Device& device, const Model& model) : device_(device) {
    Point last;
    for (uint32_t layer = 0; layer < kLayers; ++layer)
      for (uint32_t e = 0; e < kExperts; ++e)
        last = device.copy_expert(0, layer * kExperts + e, model.expert(layer, e), {});
    device.stream_wait(last);
    for (uint32_t layer = 0; layer < kLayers; ++layer)
      for (uint32_t e = 0; e < kExperts; ++e) device.set_slot(layer, e, layer * kExperts + e);
  }
  void moe(BufferId x, const MoeSpec& spec, BufferId out) override {
    device_.route(x, spec, Device::ForHost::kNo);
    device_.experts_in_table(x, spec);
    device_.combine(spec, out);
  }

 private:
  Device& device_;
};

// One layer's worth of every operation; `after` is called behind each with the buffer that it wrote.
template <class After>
void run_all(Compute& c, const Model& model, const Step& step, uint32_t layers, After&& after) {
  c.begin(step);
  c.embed(kEmbedding, kX), after(kX);
  for (uint32_t layer = 0; layer < layers; ++layer) {
    const AttentionSpec attention{.layer = layer,
                                  .heads = kHeads,
                                  .kv_heads = kKvHeads,
                                  .key_length = kHead,
                                  .value_length = kHead,
                                  .scale = 0.125f,
                                  .window = layer * 3};
    c.rms_norm(kX, kHidden, kNorm, 1e-6f, kNormed), after(kNormed);
    const Linear qkv[] = {{kQuery, kQueryBias, kQ}, {kKeyW, kNoWeight, kK}, {kValueW, kNoWeight, kV}};
    c.linear(kNormed, qkv), after(kQ), after(kK), after(kV);
    c.head_norm(kQ, kHeads, kHead, kHeadNorm, 1e-6f), after(kQ);
    c.rope(kQ, {.table = layer, .heads = kHeads, .head_length = kHead}), after(kQ);
    c.store_kv(kK, kV, attention);
    c.attention(kQ, attention, kAttended), after(kAttended);
    const Linear out[] = {{kOutput, kNoWeight, kBranch}};
    c.linear(kAttended, out), after(kBranch);
    c.add(kX, kBranch, kHidden), after(kX);
    c.rms_norm(kX, kHidden, kNorm, 1e-6f, kNormed), after(kNormed);
    c.moe(kNormed, model.moe(layer), kBranch), after(kBranch);
    c.add(kX, kBranch, kHidden), after(kX);
    const Linear dense[] = {
        {kDenseGate, kNoWeight, kGate}, {kDenseUp, kNoWeight, kUp}, {kOneGate, kNoWeight, kOne}};
    c.linear(kNormed, dense), after(kGate), after(kUp), after(kOne);
    c.silu_mul(kGate, kUp, kWidth), after(kGate);
    const Linear down[] = {{kDenseDown, kNoWeight, kBranch}};
    c.linear(kGate, down), after(kBranch);
    c.add_gated(kX, kBranch, kOne, kHidden), after(kX);
  }
}

}  // namespace spillway::backend
