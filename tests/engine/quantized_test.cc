// How far each quantized type is from the exact forward, beside how far llama.cpp is from it on the same
// files. Both round activations to 8 bits (or not at all) before a product; ours may be no more than a tenth
// farther.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/exact_forward.h"
#include "support/run_engine.h"

namespace spillway {
namespace {

using namespace test_support;

// Of the peer: KL divergence from the exact logits over 384 positions (96 of each family), and the share of
// them with the same largest logit, with an F32 KV cache and with an F16 one. Measured with llama.cpp v0.5.0
// as tests/data/peer_logits/README.md says (flash attention off, no repacking) on the models and tokens that
// this test makes, against a float64 forward of another origin (numpy). The routers are decisive, so that no
// rounding tips the choice of experts: what is compared is arithmetic.
struct Peer {
  TensorType type;
  double f32_mean_kl, f32_max_kl, f32_top1;
  double f16_mean_kl, f16_max_kl, f16_top1;
};
constexpr Peer kPeer[] = {
    {TensorType::kF32, 1.029e-12, 1.018e-11, 1, 2.416e-07, 2.074e-06, 0.9974},
    {TensorType::kF16, 6.98e-07, 2.839e-06, 1, 9.381e-07, 3.781e-06, 1},
    {TensorType::kBF16, 4.628e-05, 0.0002071, 0.9896, 4.598e-05, 0.0001748, 0.9896},
    {TensorType::kQ4_0, 0.0006194, 0.002686, 0.9792, 0.0006173, 0.00282, 0.9714},
    {TensorType::kQ4_1, 0.0006506, 0.00378, 0.9635, 0.0006329, 0.002329, 0.9609},
    {TensorType::kQ5_0, 0.0006385, 0.001851, 0.9688, 0.0006527, 0.003037, 0.9818},
    {TensorType::kQ5_1, 0.0006261, 0.002656, 0.974, 0.0006418, 0.003436, 0.9818},
    {TensorType::kQ8_0, 0.0006618, 0.004324, 0.9766, 0.0006814, 0.003428, 0.9844},
    {TensorType::kQ2_K, 0.001313, 0.008339, 0.9609, 0.001298, 0.006847, 0.9479},
    {TensorType::kQ3_K, 0.001374, 0.003599, 0.9688, 0.001374, 0.003824, 0.9714},
    {TensorType::kQ4_K, 0.001401, 0.006514, 0.9557, 0.001376, 0.004334, 0.9531},
    {TensorType::kQ5_K, 0.00146, 0.00503, 0.9714, 0.001478, 0.005942, 0.9714},
    {TensorType::kQ6_K, 0.00149, 0.005071, 0.9531, 0.001456, 0.004993, 0.9349},
    {TensorType::kIQ4_NL, 0.0006225, 0.002143, 0.9688, 0.0006314, 0.001946, 0.9635},
    {TensorType::kIQ4_XS, 0.001422, 0.004445, 0.9661, 0.001395, 0.005828, 0.9688},
    {TensorType::kMXFP4, 0.0006226, 0.001737, 0.9792, 0.0006475, 0.0027, 0.974},
};

constexpr double kFarther = 1.1;
constexpr double kExactEnough = 1e-9;  // F32: both are at the last digits

ModelSpec spec_of(TensorType type, const std::string& family) {
  return {.family = family,
          .layers = 2,
          .hidden = 256,
          .kv_heads = family == "olmoe" ? 4u : 2u,
          .head_length = 64,
          .experts = 8,
          .expert_width = 256,
          .shared_width = 256,
          .type = type,
          .expert_type = type,
          .decisive_router = true,
          .seed = 100 + static_cast<uint32_t>(type)};
}

class QuantizedTest : public testing::TestWithParam<Peer> {};

TEST_P(QuantizedTest, IsNoFartherFromExactThanThePeer) {
  const Peer& peer = GetParam();
  std::vector<double> exact;
  std::vector<float> f32, f16;
  for (const char* family : {"qwen3moe", "qwen2moe", "llama", "olmoe"}) {
    const ModelSpec spec = spec_of(peer.type, family);
    const ModelFile file(spec);
    const auto tokens = random_tokens(96, spec.vocabulary, spec.seed);
    const auto rows = exact_forward(file.path(), tokens);
    ASSERT_TRUE(rows) << rows.error().message;
    ASSERT_GT(*std::ranges::min_element(rows->gaps), 0.5) << "the router is not decisive";
    exact.insert(exact.end(), rows->rows.begin(), rows->rows.end());
    for (const auto& [kv, all] : {std::pair(cpu::KvType::kF32, &f32), {cpu::KvType::kF16, &f16}}) {
      const auto ours = all_logits(*load_engine(file, {.threads = 2, .kv_types = {kv, kv}}), tokens);
      all->insert(all->end(), ours.begin(), ours.end());
    }
  }
  const Distance a = distance(exact, f32, 300), b = distance(exact, f16, 300);
  const std::string name(info(peer.type).name);
  for (const auto& [kv, ours, mean, max, top1] :
       {std::tuple("F32 KV", &a, peer.f32_mean_kl, peer.f32_max_kl, peer.f32_top1),
        std::tuple("F16 KV", &b, peer.f16_mean_kl, peer.f16_max_kl, peer.f16_top1)}) {
    std::printf(
        "  %-7s %s  mean KL %.3g (peer %.3g, ratio %.2f), largest %.3g (%.3g), top-1 %.4f (%.4f), rms %.3g\n",
        name.c_str(), kv, ours->mean_kl(), mean, ours->mean_kl() / mean, ours->max_kl(), max, ours->same_top1,
        top1, ours->rms);
    EXPECT_LE(ours->mean_kl(), kFarther * mean + kExactEnough) << name << ", " << kv;
    // One position and a few flips of near-ties decide these: they catch a broken corner, not a percent.
    EXPECT_LE(ours->max_kl(), 2 * max + kExactEnough) << name << ", " << kv;
    EXPECT_GE(ours->same_top1, top1 - 0.02) << name << ", " << kv;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, QuantizedTest, testing::ValuesIn(kPeer),
                         [](const auto& test) { return std::string(spillway::info(test.param.type).name); });

}  // namespace
}  // namespace spillway
