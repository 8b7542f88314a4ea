// The demo model that ships: its held-out perplexity is what its card says, and its routing is learned.
// models/demo.json holds the card's numbers, measured by this test's own rule: heldout_TOPIC.txt encoded
// without special tokens, cut into windows of 512 tokens without overlap (the rest dropped), each window from
// an empty context, mean over the 511 predicted tokens of each.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "cli/model_text.h"
#include "demo/recorded_routes.h"
#include "engine/engine.h"

namespace spillway {
namespace {

constexpr size_t kWindow = 512;

double negative_log_likelihood(std::span<const float> logits, int32_t token) {
  double top = logits[0];
  for (const float logit : logits) top = std::max(top, static_cast<double>(logit));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - top);
  return std::log(sum) + top - logits[token];
}

double perplexity(engine::Engine& engine, const std::vector<int32_t>& tokens) {
  double total = 0;
  size_t predicted = 0;
  for (size_t first = 0; first + kWindow <= tokens.size(); first += kWindow) {
    const std::span<const int32_t> window = std::span(tokens).subspan(first, kWindow);
    const engine::SequenceId sequence = engine.open_sequence();
    const engine::BatchItem item{.sequence = sequence, .tokens = window, .want = engine::Want::kAll};
    const auto done = engine.decode({&item, 1}, [&](size_t, size_t token, std::span<const float> logits) {
      if (token + 1 == kWindow) return;
      total += negative_log_likelihood(logits, window[token + 1]);
      ++predicted;
    });
    EXPECT_TRUE(done);
    engine.close_sequence(sequence);
  }
  EXPECT_GT(predicted, 0u);
  return std::exp(total / static_cast<double>(predicted));
}

TEST(DemoModel, HeldOutPerplexityIsTheCards) {
  const auto engine = engine::Engine::load({.path = kModels + "demo.gguf", .threads = 2});
  ASSERT_TRUE(engine) << engine.error().message;
  const auto tokenizer = cli::load_tokenizer("the model", (*engine)->metadata(), (*engine)->vocabulary());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto card = nlohmann::json::parse(*cli::read_text_file(kModels + "demo.json", limits::kMaxTextBytes));
  for (const auto& [topic, expected] : card["held_out_perplexity"].items()) {
    const auto text = cli::read_text_file(kModels + "heldout_" + topic + ".txt", limits::kMaxTextBytes);
    ASSERT_TRUE(text) << text.error().message;
    const auto tokens = (*tokenizer)->encode(*text, {.add_special = false});
    ASSERT_TRUE(tokens);
    const double measured = perplexity(**engine, *tokens);
    RecordProperty(topic, fmt::format("{:.2f}", measured));
    // The bits are the same everywhere; the card is rounded to two decimals, exp and log are the host's.
    EXPECT_NEAR(measured, expected.get<double>(), 0.011) << topic;
    // A model that learned nothing is at the 4,096 of its vocabulary.
    EXPECT_LT(measured, 1000.0) << topic;
  }
}

}  // namespace
}  // namespace spillway
