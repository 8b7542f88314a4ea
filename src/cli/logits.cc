// `spillway logits`: the logits of every position, for comparing with other engines.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "cli/common.h"
#include "cli/load_flags.h"
#include "cli/model_text.h"
#include "cli/output_file.h"
#include "cli/terminal.h"
#include "cli/token_list.h"

namespace spillway::cli {
namespace {

struct LogitsFlags {
  LoadFlags load;
  std::string tokens, tokens_file, out;
  uint32_t piece = 0;
  uint32_t neighbours = 0;
  bool json = false;
};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Computes all rows, the prompt cut into pieces of `piece` tokens, with `neighbours` other sequences in every
// batch.
Result<void> compute(engine::Engine& engine, std::span<const int32_t> tokens, const LogitsFlags& flags,
                     std::FILE* out) {
  const uint32_t piece = flags.piece != 0 ? flags.piece : static_cast<uint32_t>(tokens.size());
  const engine::SequenceId sequence = engine.open_sequence();
  std::vector<engine::SequenceId> others;
  others.reserve(flags.neighbours);
  for (uint32_t i = 0; i < flags.neighbours; ++i) others.push_back(engine.open_sequence());
  bool written = true;
  std::optional<size_t> not_a_number;  // the first such position
  for (size_t first = 0; first < tokens.size(); first += piece) {
    // The neighbours stand before and after, with tokens of their own.
    std::vector<engine::BatchItem> items;
    const auto add_other = [&](uint32_t i) {
      items.push_back({.sequence = others[i],
                       .tokens = tokens.subspan((first + i) % tokens.size(), 1),
                       .want = engine::Want::kNothing});
    };
    for (uint32_t i = 0; i < flags.neighbours / 2; ++i) add_other(i);
    const size_t own = items.size();
    items.push_back({.sequence = sequence,
                     .tokens = tokens.subspan(first, std::min<size_t>(piece, tokens.size() - first)),
                     .want = engine::Want::kAll});
    for (uint32_t i = flags.neighbours / 2; i < flags.neighbours; ++i) add_other(i);
    SW_TRY(engine.decode(
        items,
        [&](size_t item, size_t token, std::span<const float> row) {
          if (item != own) return;
          if (!not_a_number && std::ranges::any_of(row, [](float x) { return std::isnan(x); }))
            not_a_number = first + token;
          written = written && std::fwrite(row.data(), sizeof(float), row.size(), out) == row.size();
        },
        [] { return !interrupted(); }));
    if (not_a_number)
      return invalid(
          "the logits of position {} hold NaN: the model's weights are damaged; "
          "'spillway inspect --check' names the tensor",
          *not_a_number);
  }
  if (!written || std::fflush(out) != 0)
    return fail(Error::Kind::kIo, "'{}' cannot be written to", flags.out);
  return {};
}

Result<void> logits(const LogitsFlags& flags, const CLI::App& command) {
  std::string list = flags.tokens;
  if (command.count("--tokens") == 0) {
    SW_ASSIGN(list, flags.tokens_file.empty() || flags.tokens_file == "-"
                        ? read_standard_input(limits::kMaxTextBytes)
                        : read_text_file(flags.tokens_file, limits::kMaxTextBytes));
  }
  SW_ASSIGN(const std::vector<int32_t> tokens, parse_token_list(list));
  if (tokens.empty()) return invalid("the list of tokens is empty: there is nothing to compute");
  // Written beside, then renamed: never half a file under the final name. What is no file (a pipe, a device)
  // is written to as it is, not replaced by one.
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(flags.out, error);
  const bool direct = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  if (!direct) SW_TRY(check_output_file(flags.out, {flags.load.model, flags.tokens_file}));
  catch_interrupts();
  SW_ASSIGN(const auto engine, load_engine(flags.load, command));
  const std::string path = direct ? flags.out : flags.out + ".partial";
  std::unique_ptr<std::FILE, CloseFile> out(std::fopen(path.c_str(), "wb"));
  if (!out) return fail(Error::Kind::kIo, "'{}' cannot be written: {}", path, std::strerror(errno));
  if (auto done = compute(*engine, tokens, flags, out.get()); !done) {
    if (!direct) std::filesystem::remove(path, error);
    return done;
  }
  out.reset();
  if (!direct) std::filesystem::rename(path, flags.out, error);
  if (error)
    return fail(Error::Kind::kIo, "'{}' cannot be renamed to '{}': {}", path, flags.out, error.message());
  SW_TRY(write_records(flags.load, *engine));
  if (flags.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"file", flags.out},
                                              {"rows", tokens.size()},
                                              {"columns", engine->vocabulary()},
                                              {"type", "float32, little-endian"}}
                           .dump(2));
  else
    fmt::print("{}: {} rows of {} float32\n", flags.out, tokens.size(), engine->vocabulary());
  return {};
}

}  // namespace

void add_logits(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<LogitsFlags>();
  CLI::App* command =
      app.add_subcommand("logits", "Write the logits of every position as little-endian float32 rows");
  auto* tokens =
      command->add_option("--tokens", flags->tokens,
                          "token ids, separated by commas; without it, --tokens-file or standard input");
  command->add_option("--tokens-file", flags->tokens_file, "read the token ids from a file")
      ->excludes(tokens);
  command->add_option("-o,--out", flags->out, "file to write")->required();
  command
      ->add_option(
          "--piece", flags->piece,
          "cut the prompt into pieces of this many tokens; the result does not depend on it; 0: one piece")
      ->check(CLI::Range(0u, limits::kMaxContext));
  command
      ->add_option("--neighbours", flags->neighbours,
                   "other sequences in every batch; the result does not depend on them")
      ->check(CLI::Range(0u, 256u));
  command->add_flag("--json", flags->json, "print what was written as JSON");
  flags->load.add_to(*command);
  flags->load.add_records_to(*command);
  command->callback([flags, command, &exit_code] {
    const auto result = logits(*flags, *command);
    exit_code = result ? finish_output() : report(result.error());
  });
}

}  // namespace spillway::cli
