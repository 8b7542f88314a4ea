// `spillway bench`: prefill and decode speed, beside what the memory allows.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "cli/common.h"
#include "cli/expert_report.h"
#include "cli/load_flags.h"
#include "cli/model_text.h"
#include "cli/progress_bar.h"
#include "cli/read_bandwidth.h"
#include "cli/terminal.h"
#include "model/sizes.h"
#include "tune/bench_text.h"

namespace spillway::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct BenchFlags {
  LoadFlags load;
  uint32_t prompt = 512, generate = 128, repetitions = 5;
  bool json = false;
};

struct Series {
  std::vector<double> tok_s;
  double mean() const {
    double sum = 0;
    for (const double value : tok_s) sum += value;
    return tok_s.empty() ? 0 : sum / static_cast<double>(tok_s.size());
  }
  double deviation() const {  // of the sample
    if (tok_s.size() < 2) return 0;
    double sum = 0;
    for (const double value : tok_s) sum += (value - mean()) * (value - mean());
    return std::sqrt(sum / static_cast<double>(tok_s.size() - 1));
  }
};

struct Measured {
  Series prefill, decode;
  double bandwidth = 0;  // bytes per second
};

// Real text, from another place in each repetition, so that no run profits from the one before.
std::vector<int32_t> text_tokens(const std::vector<int32_t>& all, size_t n, size_t repetition) {
  std::vector<int32_t> tokens(n);
  const size_t start = repetition * 131;
  for (size_t i = 0; i < n; ++i) tokens[i] = all[(start + i) % all.size()];
  return tokens;
}

Result<double> time_prefill(engine::Engine& engine, std::span<const int32_t> tokens) {
  const engine::SequenceId sequence = engine.open_sequence();
  const engine::BatchItem item{.sequence = sequence, .tokens = tokens, .want = engine::Want::kLast};
  const auto start = Clock::now();
  const auto done =
      engine.decode({&item, 1}, [](size_t, size_t, std::span<const float>) {}, [] { return !interrupted(); });
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  engine.close_sequence(sequence);
  SW_TRY(done);
  return static_cast<double>(tokens.size()) / seconds;
}

