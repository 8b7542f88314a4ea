#include "tune/workload_run.h"

#include <gtest/gtest.h>

#include "cli/model_text.h"
#include "support/run_engine.h"
#include "tune/run_recorder.h"

namespace spillway::tune {
namespace {

using namespace test_support;

const ModelSpec kSpec{
    .layers = 3, .experts = 16, .used = 2, .type = TensorType::kQ8_0, .expert_type = TensorType::kQ8_0};

engine::Options on_cpu() {
  return {.threads = 2, .context = 1024, .ubatch = 64, .device = {.device = "none"}};
}
engine::Options with_cache() {
  engine::Options options = on_cpu();
  options.device = {.device = "host", .experts_on_host = true, .cache = *engine::parse_cache_size("50%")};
  options.device.host.memory_bytes = 256 << 20;
  return options;
}

// An engine with its texts.
struct Loaded {
  explicit Loaded(const engine::Options& options) : engine(load_engine(file, options)) {
    tokenizer = *cli::load_tokenizer("the model", engine->metadata(), engine->vocabulary());
    chat_template = *cli::load_chat_template(engine->metadata(), tokenizer->vocabulary(), "");
  }
  Result<report::Run> run(const Workload& workload, RunOptions options = {}) {
    return run_workload(*engine, *tokenizer, &*chat_template, workload, options);
  }
  ModelFile file{kSpec};
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplate> chat_template;
};

Workload small(uint32_t users) {
  Workload workload{.name = "small"};
  for (const char* topic : {"a", "b", "c", "d"})
    workload.conversations.push_back({.topic = topic,
                                      .system = "s",
                                      .turns = {{.text = std::string("tell me ") + topic, .max_tokens = 6},
                                                {.text = "known", .given_answer = "yes"},
                                                {.text = "more", .max_tokens = 4}}});
  EXPECT_TRUE(deal_out(workload, users));
  return workload;
}

TEST(WorkloadRun, EveryRequestIsMeasured) {
  Loaded loaded(on_cpu());
  uint64_t most = 0, last = 0;
  const auto run =
      loaded.run(small(1), {.seed = 5, .ignore_eos = true, .progress = [&](uint64_t d, uint64_t m) {
                              EXPECT_GE(d, last);
                              last = d, most = m;
                            }});
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(most, 40);
  EXPECT_EQ(last, 40);
  EXPECT_EQ(run->seed, 5);
  EXPECT_EQ(run->started.size(), 20);
  ASSERT_EQ(run->requests.size(), 8);
  double sum = 0;
  for (size_t i = 0; i < 8; ++i) {
    const report::Request& r = run->requests[i];
    EXPECT_EQ(r.topic, std::string(1, static_cast<char>('a' + i / 2)));
    EXPECT_EQ(r.turn, i % 2 == 0 ? 0 : 2);
    EXPECT_EQ(r.generated_tokens, i % 2 == 0 ? 6 : 4);
    EXPECT_EQ(r.itl_ms.size(), r.generated_tokens - 1);
    EXPECT_EQ(r.finish, "length");
    EXPECT_GT(r.ttft_s, 0);
    EXPECT_GT(r.prefill_s, 0);
    EXPECT_LE(r.prefill_s, r.ttft_s * 1.5);  // what follows the logits is in it, the template is not
    // The beginning of the conversation is in the KV cache already.
    EXPECT_EQ(r.cached_tokens > 0, i % 2 == 1);
    EXPECT_LT(r.cached_tokens, r.prompt_tokens);
    sum += r.ttft_s + r.decode_s;
  }
  EXPECT_GE(run->seconds, 0.9 * sum);
  EXPECT_FALSE(run->experts);
  EXPECT_TRUE(run->cut_short.empty());
  EXPECT_GT(run->cpu_s, 0);
}

// The same tokens whoever shares the steps, and whatever the placement.
TEST(WorkloadRun, AnswersDependOnNothingAround) {
  Loaded cpu(on_cpu()), cache(with_cache());
  const auto key = [](const report::Run& run) {
    std::vector<std::string> all;
    for (const report::Request& r : run.requests)
      all.push_back(
          fmt::format("{} {} {} {} {}", r.topic, r.turn, r.prompt_tokens, r.generated_tokens, r.finish));
    std::ranges::sort(all);
    return all;
  };
  const auto one = cpu.run(small(1)), four = cpu.run(small(4)), cached = cache.run(small(2));
  ASSERT_TRUE(one && four && cached);
  EXPECT_EQ(key(*one), key(*four));
  EXPECT_EQ(key(*one), key(*cached));
  for (const report::Request& r : four->requests)
    EXPECT_EQ(r.topic, std::string(1, static_cast<char>('a' + r.user)));
}

TEST(WorkloadRun, ExpertsAreOfThisRunAlone) {
  Loaded loaded(with_cache());
  const auto first = loaded.run(small(1)), second = loaded.run(small(1));
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(first->experts && second->experts);
  const experts::Counters all = loaded.engine->expert_stats().total.all();
  EXPECT_EQ(first->experts->hits + second->experts->hits, all.hits);
  EXPECT_EQ(first->experts->misses + second->experts->misses, all.misses);
  EXPECT_EQ(first->experts->tokens, second->experts->tokens);
  EXPECT_GT(first->experts->tokens, 0);
  uint64_t hits = 0, misses = 0;
  for (const report::HitPoint& point : first->hit_points) hits += point.hits, misses += point.misses;
  EXPECT_EQ(hits, first->experts->hits);
  EXPECT_EQ(misses, first->experts->misses);
  EXPECT_EQ(first->hit_points.back().tokens, first->experts->tokens);
  EXPECT_GT(first->device_peak_bytes, 0);
}

TEST(WorkloadRun, WhatWasMeasuredBeforeAStopIsKept) {
  Loaded loaded(on_cpu());
  int steps = 0;
  const auto run = loaded.run(small(1), {.ignore_eos = true, .keep_going = [&] { return ++steps < 10; }});
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->cut_short, "interrupted");
  ASSERT_GE(run->requests.size(), 2);
  EXPECT_EQ(run->requests[0].finish, "length");
  EXPECT_EQ(run->requests.back().finish, "interrupted");
  EXPECT_GT(run->requests.back().generated_tokens, 0);
}

TEST(WorkloadRun, APromptThatDoesNotFitIsNamed) {
  Loaded loaded(on_cpu());
  Workload workload = small(1);
  workload.conversations[2].turns[0].text = std::string(3000, 'x') + " " + std::string(3000, 'y');
  const auto run = loaded.run(workload);
  ASSERT_FALSE(run);
  for (const char* words : {"'c', message 1", "1024", "-c"})
    EXPECT_NE(run.error().message.find(words), std::string::npos) << run.error().message;
  EXPECT_TRUE(loaded.run(small(1)));  // nothing is left behind
}

TEST(WorkloadRun, AnAnswerEndsWhereTheContextDoes) {
  engine::Options options = on_cpu();
  options.context = 128;
  Loaded loaded(options);
  Workload workload = small(1);
  workload.conversations.resize(1);
  workload.conversations[0].turns = {{.text = "go on", .max_tokens = 500}};
  const auto run = loaded.run(workload, {.ignore_eos = true});
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->requests[0].finish, "context");
}

