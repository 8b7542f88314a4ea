// `spillway trace record|show|replay|compare`: what was routed and decided, and what other settings or
// machines would have made of it.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/limits.h"
#include "cli/arguments.h"
#include "cli/common.h"
#include "cli/expert_report.h"
#include "cli/load_flags.h"
#include "cli/model_text.h"
#include "cli/output_file.h"
#include "cli/profiles.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"
#include "cli/trace_file.h"
#include "experts/comparison.h"
#include "tune/bench_text.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;
using experts::Counters;

// ---- record ----

struct RecordFlags {
  LoadFlags load;
  std::string out, text_file;
  uint32_t prompt = 64, decode = 256;
};

Result<int> record(RecordFlags& flags, const CLI::App& command) {
  SW_TRY(check_output_file(flags.out, {flags.load.model, flags.text_file}));
  SW_TRY(flags.load.check_outputs({flags.text_file, flags.out}));
  catch_interrupts();
  std::string text;
  if (flags.text_file.empty()) {
    text = tune::bench_text();
  } else {
    SW_ASSIGN(text, flags.text_file == "-" ? read_standard_input(limits::kMaxTextBytes)
                                           : read_text_file(flags.text_file, limits::kMaxTextBytes));
  }
  const uint32_t wanted = flags.prompt + flags.decode;
  if (wanted == 0) return invalid("--prompt-tokens 0 with -n 0: there is nothing to record");
  if (flags.load.context == 0) flags.load.context = wanted;
  SW_ASSIGN(const auto engine, load_engine(flags.load, command));
  SW_ASSIGN(const auto tokenizer, load_tokenizer(flags.load.model, engine->metadata(), engine->vocabulary()));
  SW_ASSIGN(std::vector<int32_t> tokens, tokenizer->encode(text, {.add_special = true}));
  if (tokens.size() < wanted) {
    note(fmt::format("the text has {} tokens of the {} asked for", tokens.size(), wanted));
  } else {
    tokens.resize(wanted);
  }

  // Under another name until it is whole; removed again where it isn't.
  const std::string partial = flags.out + ".partial";
  const auto removed = [](const std::string* path) {
    std::error_code ignored;
    std::filesystem::remove(*path, ignored);
  };
  std::ofstream out(partial, std::ios::binary);
  if (!out) return fail(Error::Kind::kIo, "'{}' cannot be written: {}", partial, std::strerror(errno));
  const std::unique_ptr<const std::string, decltype(removed)> cleanup(&partial, removed);
  const std::string source = fmt::format(
      "{}; {}; device {}",
      engine->description().name.empty() ? engine->description().family : engine->description().name,
      flags.text_file.empty() ? "built-in text" : flags.text_file,
      engine->device() ? engine->device()->id : "none");
  SW_TRY(engine->begin_trace(source, [&](std::span<const std::byte> bytes) -> Result<void> {
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!out) return fail(Error::Kind::kIo, "'{}' cannot be written to", partial);
    return {};
  }));
  ProgressBar bar("recording", ProgressBar::Unit::kNumber);
  const engine::SequenceId sequence = engine->open_sequence();
  size_t done = 0;
  while (done < tokens.size()) {
    // The prompt at once, then as if the text were generated: token by token.
    const size_t n = done < flags.prompt ? std::min<size_t>(flags.prompt, tokens.size()) - done : 1;
    const engine::BatchItem item{
        .sequence = sequence, .tokens = std::span(tokens).subspan(done, n), .want = engine::Want::kNothing};
    const auto decoded = engine->decode(
        std::span(&item, 1), [](size_t, size_t, std::span<const float>) {}, [] { return !interrupted(); });
    if (!decoded && decoded.error().kind == Error::Kind::kCancelled && done > 0)
      break;  // what is recorded is kept
    SW_TRY(decoded);
    done += n;
    bar.update(done, tokens.size());
  }
  bar.clear();
  SW_TRY(engine->end_trace());
  out.close();
  if (!out) return fail(Error::Kind::kIo, "'{}' cannot be written to", partial);
  std::error_code error;
  std::filesystem::rename(partial, flags.out, error);
  if (error)
    return fail(Error::Kind::kIo, "'{}' cannot be renamed to '{}': {}", partial, flags.out, error.message());
  SW_TRY(write_records(flags.load, *engine));
  fmt::print("{}: {} tokens{}\n", flags.out, done,
             done < tokens.size() ? fmt::format(" of {}, then it was stopped", tokens.size()) : "");
  say(dim(expert_line(engine->expert_stats())));
  return done < tokens.size() ? kExitInterrupted : finish_output();
}

