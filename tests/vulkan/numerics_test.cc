// Each operation alone against its definition in numerics/, with values of every exponent, infinities and
// NaNs.
#include <algorithm>

#include "numerics/attention.h"
#include "numerics/glu.h"
#include "numerics/norm.h"
#include "numerics/rope.h"
#include "numerics/router.h"
#include "vulkan/rig.h"

namespace spillway::vulkan {
namespace {

using Kind = Random::Kind;
constexpr Kind kKinds[] = {Kind::kOrdinary, Kind::kWide, Kind::kWild};

class Numerics : public Rig {
 protected:
  Random random{23};

  // Runs `operation` on buffers filled with `inputs`, and reads buffer `result` (rows, width).
  template <class Operation>
  std::vector<float> run(Device& on, const Step& step,
                         std::initializer_list<const std::vector<float>*> inputs, BufferId result,
                         uint32_t width, Operation&& operation) {
    on.begin(step);
    BufferId id = 0;
    for (const std::vector<float>* input : inputs) on.write_buffer(id++, input->data());
    operation();
    std::vector<float> out(size_t{step.rows()} * width);
    on.read_buffer(result, out.data());
    const auto done = on.finish();
    EXPECT_TRUE(done) << done.error().message;
    return out;
  }
};

TEST_F(Numerics, Norms) {
  constexpr uint32_t kWidth = 2100;  // more than norm.comp's tile
  for (const uint32_t n : {1u, 15u, 16u, 100u, kWidth}) {
    const TestMatrix weight = vector_of(random.values(n, Kind::kWide));
    std::vector<float> w(n);
    std::memcpy(w.data(), weight.file.data(), n * 4);
    DeviceSpec spec = small_spec({kWidth, kWidth + 2}, 3);
    spec.weights = {weight.shape()};
    Device& on = ready(spec);
    ASSERT_TRUE(on.upload(0, weight.in_file()));
    const TestStep step(3);
    for (const Kind kind : kKinds)
      for (const WeightId id : {WeightId{0}, kNoWeight}) {
        const std::vector<float> x = random.values(3 * kWidth, kind);
        std::vector<float> expected(n);
        const auto y = run(on, step.step(), {&x}, 1, kWidth + 2, [&] { on.rms_norm(0, n, id, 1e-5f, 1); });
        for (uint32_t r = 0; r < 3; ++r) {
          numerics::rms_norm(x.data() + r * kWidth, id == 0 ? w.data() : nullptr, n, 1e-5f, expected.data());
          ASSERT_TRUE(same_bits(expected, {y.data() + r * (kWidth + 2), n})) << n << " values, row " << r;
        }
        const uint32_t heads = std::min(5u, kWidth / n);
        const auto z = run(on, step.step(), {&x}, 0, kWidth, [&] { on.head_norm(0, heads, n, id, 1e-5f); });
        for (uint32_t r = 0; r < 3; ++r)
          for (uint32_t h = 0; h < heads; ++h) {
            const size_t at = r * kWidth + h * n;
            numerics::rms_norm(x.data() + at, id == 0 ? w.data() : nullptr, n, 1e-5f, expected.data());
            ASSERT_TRUE(same_bits(expected, {z.data() + at, n})) << n << " values, head " << h;
          }
      }
  }
}

TEST_F(Numerics, Elementwise) {
  constexpr uint32_t kWidth = 333;
  Device& on = ready(small_spec({kWidth, kWidth + 1, 2}, 4));
  for (const uint32_t rows : {1u, 4u}) {
    const TestStep step(rows);
    for (const Kind kind : kKinds) {
      const std::vector<float> y = random.values(size_t{rows} * kWidth, kind),
                               x = random.values(size_t{rows} * (kWidth + 1), kind),
                               gate = random.values(size_t{rows} * 2, kind);
      std::vector<float> gated = y, added = y, scaled = y;
      for (uint32_t r = 0; r < rows; ++r) {
        numerics::silu_mul(gated.data() + r * kWidth, x.data() + r * (kWidth + 1), kWidth);
        numerics::add(added.data() + r * kWidth, x.data() + r * (kWidth + 1), kWidth);
        numerics::add_scaled(scaled.data() + r * kWidth, x.data() + r * (kWidth + 1),
                             numerics::sigmoid(gate[r * 2]), kWidth);
      }
      const auto all = {&y, &x, &gate};
      EXPECT_TRUE(same_bits(gated, run(on, step.step(), all, 0, kWidth, [&] { on.silu_mul(0, 1, kWidth); })));
      EXPECT_TRUE(same_bits(added, run(on, step.step(), all, 0, kWidth, [&] { on.add(0, 1, kWidth); })));
      EXPECT_TRUE(
          same_bits(scaled, run(on, step.step(), all, 0, kWidth, [&] { on.add_gated(0, 1, 2, kWidth); })));
    }
  }
}

// exp, reciprocal and silu over every exponent, through silu_mul with up = 1.
TEST_F(Numerics, SiluOverAllMagnitudes) {
  constexpr uint32_t kWidth = 1 << 16;
  Device& on = ready(small_spec({kWidth, kWidth}, 1));
  std::vector<float> x(kWidth), ones(kWidth, 1.0f);
  for (uint32_t i = 0; i < kWidth; ++i) x[i] = numerics::float_of((i << 16) | (random.bits() & 0xffffu));
  std::vector<float> expected = x;
  numerics::silu_mul(expected.data(), ones.data(), kWidth);
  const TestStep step(1);
  EXPECT_TRUE(
      same_bits(expected, run(on, step.step(), {&x, &ones}, 0, kWidth, [&] { on.silu_mul(0, 1, kWidth); })));
}

TEST_F(Numerics, Ropes) {
  constexpr uint32_t kHead = 22, kHeads = 3, kPositions = 9;
  for (const bool neox : {true, false})
    for (const uint32_t length : {kHead, 10u}) {
      const std::vector<float> cosines = random.values(kPositions * length / 2),
                               sines = random.values(kPositions * length / 2);
      DeviceSpec spec = small_spec({kHead * kHeads + 1}, 2);
      spec.ropes = {{neox, length, kPositions, cosines.data(), sines.data()}};
      Device& on = ready(spec);
      const TestStep step(2, 6);
      for (const Kind kind : kKinds) {
        const std::vector<float> x = random.values(2 * (kHead * kHeads + 1), kind);
        std::vector<float> expected = x;
        for (uint32_t r = 0; r < 2; ++r) {
          const size_t at = (6 + r) * (length / 2);
          (neox ? numerics::rope_neox : numerics::rope_normal)(expected.data() + r * (kHead * kHeads + 1),
                                                               kHeads, kHead, length, cosines.data() + at,
                                                               sines.data() + at);
        }
        EXPECT_TRUE(same_bits(expected, run(on, step.step(), {&x}, 0, kHead * kHeads + 1,
                                            [&] { on.rope(0, {.heads = kHeads, .head_length = kHead}); })))
            << neox << " " << length;
      }
    }
}

// Keys and values of both types and odd lengths, a window, chunks that are full, begun and left out.
class AttentionTypes : public Numerics, public testing::WithParamInterface<std::tuple<KvType, KvType>> {};

TEST_P(AttentionTypes, EqualsTheDefinition) {
  const auto [key_type, value_type] = GetParam();
  constexpr uint32_t kHeads = 4, kKvHeads = 2, kKey = 19, kValue = 131, kContext = 301;
  const auto stored = [](KvType type, float x) {
    return type == KvType::kF32 ? numerics::flush(x) : numerics::f16_to_f32(numerics::f32_to_f16(x));
  };
  DeviceSpec spec = small_spec({kHeads * kKey, kKvHeads * kKey, kKvHeads * kValue, kHeads * kValue}, 64);
  spec.kv_types = {key_type, value_type};
  spec.kv_pages = 100;  // so many chunks that those of a single row are split
  spec.layers = {{.on_device = true, .kv_heads = 1, .key_length = 3, .value_length = 5},
                 {.on_device = true, .kv_heads = kKvHeads, .key_length = kKey, .value_length = kValue}};
  spec.sizes.max_head_length = kValue;
  for (const Kind kind : {Kind::kOrdinary, Kind::kWild}) {
    Device& on = ready(spec);
    AttentionSpec attention{.layer = 1,
                            .heads = kHeads,
                            .kv_heads = kKvHeads,
                            .key_length = kKey,
                            .value_length = kValue,
                            .scale = 0.3f};
    // Wild values in a few positions only, else all results are NaN.
    std::vector<float> keys = random.values(kContext * kKvHeads * kKey),
                       values = random.values(kContext * kKvHeads * kValue);
    if (kind == Kind::kWild)
      for (const uint32_t p : {3u, 130u, 299u}) {
        for (uint32_t i = 0; i < kKvHeads * kKey; ++i) keys[p * kKvHeads * kKey + i] = random.value(kind);
        for (uint32_t i = 0; i < kKvHeads * kValue; ++i)
          values[p * kKvHeads * kValue + i] = random.value(kind);
      }
    const std::vector<uint32_t> pages = {7, 0, 11, 3, 2, 10, 1, 9, 8, 4};
    for (uint32_t first = 0; first < kContext; first += 64) {
      TestStep step(std::min(64u, kContext - first), first);
      step.pieces[0].pages = pages;
      on.begin(step.step());
      on.write_buffer(1, keys.data() + size_t{first} * kKvHeads * kKey);
      on.write_buffer(2, values.data() + size_t{first} * kKvHeads * kValue);
      on.store_kv(1, 2, attention);
    }
    for (const uint32_t window : {0u, 5u, 140u})
      for (const auto& [rows, first] :
           {std::pair(3u, 0u), {3u, 126u}, {3u, kContext - 3}, {1u, 0u}, {1u, 127u}, {1u, kContext - 1}}) {
        attention.window = window;
        TestStep step(rows, first);
        step.pieces[0].pages = pages;
        const std::vector<float> q =
            random.values(rows * kHeads * kKey, kind == Kind::kWild ? Kind::kWide : kind);
        const auto out =
            run(on, step.step(), {&q}, 3, kHeads * kValue, [&] { on.attention(0, attention, 3); });
        for (uint32_t r = 0; r < rows; ++r)
          for (uint32_t h = 0; h < kHeads; ++h) {
            const uint32_t kv_head = h / (kHeads / kKvHeads), end = first + r + 1;
            const auto key = [&](uint32_t t, uint32_t d) {
              return stored(key_type, keys[(t * kKvHeads + kv_head) * kKey + d]);
            };
            const auto value = [&](uint32_t t, uint32_t d) {
              return stored(value_type, values[(t * kKvHeads + kv_head) * kValue + d]);
            };
            std::vector<float> expected(kValue), scratch(numerics::attention_scratch(kKey, kValue));
            numerics::attention({.key_length = kKey,
                                 .value_length = kValue,
                                 .first_key = window != 0 && end > window ? end - window : 0,
                                 .end_key = end,
                                 .scale = attention.scale},
                                q.data() + (r * kHeads + h) * kKey, key, value, expected.data(),
                                scratch.data());
            ASSERT_TRUE(same_bits(expected, {out.data() + (r * kHeads + h) * kValue, kValue}))
                << "row " << r << ", head " << h << ", window " << window << ", first " << first;
          }
      }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionTypes,
                         testing::Combine(testing::Values(KvType::kF16, KvType::kF32),
                                          testing::Values(KvType::kF16, KvType::kF32)),
                         [](const testing::TestParamInfo<AttentionTypes::ParamType>& param) {
                           return fmt::format("{}_{}", kv_type_name(std::get<0>(param.param)),
                                              kv_type_name(std::get<1>(param.param)));
                         });

// Ids and weights of every rule, with ties, NaNs, few and many experts. The weights show through combine()
// with outputs that are 1 for one rank and 0 for the others.
TEST_F(Numerics, Routing) {
  using numerics::Gating;
  struct Case {
    uint32_t n_experts, n_used, n_groups, n_groups_used, group_top;
  };
  for (const Case& c : {Case{8, 2, 1, 1, 2},
                        {130, 9, 1, 1, 2},
                        {64, 8, 8, 3, 2},
                        {40, 40, 1, 1, 2},
                        {96, 6, 12, 4, 1},
                        {300, 3, 100, 7, 5}}) {
    const uint32_t hidden = 32;
    // A router of one F32 column a logit: column 0 is the token's logit factor.
    TestMatrix router{TensorType::kF32, c.n_experts, hidden, {}, {}};
    std::vector<float> weights(size_t{c.n_experts} * hidden);
    for (uint32_t e = 0; e < c.n_experts; ++e)
      for (uint32_t t = 0; t < 6; ++t)
        weights[e * hidden + t] = t == 0   ? random.value(Kind::kOrdinary)
                                  : t == 1 ? static_cast<float>(random.below(4))
                                  : t == 2 ? random.value(Kind::kWide)
                                  : t == 3 ? 1.0f
                                  : t == 4 ? random.value(Kind::kWild)
                                           : random.value(Kind::kOrdinary) * 20;
    router.file.resize(weights.size() * 4);
    std::memcpy(router.file.data(), weights.data(), router.file.size());
    const std::vector<float> bias = random.values(c.n_experts);
    const TestMatrix bias_vector = vector_of(bias);
    DeviceSpec spec = small_spec({hidden, hidden}, 6);
    spec.weights = {router.shape(), bias_vector.shape()};
    spec.layers = {{.on_device = true}};
    spec.sizes.experts = c.n_experts;
    spec.sizes.max_experts_used = c.n_used;
    Device& on = ready(spec);
    ASSERT_TRUE(on.upload(0, router.in_file()));
    ASSERT_TRUE(on.upload(1, bias_vector.in_file()));
    std::vector<float> x(6 * hidden);
    for (uint32_t t = 0; t < 6; ++t) x[t * hidden + t] = 1.0f;
    const std::vector<float> logits = reference_product(router, x, 6, hidden);
    for (const Gating gating : {Gating::kSoftmax, Gating::kSigmoid, Gating::kSoftmaxOfTopK})
      for (const bool with_bias : {false, true})
        for (const bool renormalise : {false, true}) {
          MoeSpec moe{.routing = {.gating = gating,
                                  .n_experts = c.n_experts,
                                  .n_used = c.n_used,
                                  .n_groups = c.n_groups,
                                  .n_groups_used = c.n_groups_used,
                                  .group_top = c.group_top,
                                  .renormalise = renormalise,
                                  .scale = with_bias ? 2.5f : 1.0f},
                      .router = 0,
                      .selection_bias = with_bias ? WeightId{1} : kNoWeight};
          const TestStep step(6);
          on.begin(step.step());
          on.write_buffer(0, x.data());
          on.route(0, moe, Device::ForHost::kNow);
          ASSERT_TRUE(on.wait(on.mark()));
          const Routed routed = on.routed();
          EXPECT_TRUE(same_bits(x, routed.x));
          const uint32_t pairs = 6 * c.n_used;
          std::vector<uint32_t> ids(pairs), all(pairs);
          std::vector<float> expected(pairs), row(c.n_experts), outputs(size_t{pairs} * hidden),
              sums(6 * hidden);
          numerics::RouterParams params = moe.routing;
          params.bias = with_bias ? bias.data() : nullptr;
          for (uint32_t t = 0; t < 6; ++t) {
            std::copy_n(logits.data() + t * c.n_experts, c.n_experts, row.data());
            numerics::route(params, row.data(), ids.data() + t * c.n_used, expected.data() + t * c.n_used);
          }
          ASSERT_TRUE(std::ranges::equal(ids, routed.ids));
          for (uint32_t i = 0; i < pairs; ++i) {
            all[i] = i;
            if (i % c.n_used < hidden) outputs[i * hidden + i % c.n_used] = 1.0f;
          }
          on.take_outputs(moe, all, outputs.data());
          on.combine(moe, 1);
          std::vector<float> got(6 * hidden);
          on.read_buffer(1, got.data());
          ASSERT_TRUE(on.finish());
          for (uint32_t t = 0; t < 6; ++t) {
            for (uint32_t r = 0; r < c.n_used; ++r)
              numerics::add_scaled(sums.data() + t * hidden, outputs.data() + (t * c.n_used + r) * hidden,
                                   expected[t * c.n_used + r], hidden);
          }
          ASSERT_TRUE(same_bits(sums, got)) << c.n_experts << " experts";
        }
  }
}

}  // namespace
}  // namespace spillway::vulkan
