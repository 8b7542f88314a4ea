// Auto against the reference at its best share, on the demo model's own routes over three topics, with the
// sizes of models that people run on machines that people have. docs/results holds the table.
#include "experts/comparison.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "cli/model_text.h"
#include "engine/engine.h"

namespace spillway {
namespace {

const std::string kModels = SPILLWAY_SOURCE_DIR "/models/";

experts::Routes routes_of(const std::string& topic) {
  engine::Options options{.path = kModels + "demo.gguf", .threads = 2, .context = 320};
  options.device.device = "host";
  options.device.experts_on_host = true;
  options.device.cache = {engine::CacheSize::Unit::kPercent, 20};
  const auto engine = engine::Engine::load(options);
  EXPECT_TRUE(engine) << engine.error().message;
  const auto tokenizer = cli::load_tokenizer((*engine)->metadata(), (*engine)->vocabulary());
  const auto text = cli::read_text_file(kModels + "heldout_" + topic + ".txt", limits::kMaxTextBytes);
  auto tokens = (*tokenizer)->encode(*text, {.add_special = true});
  EXPECT_GE(tokens->size(), 320u);
  std::vector<std::byte> bytes;
  EXPECT_TRUE((*engine)->begin_trace(topic, [&](std::span<const std::byte> piece) -> Result<void> {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  }));
  const engine::SequenceId sequence = (*engine)->open_sequence();
  for (size_t done = 0; done < 320;) {
    const size_t n = done == 0 ? 64 : 1;
    const engine::BatchItem item{
        .sequence = sequence, .tokens = std::span(*tokens).subspan(done, n), .want = engine::Want::kNothing};
    EXPECT_TRUE((*engine)->decode({&item, 1}, [](size_t, size_t, std::span<const float>) {}));
    done += n;
  }
  EXPECT_TRUE((*engine)->end_trace());
  const auto trace = experts::parse_trace(bytes);
  EXPECT_TRUE(trace) << trace.error().message;
  return experts::routes_of(*trace);
}

TEST(Comparison, AutoIsNeverBelowTheReferenceAtItsBest) {
  std::vector<experts::Routes> runs;
  for (const char* topic : {"prose", "code", "german"}) runs.push_back(routes_of(topic));
  const auto rows = experts::compare(runs);
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 32u);
  double total = 0;
  for (const experts::ComparisonRow& row : *rows) {
    EXPECT_GE(row.ratio(), 0.98) << row.machine << ", " << row.model << ", " << row.cache_share;
    EXPECT_LE(row.ours_us, row.without_us * 1.01)
        << "slower than without a cache: " << row.machine << ", " << row.model << ", " << row.cache_share;
    total += row.ratio();
  }
  EXPECT_GT(total / 32, 1.0);
  std::printf("%s", experts::comparison_table(*rows).c_str());
}

}  // namespace
}  // namespace spillway