// ---- show, replay, compare ----

std::string choice_text(const experts::Choice& choice) {
  return choice.is_number() ? fmt::format("{}", choice.value) : "auto";
}

std::string settings_text(const experts::PlannerSettings& s) {
  constexpr const char* kPromote[] = {"default", "auto", "on", "off"};
  return fmt::format("policy {}, share {}, admit {}, promote {}", experts::policy_name(s.policy.kind),
                     choice_text(s.cpu_share),
                     s.admit.kind == experts::Choice::Kind::kUnset ? "default" : choice_text(s.admit),
                     kPromote[static_cast<size_t>(s.promote)]);
}

Json counters_json(const Counters& c) {
  return {{"hits", c.hits},
          {"misses", c.misses},
          {"cpu", c.cpu},
          {"uploaded", c.uploaded},
          {"streamed", c.streamed},
          {"joined", c.joined},
          {"promoted", c.promoted},
          {"evicted", c.evicted},
          {"bytes_uploaded", c.bytes_uploaded},
          {"bytes_promoted", c.bytes_promoted},
          {"hit_rate", c.hit_rate()}};
}

std::string counters_line(const Counters& c) {
  return fmt::format(
      "{:.1f} % hits; {} misses: {} on the CPU, {} uploaded, {} passed through; {} promoted; {} copied",
      100 * c.hit_rate(), c.misses, c.cpu, c.uploaded, c.streamed, c.promoted,
      format_bytes(c.bytes_uploaded + c.bytes_promoted));
}

Result<void> show(const std::string& path, bool json) {
  SW_ASSIGN(const experts::Trace trace, read_trace(path));
  SW_ASSIGN(const experts::ReplayResult replay, experts::verify_replay(trace));
  const experts::Routes routes = experts::routes_of(trace);
  const Counters all = replay.counters.all();
  Json groups = Json::array();
  for (size_t g = 0; g < trace.head.groups.size(); ++g) {
    const experts::GroupShape& group = trace.head.groups[g];
    groups.push_back({{"layers", group.layers.size()},
                      {"experts", group.n_experts},
                      {"used", group.n_used},
                      {"expert_bytes", group.expert_bytes},
                      {"slots", trace.head.slots[g]},
                      {"ring_slots", trace.head.ring_slots[g]}});
  }
  if (json) {
    fmt::print("{}\n", Json{{"source", trace.head.source},
                            {"whole", trace.whole},
                            {"steps", routes.steps().size()},
                            {"tokens", routes.n_tokens()},
                            {"settings", settings_text(trace.head.settings)},
                            {"groups", groups},
                            {"counters", counters_json(all)}}
                           .dump(2, ' ', false, Json::error_handler_t::replace));
    return {};
  }
  fmt::print("{}: {}{}\n", path, printable(trace.head.source), trace.whole ? "" : " (breaks off)");
  fmt::print("  {} steps, {} tokens; {}\n", routes.steps().size(), routes.n_tokens(),
             settings_text(trace.head.settings));
  for (const Json& g : groups)
    fmt::print("  {} layers of {} experts of {}, {} used; {} slots and {} for passing through\n",
               g["layers"].get<size_t>(), g["experts"].get<uint32_t>(),
               format_bytes(g["expert_bytes"].get<uint64_t>()), g["used"].get<uint32_t>(),
               g["slots"].get<uint32_t>(), g["ring_slots"].get<uint32_t>());
  fmt::print("  recorded: {}\n", counters_line(all));
  return {};
}

