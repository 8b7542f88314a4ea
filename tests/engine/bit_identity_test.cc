// The promise that placement never changes a bit: the same logits, byte for byte, whatever the threads,
// kernels, load mode, prompt pieces, micro-batch and neighbours.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/run_engine.h"

namespace spillway {
namespace {

using namespace test_support;
using engine::BatchItem;
using engine::LoadMode;
using engine::Options;
using engine::SequenceId;
using engine::Want;

// NaNs too: they would compare unequal as floats.
bool same_bytes(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::vector<cpu::InstructionSet> instruction_sets() {
  std::vector<cpu::InstructionSet> sets;
  for (const auto set :
       {cpu::InstructionSet::kScalar, cpu::InstructionSet::kAvx2, cpu::InstructionSet::kAvx512})
    if (set <= cpu::best_instruction_set()) sets.push_back(set);
  return sets;
}

struct Mix {
  const char* name;
  TensorType dense, experts;
  ModelSpec shape;
};

// Shapes whose matrices have row counts off the groups of 16, heads of odd sizes, and experts of odd widths.
const ModelSpec kSuper{.layers = 2, .hidden = 256, .head_length = 64, .experts = 5, .expert_width = 256};
const ModelSpec kBlocks{.family = "qwen2moe",
                        .layers = 2,
                        .hidden = 96,
                        .heads = 4,
                        .kv_heads = 1,
                        .head_length = 24,
                        .experts = 6,
                        .used = 3,
                        .expert_width = 160,
                        .shared_width = 64,
                        .vocabulary = 301};
const ModelSpec kOdd{.family = "llama",
                     .layers = 2,
                     .hidden = 72,
                     .heads = 3,
                     .kv_heads = 1,
                     .head_length = 20,
                     .experts = 7,
                     .used = 3,
                     .expert_width = 37,
                     .vocabulary = 301};
const ModelSpec kFull{.family = "olmoe",
                      .layers = 2,
                      .hidden = 256,
                      .heads = 8,
                      .kv_heads = 8,
                      .head_length = 32,
                      .experts = 4,
                      .expert_width = 256};

const Mix kMixes[] = {
    {"Q4_K_with_Q6_K", TensorType::kQ4_K, TensorType::kQ6_K, kSuper},
    {"Q6_K_with_Q8_0", TensorType::kQ6_K, TensorType::kQ8_0, kSuper},
    {"Q8_0_with_Q4_0", TensorType::kQ8_0, TensorType::kQ4_0, kBlocks},
    {"F16_with_F32", TensorType::kF16, TensorType::kF32, kOdd},
    {"BF16_with_F16", TensorType::kBF16, TensorType::kF16, kOdd},
    {"Q5_K_with_MXFP4", TensorType::kQ5_K, TensorType::kMXFP4, kFull},
    {"Q2_K_with_Q3_K", TensorType::kQ2_K, TensorType::kQ3_K, kSuper},
    {"IQ4_XS_with_IQ4_NL", TensorType::kIQ4_XS, TensorType::kIQ4_NL, kFull},
    {"Q5_1_with_Q4_1", TensorType::kQ5_1, TensorType::kQ4_1, kBlocks},
    {"F32_with_Q5_0", TensorType::kF32, TensorType::kQ5_0, kBlocks},
};

ModelSpec spec_of(const Mix& mix) {
  ModelSpec spec = mix.shape;
  spec.type = mix.dense;
  spec.expert_type = mix.experts;
  return spec;
}

constexpr backend::KvTypes kKvTypes[] = {{cpu::KvType::kF16, cpu::KvType::kF16},
                                         {cpu::KvType::kF32, cpu::KvType::kF32},
                                         {cpu::KvType::kF16, cpu::KvType::kF32},
                                         {cpu::KvType::kF32, cpu::KvType::kF16}};

class MixTest : public testing::TestWithParam<Mix> {};

TEST_P(MixTest, ThreadsKernelsAndLoadModes) {
  const ModelSpec spec = spec_of(GetParam());
  const ModelFile file(spec);
  const auto tokens = random_tokens(19, spec.vocabulary, 1);
  for (const backend::KvTypes kv : kKvTypes) {
    const auto reference =
        all_logits(*load_engine(file, {.threads = 1, .context = 64, .kv_types = kv}), tokens);
    for (const float value : reference) ASSERT_TRUE(std::isfinite(value));
    for (const cpu::InstructionSet set : instruction_sets())
      for (const LoadMode mode : {LoadMode::kRead, LoadMode::kMmap, LoadMode::kDirect})
        for (const uint32_t threads : {1u, 2u, 3u}) {
          if ((kv != kKvTypes[0] || mode == LoadMode::kDirect) && threads != 2) continue;
          const auto engine = load_engine(file, {.load_mode = mode,
                                                 .threads = threads,
                                                 .context = 64,
                                                 .ubatch = 16 + threads,
                                                 .kv_types = kv,
                                                 .instruction_set = set});
          EXPECT_TRUE(same_bytes(all_logits(*engine, tokens), reference))
              << cpu::kernels(set).name << ", mode " << engine::load_mode_name(mode) << ", " << threads
              << " threads";
        }
  }
}

TEST_P(MixTest, PromptPieces) {
  const ModelSpec spec = spec_of(GetParam());
  const ModelFile file(spec);
  const auto tokens = random_tokens(150, spec.vocabulary, 2);
  const auto engine = load_engine(file, {.load_mode = LoadMode::kRead, .threads = 2, .context = 256});
  const auto reference = all_logits(*engine, tokens, 1);
  for (const size_t piece : {7, 64, 512})
    EXPECT_TRUE(same_bytes(all_logits(*engine, tokens, piece), reference)) << "pieces of " << piece;
  for (const uint32_t ubatch : {5u, 33u, 128u}) {
    const auto other =
        load_engine(file, {.load_mode = LoadMode::kMmap, .threads = 2, .context = 256, .ubatch = ubatch});
    EXPECT_TRUE(same_bytes(all_logits(*other, tokens), reference)) << "micro-batches of " << ubatch;
  }
}

INSTANTIATE_TEST_SUITE_P(Mixes, MixTest, testing::ValuesIn(kMixes),
                         [](const auto& mix) { return mix.param.name; });

// A small model in which everything that is quantized is, for the tests of sequences.
const ModelSpec kSmall{.layers = 2,
                       .hidden = 64,
                       .vocabulary = 300,
                       .type = TensorType::kQ8_0,
                       .expert_type = TensorType::kQ8_0};

TEST(BitIdentity, LockedMemory) {
  const ModelFile file(kSmall);
  const auto tokens = random_tokens(9, 300, 3);
  const auto reference = all_logits(*load_engine(file, {.load_mode = LoadMode::kRead}), tokens);
  const auto locked = engine::Engine::load({.path = file.path(), .load_mode = LoadMode::kMlock});
  if (!locked) {
    EXPECT_NE(locked.error().message.find("lock"), std::string::npos) << locked.error().message;
    GTEST_SKIP() << "memory cannot be locked here: " << locked.error().message;
  }
  EXPECT_TRUE(same_bytes(all_logits(**locked, tokens), reference));
}

struct Side {
  const char* name;
  engine::DeviceOptions device;
};
const Side kSides[] = {
    {"Cpu", {.device = "none"}},
    {"Resident", {.device = "host"}},
    {"Cached", {.device = "host", .experts_on_host = true, .cache = {engine::CacheSize::Unit::kPercent, 40}}},
    {"OneLayer",
     {.device = "host", .layers = 1, .experts_on_host = true, .cache = {engine::CacheSize::Unit::kSlots, 3}}},
};

// Sequences side by side, on the CPU and on a device in its several ways.
class OnEachDevice : public testing::TestWithParam<Side> {
 protected:
  static std::unique_ptr<engine::Engine> load(const ModelFile& file, Options options) {
    options.device = GetParam().device;
    options.device.host.memory_bytes = 256 << 20;
    return load_engine(file, options);
  }
};

INSTANTIATE_TEST_SUITE_P(Sides, OnEachDevice, testing::ValuesIn(kSides),
                         [](const auto& side) { return side.param.name; });

// Case F23: the last micro-batch of a prompt holds 1 to 16 tokens.
TEST_P(OnEachDevice, OddTails) {
  ModelSpec spec = spec_of(kMixes[0]);
  spec.layers = 1;
  const ModelFile file(spec);
  const auto engine = load(file, {.threads = 2, .context = 544, .ubatch = 512});
  const auto tokens = random_tokens(528, spec.vocabulary, 4);
  const auto one_by_one = all_logits(*engine, tokens, 1);
  for (size_t n = 513; n <= 528; ++n) {
    const SequenceId sequence = engine->open_sequence();
    const BatchItem item{.sequence = sequence, .tokens = std::span(tokens).first(n), .want = Want::kLast};
    std::vector<float> last;
    ASSERT_TRUE(engine->decode({&item, 1}, [&](size_t, size_t, std::span<const float> row) {
      last.assign(row.begin(), row.end());
    }));
    EXPECT_TRUE(same_bytes(last, std::span(one_by_one).subspan((n - 1) * spec.vocabulary, spec.vocabulary)))
        << n << " tokens";
    engine->close_sequence(sequence);
  }
}

TEST_P(OnEachDevice, NeighboursInTheBatch) {
  const ModelFile file(kSmall);
  const auto tokens = random_tokens(70, 300, 5), others = random_tokens(200, 300, 6);
  for (const uint32_t ubatch : {4u, 16u, 512u}) {
    const auto engine = load(file, {.threads = 2, .context = 2048, .ubatch = ubatch});
    const auto reference = all_logits(*engine, tokens);
    // Before ours: a decoding sequence and a prompt; after it: another prompt, which wants all of its rows.
    const SequenceId before = engine->open_sequence(), prompt = engine->open_sequence(),
                     own = engine->open_sequence(), after = engine->open_sequence();
    append(*engine, before, std::span(others).first(45));
    std::vector<float> rows(reference.size());
    size_t at = 0, other_at = 0;
    for (const size_t n : {1, 30, 1, 17, 21}) {
      const BatchItem items[] = {
          {.sequence = before, .tokens = std::span(others).subspan(100 + other_at, 1), .want = Want::kLast},
          {.sequence = prompt, .tokens = std::span(others).subspan(other_at, 9), .want = Want::kNothing},
          {.sequence = own, .tokens = std::span(tokens).subspan(at, n), .want = Want::kAll},
          {.sequence = after, .tokens = std::span(others).subspan(other_at, n + 2), .want = Want::kAll}};
      ASSERT_TRUE(engine->decode(items, [&](size_t item, size_t token, std::span<const float> row) {
        if (item == 2)
          std::copy(row.begin(), row.end(), rows.begin() + static_cast<ptrdiff_t>((at + token) * 300));
      }));
      at += n;
      other_at += 3;
    }
    EXPECT_TRUE(same_bytes(rows, reference)) << "micro-batches of " << ubatch;
  }
}

TEST_P(OnEachDevice, ForksEqualFreshOnes) {
  const ModelFile file(kSmall);
  const auto engine = load(file, {.context = 1024});
  const auto start = random_tokens(70, 300, 7), left = random_tokens(40, 300, 8),
             right = random_tokens(40, 300, 9);
  for (const uint32_t length : {1u, 31u, 32u, 33u, 64u, 70u}) {
    const auto fresh = [&](const std::vector<int32_t>& end) {
      std::vector<int32_t> tokens(start.begin(), start.begin() + length);
      tokens.insert(tokens.end(), end.begin(), end.end());
      const auto rows = all_logits(*engine, tokens);
      return std::vector<float>(rows.begin() + length * 300, rows.end());
    };
    const auto fresh_left = fresh(left), fresh_right = fresh(right), whole = all_logits(*engine, start);
    const SequenceId trunk = engine->open_sequence();
    append(*engine, trunk, std::span(start).first(60));
    if (length > 60) append(*engine, trunk, std::span(start).subspan(60));
    const SequenceId a = engine->fork(trunk, length), b = engine->fork(trunk, length);
    EXPECT_EQ(engine->length(a), length);
    // Interleaved, so that a write of one into a page of the other would be seen.
    std::vector<float> rows_a, rows_b;
    for (size_t at = 0; at < 40; at += 8) {
      const auto part_a = append(*engine, a, std::span(left).subspan(at, 8)),
                 part_b = append(*engine, b, std::span(right).subspan(at, 8));
      rows_a.insert(rows_a.end(), part_a.begin(), part_a.end());
      rows_b.insert(rows_b.end(), part_b.begin(), part_b.end());
    }
    EXPECT_TRUE(same_bytes(rows_a, fresh_left)) << "forked at " << length;
    EXPECT_TRUE(same_bytes(rows_b, fresh_right)) << "forked at " << length;
    // The trunk goes on as if nothing had been forked off.
    if (length <= 60) {
      const auto rest = append(*engine, trunk, std::span(start).subspan(60));
      EXPECT_TRUE(same_bytes(rest, std::span(whole).subspan(60 * 300)));
    }
    for (const SequenceId id : {trunk, a, b}) engine->close_sequence(id);
  }
}

TEST_P(OnEachDevice, TruncationForgets) {
  const ModelFile file(kSmall);
  const auto engine = load(file, {.context = 256});
  const auto first = random_tokens(90, 300, 10), second = random_tokens(50, 300, 11);
  for (const uint32_t keep : {0u, 1u, 32u, 45u, 89u}) {
    const SequenceId sequence = engine->open_sequence();
    append(*engine, sequence, first);
    engine->truncate(sequence, keep);
    EXPECT_EQ(engine->length(sequence), keep);
    const auto rows = append(*engine, sequence, second);
    std::vector<int32_t> tokens(first.begin(), first.begin() + keep);
    tokens.insert(tokens.end(), second.begin(), second.end());
    engine->close_sequence(sequence);
    EXPECT_TRUE(same_bytes(rows, std::span<const float>(all_logits(*engine, tokens)).subspan(keep * 300)))
        << "kept " << keep;
  }
}

// The embedding of token 299 is NaN: whatever such a sequence leaves behind, in pages or scratch, would show.
MadeModel poisoned_model() {
  ModelSpec spec = kSmall;
  spec.type = TensorType::kF32;
  MadeModel model = make_model(spec);
  auto* embedding = model.find("token_embd.weight");
  auto bytes = std::make_shared<std::vector<std::byte>>(*embedding->bytes);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (size_t i = 0; i < 64; ++i)
    std::memcpy(bytes->data() + (299 * 64 + i) * sizeof(float), &nan, sizeof(float));
  embedding->bytes = bytes;
  return model;
}

TEST_P(OnEachDevice, NothingOfAnotherRequestIsSeen) {
  const ModelFile file(poisoned_model());
  const auto tokens = random_tokens(60, 299, 12);
  const std::vector<int32_t> poison(120, 299);
  for (const cpu::KvType kv : {cpu::KvType::kF16, cpu::KvType::kF32}) {
    const auto reference = all_logits(*load(file, {.context = 128, .kv_types = {kv, kv}}), tokens);
    const auto engine = load(file, {.context = 128, .kv_types = {kv, kv}});
    const auto poisoned = all_logits(*engine, poison);  // all four pages
    EXPECT_TRUE(std::isnan(poisoned[0]));
    EXPECT_TRUE(same_bytes(all_logits(*engine, tokens), reference)) << "in pages that held NaN";
    // And in the same batch.
    const SequenceId bad = engine->open_sequence(), good = engine->open_sequence(),
                     worse = engine->open_sequence();
    const BatchItem items[] = {
        {.sequence = bad, .tokens = std::span(poison).first(5), .want = Want::kAll},
        {.sequence = good, .tokens = tokens, .want = Want::kAll},
        {.sequence = worse, .tokens = std::span(poison).first(20), .want = Want::kAll}};
    std::vector<float> rows;
    ASSERT_TRUE(engine->decode(items, [&](size_t item, size_t, std::span<const float> row) {
      if (item == 1) rows.insert(rows.end(), row.begin(), row.end());
    }));
    EXPECT_TRUE(same_bytes(rows, reference)) << "with NaN in the batch";
  }
}

TEST_P(OnEachDevice, AFullCacheFailsOneAndLeavesTheOthers) {
  const ModelFile file(kSmall);
  const auto tokens = random_tokens(64, 300, 13);
  const auto many = random_tokens(30, 300, 15);
  const auto engine = load(file, {.context = 96});  // three pages of 32
  const auto reference = all_logits(*engine, tokens);
  const SequenceId a = engine->open_sequence(), b = engine->open_sequence();
  append(*engine, a, std::span(tokens).first(30));
  append(*engine, b, std::span(tokens).first(40));

  // A may grow within its page; B may not take a third page with A in the same batch wanting one too.
  const BatchItem too_much[] = {
      {.sequence = a, .tokens = std::span(tokens).subspan(30, 2), .want = Want::kLast},
      {.sequence = b, .tokens = many, .want = Want::kLast}};
  const auto refused = engine->decode(
      too_much, [](size_t, size_t, std::span<const float>) { FAIL() << "nothing is computed"; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::Kind::kNoMemory);
  EXPECT_NE(refused.error().message.find("KV cache"), std::string::npos) << refused.error().message;
  EXPECT_EQ(engine->length(a), 30u);
  EXPECT_EQ(engine->length(b), 40u);

  // More than the whole context is told by both numbers.
  const auto long_tokens = random_tokens(97, 300, 14);
  const BatchItem too_long{.sequence = a, .tokens = long_tokens, .want = Want::kLast};
  const auto over = engine->decode({&too_long, 1}, [](size_t, size_t, std::span<const float>) {});
  ASSERT_FALSE(over);
  EXPECT_NE(over.error().message.find("97"), std::string::npos) << over.error().message;
  EXPECT_NE(over.error().message.find("96"), std::string::npos) << over.error().message;

  // A fork that would write into a shared page needs one of its own, and there is none.
  const SequenceId fork = engine->fork(b, 36);
  const BatchItem write_shared{.sequence = fork, .tokens = std::span(tokens).first(1), .want = Want::kLast};
  EXPECT_FALSE(engine->decode({&write_shared, 1}, [](size_t, size_t, std::span<const float>) {}));
  EXPECT_EQ(engine->length(fork), 36u);
  engine->close_sequence(fork);

  EXPECT_TRUE(
      same_bytes(append(*engine, b, std::span(tokens).subspan(40)), std::span(reference).subspan(40 * 300)));
  EXPECT_TRUE(same_bytes(append(*engine, a, std::span(tokens).subspan(30, 2)),
                         std::span(reference).subspan(30 * 300, 2 * 300)));
  engine->close_sequence(b);
  EXPECT_TRUE(
      same_bytes(append(*engine, a, std::span(tokens).subspan(32)), std::span(reference).subspan(32 * 300)));
}

TEST_P(OnEachDevice, AnErrorOrAStopChangesNothing) {
  const ModelFile file(kSmall);
  const auto tokens = random_tokens(60, 300, 15);
  const auto engine = load(file, {.context = 128, .ubatch = 8});
  const auto reference = all_logits(*engine, tokens);
  const SequenceId sequence = engine->open_sequence();
  append(*engine, sequence, std::span(tokens).first(20));
  for (const int32_t bad : {-1, 300, INT32_MAX}) {
    const std::vector<int32_t> with_bad = {1, 2, bad};
    const BatchItem item{.sequence = sequence, .tokens = with_bad, .want = Want::kLast};
    const auto result = engine->decode({&item, 1}, [](size_t, size_t, std::span<const float>) { FAIL(); });
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find(std::to_string(bad)), std::string::npos) << result.error().message;
    EXPECT_EQ(engine->length(sequence), 20u);
  }
  int left = 3;  // stopped between the third micro-batch and the fourth
  const BatchItem item{.sequence = sequence, .tokens = std::span(tokens).subspan(20), .want = Want::kAll};
  const auto stopped =
      engine->decode({&item, 1}, [](size_t, size_t, std::span<const float>) {}, [&] { return left-- > 0; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, Error::Kind::kCancelled);
  EXPECT_EQ(engine->length(sequence), 20u);
  EXPECT_TRUE(same_bytes(append(*engine, sequence, std::span(tokens).subspan(20)),
                         std::span(reference).subspan(20 * 300)));
}

TEST_P(OnEachDevice, NoTokensAndNoItemsAreFine) {
  const ModelFile file(kSmall);
  const auto engine = load(file, {.context = 64});
  const auto none = [](size_t, size_t, std::span<const float>) { FAIL(); };
  EXPECT_TRUE(engine->decode({}, none));
  const BatchItem empty{.sequence = engine->open_sequence(), .tokens = {}, .want = Want::kLast};
  EXPECT_TRUE(engine->decode({&empty, 1}, none));
}

}  // namespace
}  // namespace spillway