TEST(WorkloadRun, TheContextThatIsNeededIsEnough) {
  Loaded loaded(on_cpu());
  for (const uint32_t users : {1, 3}) {
    Workload workload = small(users);
    workload.conversations[2].turns[0].text =
        "a rather long question about nothing in particular, asked for its length";
    const auto needed = workload.context_needed(*loaded.tokenizer);
    ASSERT_TRUE(needed);
    engine::Options options = on_cpu();
    options.context = static_cast<uint32_t>(*needed);
    Loaded fitting(options);
    const auto run = fitting.run(workload, {.ignore_eos = true});
    ASSERT_TRUE(run) << run.error().message;
    for (const report::Request& r : run->requests) EXPECT_EQ(r.finish, "length");
    EXPECT_GT(*needed, 100 * users);
    EXPECT_LT(*needed, 1000 * users);
  }
}

TEST(WorkloadRun, TextsAreContinuedWithoutATemplate) {
  Loaded loaded(on_cpu());
  const auto run = run_workload(*loaded.engine, *loaded.tokenizer, nullptr, small(2), {.ignore_eos = true});
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->requests.size(), 8);
}

TEST(WorkloadRun, TimesComeFromTheClock) {
  Loaded loaded(on_cpu());
  sys::FakeClock clock;
  // A step takes 2 ms: the clock is asked to go on between them.
  const auto run = loaded.run(small(1), {.ignore_eos = true, .clock = &clock, .keep_going = [&] {
                                           clock.advance_ns(2'000'000);
                                           return true;
                                         }});
  ASSERT_TRUE(run) << run.error().message;
  for (const report::Request& r : run->requests) {
    for (const double ms : r.itl_ms) EXPECT_NEAR(ms, 2, 1e-6);
    EXPECT_NEAR(r.decode_s, 0.002 * (r.generated_tokens - 1), 1e-9);
    EXPECT_NEAR(r.ttft_s, r.prefill_s, 1e-9);
  }
}

TEST(TokenRun, IsAPromptAndSingleTokens) {
  Loaded loaded(on_cpu());
  const std::vector<int32_t> text = random_tokens(50, 300, 1);
  const auto run = run_tokens(*loaded.engine, text, 70, 9, {.seed = 3});
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->requests.size(), 2);
  EXPECT_EQ(run->requests[0].topic, "prompt");
  EXPECT_EQ(run->requests[0].prompt_tokens, 70);
  EXPECT_GT(run->requests[0].prefill_s, 0);
  EXPECT_EQ(run->requests[1].generated_tokens, 9);
  EXPECT_EQ(run->requests[1].itl_ms.size(), 9);
  EXPECT_EQ(run_tokens(*loaded.engine, text, 0, 4, {})->requests.size(), 1);
  int steps = 0;
  const auto stopped = run_tokens(*loaded.engine, text, 10, 9, {.keep_going = [&] { return ++steps < 5; }});
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->cut_short, "interrupted");
  EXPECT_EQ(stopped->requests.back().generated_tokens, 3);
}

}  // namespace
}  // namespace spillway::tune
