// `spillway verify --exact`: runs a text through this model on the CPU and then on a device with one choice
// of settings after another, and compares every logit byte for byte.
#include <bit>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/model_text.h"
#include "cli/terminal.h"
#include "cli/verify.h"
#include "tune/bench_text.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kExactTokens = 96;

// Pages of the reduced matrix: each setting once or more, the cache full and starved, all on one side and
// split.
struct Setting {
  const char* cache;
  const char* share;
  const char* policy;
  const char* promote;
  uint32_t piece;  // tokens appended at once; 0: all
  bool on_host;    // -cmoe; else what is resident is left to the plan
};
constexpr Setting kSettings[] = {
    {"auto", "auto", "crf", "auto", 0, false}, {"0", "auto", "crf", "auto", 7, true},
    {"10%", "0", "crf", "off", 1, true},       {"10%", "1", "lru", "off", 1, true},
    {"25%", "0.3", "crf", "on", 33, true},     {"25%", "auto", "static", "on", 1, true},
    {"50%", "auto", "lru", "on", 2, true},     {"50%", "0.5", "b12191", "off", 0, true},
    {"100%", "0", "crf", "off", 1, true},      {"100%", "auto", "b12191", "off", 33, true},
};

std::string text_of(const Setting& s) {
  return fmt::format("cache {}, share {}, policy {}, promote {}, {}{}", s.cache, s.share, s.policy, s.promote,
                     s.piece == 0 ? "one piece" : fmt::format("pieces of {}", s.piece),
                     s.on_host ? "" : ", default placement");
}

// A digest of all rows would do, but the first difference is worth knowing.
Result<std::vector<float>> all_logits(engine::Engine& engine, std::span<const int32_t> tokens,
                                      uint32_t piece) {
  std::vector<float> all;
  all.reserve(tokens.size() * engine.vocabulary());
  const engine::SequenceId sequence = engine.open_sequence();
  const size_t step = piece == 0 ? tokens.size() : piece;
  for (size_t first = 0; first < tokens.size(); first += step) {
    const engine::BatchItem item{.sequence = sequence,
                                 .tokens = tokens.subspan(first, std::min(step, tokens.size() - first)),
                                 .want = engine::Want::kAll};
    SW_TRY(engine.decode(
        std::span(&item, 1),
        [&](size_t, size_t, std::span<const float> row) { all.insert(all.end(), row.begin(), row.end()); },
        [] { return !interrupted(); }));
  }
  engine.close_sequence(sequence);
  return all;
}

}  // namespace

Result<int> verify_exact(const VerifyFlags& flags, const CLI::App& command) {
  const uint32_t n_tokens = flags.tokens != 0 ? flags.tokens : kExactTokens;
  SW_ASSIGN(engine::Options options, flags.load.options(command));
  options.context = std::max(options.context, n_tokens);

  engine::Options reference = options;
  reference.device.device = "none";
  std::vector<int32_t> tokens;
  std::vector<float> expected;
  uint32_t width = 0;
  {
    SW_ASSIGN(const auto engine, load_quietly(reference));
    width = engine->vocabulary();
    SW_ASSIGN(const auto tokenizer, load_tokenizer(options.path, engine->metadata(), width));
    SW_ASSIGN(tokens, tokenizer->encode(tune::bench_text(), {.add_special = false}));
    if (tokens.size() < n_tokens)
      return invalid("--tokens {}: the built-in text has {} tokens in this vocabulary", n_tokens,
                     tokens.size());
    tokens.resize(n_tokens);
    SW_ASSIGN(expected, all_logits(*engine, tokens, 0));
  }
  Json rows = Json::array();
  size_t failures = 0;
  for (const Setting& setting : kSettings) {
    engine::Options tried = options;
    tried.device.experts_on_host = setting.on_host;
    SW_ASSIGN(tried.device.cache, parse_cache("cache", setting.cache));
    SW_ASSIGN(tried.device.planner.policy.kind, experts::parse_policy(setting.policy));
    SW_ASSIGN(tried.device.planner.cpu_share, parse_choice("share", setting.share, 0, 1));
    tried.device.planner.promote = parse_promotion(setting.promote);
    auto engine = load_quietly(tried);
    if (!engine && engine.error().kind == Error::Kind::kNoMemory) {
      rows.push_back({{"setting", text_of(setting)}, {"result", "skipped"}, {"why", engine.error().message}});
      if (!flags.json) fmt::print("skipped  {}: {}\n", text_of(setting), engine.error().message);
      continue;
    }
    if (!engine) return std::unexpected(engine.error());
    if ((*engine)->device() == nullptr)
      return fail(
          Error::Kind::kNotFound,
          "there is nothing to compare with: {}; '--device host' tries the logic without a GPU, '--device "
          "vulkan' the shaders on whatever is there",
          (*engine)->memory().device_reason);
    SW_ASSIGN(const std::vector<float> logits, all_logits(**engine, tokens, setting.piece));
    size_t differ = 0, first = 0;
    for (size_t i = logits.size(); i-- > 0;)
      if (std::bit_cast<uint32_t>(logits[i]) != std::bit_cast<uint32_t>(expected[i])) ++differ, first = i;
    const experts::Counters all = (*engine)->expert_stats().total.all();
    Json row{{"setting", text_of(setting)},
             {"device", (*engine)->device()->id},
             {"result", differ == 0 ? "identical" : "different"},
             {"logits", logits.size()},
             {"differ", differ},
             {"hits", all.hits},
             {"cpu", all.cpu},
             {"uploaded", all.uploaded + all.streamed},
             {"promoted", all.promoted}};
    if (differ > 0) row["first_token"] = first / width;
    rows.push_back(row);
    failures += differ > 0;
    if (!flags.json)
      fmt::print("{}  {}: {} hits, {} on the CPU, {} uploaded, {} promoted{}\n",
                 differ == 0 ? "same    " : "DIFFERS ", text_of(setting), all.hits, all.cpu,
                 all.uploaded + all.streamed, all.promoted,
                 differ ? fmt::format("; {} of {} logits differ, the first at token {}", differ,
                                      logits.size(), first / width)
                        : "");
  }
  if (flags.json)
    fmt::print(
        "{}\n",
        Json{{"schema", 1}, {"label", "measured"}, {"tokens", tokens.size()}, {"settings", rows}}.dump(2));
  else
    fmt::print("{} of {} settings gave the CPU's {} logits bit for bit\n", std::size(kSettings) - failures,
               std::size(kSettings), expected.size());
  if (!flush_stdout()) return fail(Error::Kind::kIo, "standard output cannot be written to");
  return failures == 0 ? kExitOk : kExitError;
}

}  // namespace spillway::cli