struct ReplayFlags {
  std::string trace, machine, model, share, admit, promote, policy, cache;
  double half_life = 0;
  uint64_t expert_bytes = 0;
  bool json = false;
};

std::string model_names() {
  std::vector<std::string> names;
  for (const experts::ModelSizes& model : experts::known_models()) names.emplace_back(model.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// `sizes_of`: the model's name, where other sizes were asked for.
Result<experts::SimulationSetup> replay_setup(const ReplayFlags& flags, const experts::Trace& trace,
                                              std::string& sizes_of) {
  experts::SimulationSetup setup = experts::setup_of(trace.head);
  if (!flags.policy.empty()) {
    const auto policy = experts::parse_policy(flags.policy);
    if (!policy) return std::unexpected(policy.error().in("--moe-cache-policy"));
    setup.settings.policy.kind = *policy;
  }
  SW_TRY(check_half_life(flags.half_life));
  if (flags.half_life > 0) setup.settings.policy.half_life = flags.half_life;
  if (!flags.share.empty()) {
    SW_ASSIGN(setup.settings.cpu_share, parse_choice("--moe-cache-cpu-share", flags.share, 0, 1));
  }
  if (!flags.admit.empty()) {
    SW_ASSIGN(setup.settings.admit, parse_choice("--moe-cache-admit", flags.admit, 0, 1000));
  }
  if (!flags.promote.empty()) setup.settings.promote = parse_promotion(flags.promote);
  if (!flags.cache.empty()) {
    SW_ASSIGN(const engine::CacheSize size, parse_cache("--moe-cache-mib", flags.cache));
    if (size.unit == engine::CacheSize::Unit::kAuto)
      return invalid(
          "--moe-cache-mib auto: a replay has no device to fill; give MiB, a share (25%) or experts (64s)");
    uint64_t n = 0, bytes = 0;
    for (const experts::GroupShape& group : trace.head.groups) {
      n += group.layers.size() * group.n_experts;
      bytes += group.layers.size() * group.n_experts * group.expert_bytes;
    }
    setup.slots.clear();
    setup.cache_share =
        static_cast<double>(size.bytes(n, static_cast<double>(bytes) / static_cast<double>(n))) /
        static_cast<double>(bytes);
  }
  if (!flags.machine.empty()) {
    SW_ASSIGN(setup.machine, find_profile("--machine", flags.machine));
    setup.step_us.reset();
  }
  if (flags.expert_bytes > 0) setup.expert_bytes = flags.expert_bytes;
  if (!flags.model.empty()) {
    const auto known = experts::known_models();
    const auto means = [&](const experts::ModelSizes& sizes) { return sizes.name.starts_with(flags.model); };
    const auto model = std::ranges::find_if(known, means);  // without its type will do
    if (std::ranges::count_if(known, means) != 1)
      return invalid("--as-model '{}': the sizes known are those of {}", flags.model, model_names());
    setup.expert_bytes = model->expert_bytes;
    setup.dense_bytes = model->dense_bytes;
    sizes_of = model->name;
  }
  return setup;
}

// Prompts and single tokens apart, and of these the second half, when the cache is warm.
std::vector<std::string> speed_words(const experts::Routes& routes, const experts::SimulationResult& result) {
  double prompt_us = 0;
  uint64_t prompt_tokens = 0;
  std::vector<double> single_us;
  for (size_t i = 0; i < result.steps_us.size(); ++i) {
    const uint32_t n = routes.steps()[i].n_tokens;
    if (n == 1)
      single_us.push_back(result.steps_us[i]);
    else
      prompt_us += result.steps_us[i], prompt_tokens += n;
  }
  const auto speed = [](std::span<const double> us) {
    const double each = std::accumulate(us.begin(), us.end(), 0.0) / static_cast<double>(us.size());
    return fmt::format("{:.1f} us a token, {:.1f} tok/s", each, 1e6 / each);
  };
  std::vector<std::string> words;
  if (!single_us.empty()) words.push_back("decoding " + speed(single_us));
  if (single_us.size() > 1)
    words.push_back("the later half of it " + speed(std::span(single_us).subspan(single_us.size() / 2)));
  if (prompt_tokens > 0)
    words.push_back(fmt::format("{} tokens in steps of more than one at {:.1f} tok/s", prompt_tokens,
                                1e6 * static_cast<double>(prompt_tokens) / prompt_us));
  return words;
}

Result<void> replay(const ReplayFlags& flags) {
  SW_ASSIGN(const experts::Trace trace, read_trace(flags.trace));
  // First, that this is the planner that made the record.
  const auto verified = experts::verify_replay(trace);
  if (!verified)
    note("the recorded decisions are not reproduced (another version made them?): " +
         verified.error().message);
  const experts::Routes routes = experts::routes_of(trace);
  std::string sizes_of;
  SW_ASSIGN(const experts::SimulationSetup setup, replay_setup(flags, trace, sizes_of));
  SW_ASSIGN(const experts::SimulationResult result, experts::simulate(routes, setup));
  SW_ASSIGN(const experts::SimulationResult bound, experts::simulate_belady(routes, setup));
  Counters all = result.cold, most = bound.cold;
  all.add(result.warm);
  most.add(bound.warm);
  const Label label = setup.machine.link_gb_s.label;
  const std::string kind = !flags.machine.empty() ? "estimated"
                           : label == Label::kDefault
                               ? "predicted from rates that are default: nobody measured this machine"
                               : fmt::format("predicted from rates that are {}", label_name(label));
  if (flags.json) {
    fmt::print("{}\n",
               Json{{"schema", 1},
                    {"label", flags.machine.empty() ? "predicted" : "estimated"},
                    {"profile", setup.machine.name},
                    {"settings", settings_text(setup.settings)},
                    {"reproduced", verified.has_value()},
                    {"tokens", result.tokens},
                    {"us", result.us},
                    {"us_per_token", result.us / static_cast<double>(std::max<uint64_t>(result.tokens, 1))},
                    {"counters", counters_json(all)},
                    {"cold", counters_json(result.cold)},
                    {"warm", counters_json(result.warm)},
                    {"belady_hit_rate", most.hit_rate()},
                    {"as_model", sizes_of},
                    {"expert_bytes", flags.expert_bytes},
                    {"notes", result.notes}}
                   .dump(2, ' ', false, Json::error_handler_t::replace));
    return {};
  }
  if (verified) fmt::print("the {} recorded plans are reproduced exactly\n", verified->plans);
  const std::string sizes =
      !sizes_of.empty() ? fmt::format(", as if the experts and dense weights had the sizes of {}", sizes_of)
      : flags.expert_bytes > 0 ? fmt::format(", as if each expert had {}", format_bytes(flags.expert_bytes))
                               : "";
  fmt::print("replayed with {}, machine {}{}:\n  {}\n", settings_text(setup.settings), setup.machine.name,
             sizes, counters_line(all));
  fmt::print("  Belady's rule with bypass, which knows the future and which no policy beats: {:.1f} % hits\n",
             100 * most.hit_rate());
  fmt::print("  {} ({})\n", fmt::join(speed_words(routes, result), "; "), kind);
  for (const std::string& words : result.notes) fmt::print("  note: {}\n", words);
  return {};
}

Result<void> compare(const std::vector<std::string>& paths) {
  std::vector<experts::Routes> runs;
  for (const std::string& path : paths) {
    SW_ASSIGN(const experts::Trace trace, read_trace(path));
    runs.push_back(experts::routes_of(trace));
  }
  SW_ASSIGN(const std::vector<experts::ComparisonRow> rows, experts::compare(runs));
  fmt::print("{}", experts::comparison_table(rows));
  return {};
}

void add_replay_options(CLI::App& command, ReplayFlags& flags) {
  command.add_option("trace", flags.trace, "file written by 'trace record'")->required();
  command.add_option(
      "--machine", flags.machine,
      "replay on another machine's profile: rtx3060-pcie3-ddr4, rtx3060-pcie4-ddr4, "
      "rtx4090-pcie4-ddr5, rtx3090-pcie4-epyc, 'this' (as 'spillway probe' saved it here), or a "
      "file that it wrote; without it, on the profile of the record");
  command.add_option("--moe-cache-mib", flags.cache, "another cache size: MiB, a share (25%), experts (64s)");
  command.add_option("--moe-cache-cpu-share", flags.share, "another share: 0 to 1, or auto");
  command.add_option("--moe-cache-policy", flags.policy, "another policy: crf, lru, static, b12191");
  command.add_option("--moe-cache-half-life", flags.half_life, "another half-life, in tokens")
      ->check(NumberWithin(0, 1e6));
  command.add_option("--moe-cache-admit", flags.admit, "another admission factor, or auto");
  command.add_option("--moe-promote", flags.promote, "on, off or auto")
      ->check(CLI::IsMember({"on", "off", "auto"}));
  constexpr uint64_t kMostExpertBytes = uint64_t{1} << 40;
  CLI::Option* bytes =
      command.add_option("--expert-bytes", flags.expert_bytes, "replay with experts of this size")
          ->check(CLI::Range(uint64_t{1}, kMostExpertBytes));
  command
      .add_option("--as-model", flags.model,
                  "replay with the expert and dense sizes of a published model: " + model_names())
      ->excludes(bytes);
  command.add_flag("--json", flags.json, "print JSON");
}

}  // namespace

void add_trace(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("trace", "Record what was routed and decided; replay it with other settings");
  command->require_subcommand(1);

  auto record_flags = std::make_shared<RecordFlags>();
  CLI::App* record_command =
      command->add_subcommand("record", "Run a text through a model and write what its experts did");
  record_command->add_option("-o,--out", record_flags->out, "file to write")->required();
  record_command->add_option("-f,--file", record_flags->text_file,
                             "text to run, - for standard input; without it, a built-in one");
  record_command
      ->add_option("--prompt-tokens", record_flags->prompt, "tokens of it that are run at once, as a prompt")
      ->check(CLI::Range(0u, limits::kMaxContext))
      ->capture_default_str();
  record_command->add_option("-n,--predict", record_flags->decode, "tokens after them, run one by one")
      ->check(CLI::Range(0u, limits::kMaxContext))
      ->capture_default_str();
  record_flags->load.add_to(*record_command);
  record_flags->load.add_records_to(*record_command);
  record_command->callback([record_flags, record_command, &exit_code] {
    const auto result = record(*record_flags, *record_command);
    exit_code = result ? *result : report(result.error());
  });

  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* show_command = command->add_subcommand("show", "Say what a trace holds");
  show_command->add_option("trace", *path, "file written by 'trace record'")->required();
  show_command->add_flag("--json", *json, "print JSON");
  show_command->callback([path, json, &exit_code] {
    const auto result = show(*path, *json);
    exit_code = result ? finish_output() : report(result.error());
  });

  auto replay_flags = std::make_shared<ReplayFlags>();
  CLI::App* replay_command = command->add_subcommand("replay",
                                                     "Replay a trace: what other settings or another machine "
                                                     "would have made of it (predicted or estimated)");
  add_replay_options(*replay_command, *replay_flags);
  replay_command->callback([replay_flags, &exit_code] {
    const auto result = replay(*replay_flags);
    exit_code = result ? finish_output() : report(result.error());
  });

  auto paths = std::make_shared<std::vector<std::string>>();
  CLI::App* compare_command = command->add_subcommand(
      "compare",
      "Table of auto against the reference at its best share, on four machines and two models (estimated)");
  compare_command->add_option("traces", *paths, "files written by 'trace record'")->required();
  compare_command->callback([paths, &exit_code] {
    const auto result = compare(*paths);
    exit_code = result ? finish_output() : report(result.error());
  });
}

}  // namespace spillway::cli
