// From metadata and tensors to a description: what is refused, what is read past, what is taken from where.
// Damage to files as a user meets it is in tests/cli.
#include "model/describe.h"

#include <gtest/gtest.h>

#include "gguf/writer.h"
#include "model/sizes.h"
#include "support/model_maker.h"

namespace spillway {
namespace {

using namespace test_support;

Result<model::Description> describe(const MadeModel& made) {
  const auto bytes = gguf::write_file(made.source());
  EXPECT_TRUE(bytes);
  const auto header = gguf::parse_header(*bytes, bytes->size());
  EXPECT_TRUE(header);
  return model::describe(header->metadata, header->tensors);
}

void add_tensor(MadeModel& made, const std::string& name, uint64_t n) {
  made.tensors.push_back(
      {name, TensorType::kF32, {n}, std::make_shared<std::vector<std::byte>>(n * sizeof(float))});
}

std::string refusal(const MadeModel& made) {
  const auto result = describe(made);
  return result ? "accepted" : result.error().message;
}

TEST(Describe, EveryFamily) {
  for (const char* family : {"qwen3moe", "qwen2moe", "llama", "olmoe"}) {
    const auto d = describe(make_model({.family = family, .kv_heads = 4}));
    ASSERT_TRUE(d) << family << ": " << d.error().message;
    EXPECT_EQ(d->family, family);
    EXPECT_EQ(d->layers.size(), 2u);
    EXPECT_TRUE(d->unused_tensors.empty()) << d->unused_tensors[0];
    const auto& moe = std::get<model::MoeFfn>(d->layers[1].ffn);
    EXPECT_EQ(moe.experts.size(), 4u);
    EXPECT_EQ(moe.shared.has_value(), d->family == "qwen2moe");
    EXPECT_EQ(moe.renormalize, d->family == "qwen3moe" || d->family == "llama");
    EXPECT_EQ(d->ropes[0].style, d->family == "llama" ? model::RopeStyle::kNormal : model::RopeStyle::kNeox);
  }
}

// A bias that a family doesn't have changes the result when it is left out; a vision tower does not.
TEST(Describe, TensorsWithoutAUse) {
  for (const char* name :
       {"blk.0.ffn_gate_exps.bias", "blk.1.something.weight", "output.bias", "token_embd_norm.weight"}) {
    MadeModel made = make_model({});
    add_tensor(made, name, 32);
    EXPECT_NE(refusal(made).find(name), std::string::npos) << refusal(made);
  }
  MadeModel made = make_model({});
  const std::vector<std::string> harmless = {"v.blk.0.attn_q.weight", "blk.2.nextn.eh_proj.weight",
                                             "blk.0.attn_rot_embd.weight", "mm.0.weight"};
  for (const std::string& name : harmless) add_tensor(made, name, 32);
  const auto d = describe(made);
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->unused_tensors, harmless);
}

TEST(Describe, RopeScaling) {
  const auto rope_of = [](const ModelSpec& spec) {
    const auto d = describe(make_model(spec));
    EXPECT_TRUE(d);
    return d->ropes[0].params;
  };
  EXPECT_EQ(rope_of({}).scaling, numerics::RopeScaling::kNone);
  EXPECT_EQ(rope_of({.rope_scaling = "linear"}).scaling, numerics::RopeScaling::kLinear);
  EXPECT_EQ(rope_of({.rope_scaling = "none"}).scaling, numerics::RopeScaling::kNone);
  // A factor without a type is linear, as the peer has it
  // (tests/data/peer_logits/qwen3moe-unnamed-scaling.txt).
  EXPECT_EQ(rope_of({.rope_scaling = "unnamed"}).scaling, numerics::RopeScaling::kLinear);
  EXPECT_EQ(rope_of({.rope_scaling = "unnamed"}).factor, 4.0);
  EXPECT_EQ(rope_of({.rope_scaling = "linear", .rope_factor = 0.0f}).scaling, numerics::RopeScaling::kNone);
  EXPECT_EQ(rope_of({.rope_scaling = "yarn", .rope_original_context = 99}).original_context, 99);
}

// Qwen's first files had only the width of all used experts together.
TEST(Describe, ExpertWidthOfOldQwenFiles) {
  MadeModel made = make_model({.family = "qwen2moe", .used = 2, .expert_width = 32});
  made.metadata.erase("qwen2moe.expert_feed_forward_length");
  made.metadata.set("qwen2moe.feed_forward_length", uint32_t{64});
  EXPECT_EQ(refusal(made), "accepted");
}

TEST(Describe, ExpertsWithoutARouter) {
  MadeModel made = make_model({});
  std::erase_if(made.tensors, [](const auto& t) { return t.name == "blk.1.ffn_gate_inp.weight"; });
  EXPECT_NE(refusal(made).find("blk.1.ffn_gate_inp.weight"), std::string::npos) << refusal(made);
}

TEST(Describe, AFamilyIsNamedWithoutItsControlCharacters) {
  MadeModel made = make_model({});
  made.metadata.set("general.architecture", "\x1b[31mred");
  EXPECT_EQ(refusal(made).find('\x1b'), std::string::npos);
  EXPECT_NE(refusal(made).find("red"), std::string::npos);
}

TEST(Describe, SizesCountEveryByteOnce) {
  for (const ModelSpec& spec : {ModelSpec{}, ModelSpec{.family = "qwen2moe"}, ModelSpec{.tied = true},
                                ModelSpec{.layers = 3, .dense_layers = {0, 2}},
                                ModelSpec{.family = "llama", .split_experts = true}}) {
    const MadeModel made = make_model(spec);
    uint64_t bytes = 0;
    for (const auto& tensor : made.tensors) bytes += tensor.bytes->size();
    const auto d = describe(made);
    ASSERT_TRUE(d);
    EXPECT_EQ(model::measure_sizes(*d).total_bytes(), bytes);
    uint64_t by_type = 0;
    for (const auto& [group, types] : model::bytes_by_type(*d))
      for (const auto& [type, n] : types) by_type += n;
    EXPECT_EQ(by_type, bytes);
  }
  const auto d = describe(make_model({.layers = 3, .dense_layers = {0, 2}}));
  EXPECT_EQ(model::measure_sizes(*d).moe_layers, 1u);
}

}  // namespace
}  // namespace spillway
