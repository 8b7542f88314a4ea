#include "cli/bench_work.h"

#include <charconv>

#include "base/limits.h"
#include "cli/common.h"
#include "cli/model_text.h"

namespace spillway::cli {
namespace {

template <class T>
Result<T> number(const std::string& flag, const std::string& text, T most) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > most)
    return invalid("{} {}: a whole number up to {} is needed", flag, text, most);
  return value;
}

std::vector<uint32_t> token_counts(const std::string& flag, const std::string& text) {
  std::vector<uint32_t> counts;
  for (const std::string& part : split_list(flag, text)) {
    const auto count = number<uint32_t>(flag, part, limits::kMaxContext);
    if (!count) throw CLI::ValidationError(flag, count.error().message);
    counts.push_back(*count);
  }
  return counts;
}

}  // namespace

void BenchWork::write(FlagValues& flags) const {
  if (workload.empty()) {
    flags["-p"] = fmt::format("{}", prompt);
    flags["-n"] = fmt::format("{}", generate);
  } else {
    flags["--workload"] = workload;
    if (users > 0) flags["--users"] = fmt::format("{}", users);
    if (max_tokens > 0) flags["-n"] = fmt::format("{}", max_tokens);
    if (ignore_eos) flags["--ignore-eos"] = "on";
  }
  flags["--seed"] = fmt::format("{}", seed);
}

Result<BenchWork> BenchWork::take(FlagValues& flags) {
  BenchWork work;
  const auto value = [&](const char* flag) {
    const auto found = flags.extract(flag);
    return found ? std::optional(found.mapped()) : std::nullopt;
  };
  work.workload = value("--workload").value_or("");
  uint32_t& tokens = work.workload.empty() ? work.generate : work.max_tokens;
  if (const auto text = value("-p")) {
    SW_ASSIGN(work.prompt, number<uint32_t>("-p", *text, limits::kMaxContext));
  }
  if (const auto text = value("-n")) {
    SW_ASSIGN(tokens, number<uint32_t>("-n", *text, limits::kMaxContext));
  }
  if (const auto text = value("--users")) {
    SW_ASSIGN(work.users, number<uint32_t>("--users", *text, limits::kMaxUsers));
  }
  if (const auto text = value("--seed")) {
    SW_ASSIGN(work.seed, number<uint64_t>("--seed", *text, INT64_MAX - 1));
  }
  work.ignore_eos = value("--ignore-eos").has_value();
  return work;
}

std::string BenchWork::text() const {
  if (!workload.empty()) return fmt::format("workload '{}'", workload);
  if (generate == 0) return fmt::format("a prompt of {} tokens", prompt);
  if (prompt == 0) return fmt::format("{} single tokens", generate);
  return fmt::format("a prompt of {} tokens, then {} single ones", prompt, generate);
}

Result<std::optional<tune::Workload>> BenchWork::load() const {
  if (workload.empty()) return std::nullopt;
  auto loaded = tune::builtin_workload(workload);
  if (!loaded) {
    const auto text = read_text_file(workload, limits::kMaxWorkloadBytes);
    if (!text && text.error().kind == Error::Kind::kNotFound)
      return fail(Error::Kind::kNotFound, "--workload {}: {}, and there is no such file", workload,
                  loaded.error().message);
    SW_TRY(text);
    loaded = tune::parse_workload(workload.substr(workload.find_last_of('/') + 1), *text);
    SW_TRY(loaded);
    if (const std::string words = tune::words_for_unused(*loaded); !words.empty()) note(words);
  }
  if (users > 0) SW_TRY(tune::deal_out(*loaded, users));
  if (max_tokens > 0) tune::limit_answers(*loaded, max_tokens);
  return std::optional(std::move(*loaded));
}

Result<uint32_t> BenchWork::context(const std::optional<tune::Workload>& loaded,
                                    const text::Tokenizer& tokenizer) const {
  constexpr uint64_t kLeast = 512;
  uint64_t needed = std::max(prompt, generate);
  if (loaded) {
    SW_ASSIGN(needed, loaded->context_needed(tokenizer));
  }
  return static_cast<uint32_t>(std::min<uint64_t>(std::max(needed, kLeast), limits::kMaxContext));
}

void BenchWorkFlags::add_to(CLI::App& command) {
  command_ = &command;
  const char* group = "What is run";
  command
      .add_option(
          "--workload", work_.workload,
          "conversations instead of plain tokens: chat (follow-up questions), code (edits), document (a long "
          "text, short questions), long (long answers), users (four at once), or a file with OpenAI-style "
          "requests, one {\"messages\": [...], \"max_tokens\": N} a line")
      ->group(group);
  command
      .add_option("--users", work_.users, "deal the workload's conversations out to N users who talk at once")
      ->check(CLI::Range(1u, limits::kMaxUsers))
      ->group(group);
  command
      .add_option("-p,--n-prompt", prompt_,
                  "without a workload: tokens of the prompt, a list is possible; 0: no prompt")
      ->capture_default_str()
      ->type_name("UINT,...")
      ->group(group);
  command
      .add_option(
          "-n,--n-gen", generate_,
          "without a workload: tokens to decode, a list is possible, 0: none; with one: most tokens of an "
          "answer")
      ->capture_default_str()
      ->type_name("UINT,...")
      ->group(group);
  command.add_flag("--ignore-eos", work_.ignore_eos, "answers of a workload have their full length")
      ->group(group);
  command
      .add_option("-s,--seed", work_.seed, "where in the text plain tokens begin; recorded with the result")
      ->check(CLI::Range(int64_t{0}, INT64_MAX - 1))
      ->capture_default_str()
      ->group(group);
}

Result<std::vector<BenchWork>> BenchWorkFlags::combinations() const {
  const std::vector<uint32_t> prompts = token_counts("-p", prompt_), counts = token_counts("-n", generate_);
  std::vector<BenchWork> all;
  if (!work_.workload.empty()) {
    if (command_->count("-p") > 0)
      return invalid("-p has nothing to do beside --workload, which has its own prompts");
    if (counts.size() > 1) return invalid("-n {}: beside --workload one value is possible", generate_);
    all.push_back(work_);
    if (command_->count("-n") > 0) all[0].max_tokens = counts[0];
    if (command_->count("-n") > 0 && counts[0] == 0)
      return invalid("-n 0: an answer of a workload has at least one token");
    return all;
  }
  for (const char* flag : {"--users", "--ignore-eos"})
    if (command_->count(flag) > 0) return invalid("{} is for a workload: give one with --workload", flag);
  for (const uint32_t prompt : prompts)
    for (const uint32_t count : counts) {
      if (prompt == 0 && count == 0) return invalid("-p 0 with -n 0: there is nothing to measure");
      BenchWork& work = all.emplace_back(work_);
      work.prompt = prompt;
      work.generate = count;
    }
  return all;
}

}  // namespace spillway::cli