// One token at a time, each the text's next: the routing of real text, whatever the model would say.
Result<double> time_decode(engine::Engine& engine, std::span<const int32_t> tokens) {
  const engine::SequenceId sequence = engine.open_sequence();
  Result<void> done;
  const auto start = Clock::now();
  for (size_t i = 0; i < tokens.size() && done; ++i) {
    const engine::BatchItem item{
        .sequence = sequence, .tokens = tokens.subspan(i, 1), .want = engine::Want::kLast};
    done = engine.decode(
        {&item, 1}, [](size_t, size_t, std::span<const float>) {}, [] { return !interrupted(); });
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  engine.close_sequence(sequence);
  SW_TRY(done);
  return static_cast<double>(tokens.size()) / seconds;
}

Result<Measured> measure(engine::Engine& engine, const BenchFlags& flags, const std::vector<int32_t>& text) {
  Measured measured;
  SW_ASSIGN(measured.bandwidth, measure_read_bandwidth(engine.memory().threads));
  SW_TRY(time_prefill(engine, text_tokens(text, std::min<size_t>(flags.prompt + 1, 16), 0)));  // warm-up
  ProgressBar bar("measuring");
  for (uint32_t r = 0; r < flags.repetitions; ++r) {
    bar.update(r, flags.repetitions);
    if (flags.prompt > 0) {
      SW_ASSIGN(const double speed, time_prefill(engine, text_tokens(text, flags.prompt, r + 1)));
      measured.prefill.tok_s.push_back(speed);
    }
    if (flags.generate > 0) {
      SW_ASSIGN(const double speed, time_decode(engine, text_tokens(text, flags.generate, r + 1)));
      measured.decode.tok_s.push_back(speed);
    }
  }
  return measured;
}

Json series_json(const Series& series, uint32_t tokens) {
  return {{"tokens", tokens},
          {"tok_s", series.tok_s},
          {"mean", series.mean()},
          {"deviation", series.deviation()}};
}

void print(const engine::Engine& engine, const BenchFlags& flags, const Measured& m,
           uint64_t bytes_per_token) {
  const bool cpu_alone = engine.device() == nullptr;
  fmt::print("{}\n", describe_load(engine));
  if (!cpu_alone)
    fmt::print("{}\n", describe_placement(engine.memory(), engine.placement(), *engine.device()));
  fmt::print("\n");
  fmt::print("all measured, {} repetitions, prompts are real text\n", flags.repetitions);
  if (flags.prompt > 0)
    fmt::print("  prefill {:>5} tokens   {:>8.1f} ± {:.1f} tok/s\n", flags.prompt, m.prefill.mean(),
               m.prefill.deviation());
  if (flags.generate > 0) {
    fmt::print("  decode  {:>5} tokens   {:>8.1f} ± {:.1f} tok/s", flags.generate, m.decode.mean(),
               m.decode.deviation());
    // With a device, which memory the weights were read from differs from expert to expert.
    const double read = m.decode.mean() * static_cast<double>(bytes_per_token);
    if (cpu_alone)
      fmt::print(
          "   {:.1f} GB/s of weights = {:.0f} % of the {:.1f} GB/s that this machine reads with {} threads",
          read * 1e-9, 100 * read / m.bandwidth, m.bandwidth * 1e-9, engine.memory().threads);
    fmt::print("\n");
  }
  fmt::print("{}", counters_text(engine.expert_stats()));
}

Result<void> bench(const BenchFlags& flags, const CLI::App& command) {
  if (flags.prompt == 0 && flags.generate == 0) return invalid("-p 0 with -n 0: there is nothing to measure");
  catch_interrupts();
  LoadFlags load = flags.load;
  load.quiet = true;  // the result says it
  const uint32_t needed = std::max(flags.prompt, flags.generate);
  if (load.context == 0) load.context = std::max(needed, 512u);
  if (load.context < needed)
    return invalid("-c {} is too small for -p {} and -n {}", load.context, flags.prompt, flags.generate);
  SW_ASSIGN(const auto engine, load_engine(load, command));
  SW_ASSIGN(const auto tokenizer, load_tokenizer(engine->metadata(), engine->vocabulary()));
  SW_ASSIGN(const auto text, tokenizer->encode(tune::bench_text(), {.add_special = false}));
  if (text.empty()) return invalid("the model's tokenizer makes no tokens of ordinary text");
  SW_ASSIGN(const Measured m, measure(*engine, flags, text));

  SW_TRY(write_records(load, *engine));
  const uint64_t bytes_per_token = model::measure_sizes(engine->description()).bytes_per_token;
  if (!flags.json) {
    print(*engine, flags, m, bytes_per_token);
    return {};
  }
  const engine::MemoryPlan& plan = engine->memory();
  Json json{{"label", "measured"},
            {"model", engine->description().name},
            {"settings",
             {{"threads", plan.threads},
              {"context", plan.context},
              {"ubatch", plan.ubatch},
              {"load_mode", engine::load_mode_name(plan.mode)},
              {"kernels", plan.instruction_set},
              {"key_type", backend::kv_type_name(plan.kv_types.key)},
              {"value_type", backend::kv_type_name(plan.kv_types.value)},
              {"device", engine->device() ? engine->device()->id : "none"}}},
            {"prefill", series_json(m.prefill, flags.prompt)},
            {"decode", series_json(m.decode, flags.generate)},
            {"weights_read_per_token_bytes", bytes_per_token},
            {"memory_read_bytes_s", m.bandwidth}};
  if (engine->device() == nullptr) {
    json["decode_fraction_of_read_bandwidth"] =
        m.decode.mean() * static_cast<double>(bytes_per_token) / m.bandwidth;
  } else {
    json["experts"] = experts_json(engine->expert_stats());
    json["placement"] = placement_json(plan, engine->placement(), *engine->device());
  }
  json["load_s"] = engine->load_seconds();
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  return {};
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand("bench", "Measure prefill and decode speed");
  command->add_option("-p,--n-prompt", flags->prompt, "tokens of the prompt; 0: no prefill test")
      ->check(CLI::Range(0u, limits::kMaxContext))
      ->capture_default_str();
  command->add_option("-n,--n-gen", flags->generate, "tokens to decode; 0: no decode test")
      ->check(CLI::Range(0u, limits::kMaxContext))
      ->capture_default_str();
  command->add_option("-r,--repetitions", flags->repetitions, "repetitions")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print JSON");
  flags->load.add_to(*command);
  command->callback([flags, command, &exit_code] {
    const auto result = bench(*flags, *command);
    exit_code = !result ? report(result.error()) : finish_output();
  });
}

}  // namespace spillway::cli
