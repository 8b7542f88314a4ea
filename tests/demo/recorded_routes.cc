#include "demo/recorded_routes.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "cli/model_text.h"
#include "experts/trace.h"

namespace spillway {
RouteRecorder::RouteRecorder() {
  engine::Options options{.path = kModels + "demo.gguf", .threads = 2, .context = 320};
  options.device.device = "host";
  options.device.experts_on_host = true;
  options.device.cache = {engine::CacheSize::Unit::kPercent, 20};
  engine_ = engine::Engine::load(options).value();
}

experts::Routes RouteRecorder::record(const std::string& topic, size_t first, size_t n_tokens, size_t piece) {
  const auto tokenizer = cli::load_tokenizer("the model", engine_->metadata(), engine_->vocabulary()).value();
  const auto text = cli::read_text_file(kModels + "heldout_" + topic + ".txt", limits::kMaxTextBytes).value();
  const auto tokens = tokenizer->encode(text, {.add_special = true}).value();
  EXPECT_GE(tokens.size(), first + n_tokens);
  std::vector<std::byte> bytes;
  EXPECT_TRUE(engine_->begin_trace(topic, [&](std::span<const std::byte> more) -> Result<void> {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return {};
  }));
  const engine::SequenceId sequence = engine_->open_sequence();
  for (size_t done = 0; done < n_tokens;) {
    const size_t n = done == 0 ? piece : 1;
    const engine::BatchItem item{.sequence = sequence,
                                 .tokens = std::span(tokens).subspan(first + done, n),
                                 .want = engine::Want::kNothing};
    EXPECT_TRUE(engine_->decode({&item, 1}, [](size_t, size_t, std::span<const float>) {}));
    done += n;
  }
  engine_->close_sequence(sequence);
  EXPECT_TRUE(engine_->end_trace());
  return experts::routes_of(experts::parse_trace(bytes).value());
}

}  // namespace spillway
