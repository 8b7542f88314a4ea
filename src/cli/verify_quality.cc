// `spillway verify`: runs a text and generates an answer with a reference (the CPU alone), and again with
// each of the alternatives, and compares the logits row by row. The models are loaded one after another; the
// reference's logits wait in a scratch file meanwhile.
#include <filesystem>

#include "base/limits.h"
#include "cli/arguments.h"
#include "cli/common.h"
#include "cli/model_text.h"
#include "cli/output_file.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"
#include "cli/verify_result.h"
#include "cli/verify_settings.h"
#include "tune/bench_text.h"
#include "tune/fingerprint.h"
#include "tune/row_store.h"
#include "tune/run_recorder.h"

namespace spillway::cli {
namespace {

constexpr uint32_t kTextTokens = 512;
// The answer continues this much of the text.
constexpr size_t kPromptTokens = 64;

// The text as the model's tokens.
struct Text {
  std::string name;
  std::vector<int32_t> tokens;
  std::unique_ptr<text::Tokenizer> tokenizer;
};

Result<std::unique_ptr<text::Tokenizer>> tokenizer_of(const std::string& path) {
  SW_ASSIGN(const engine::ModelFiles files, engine::open_model_files(path));
  // How many rows its embedding has is checked when it is loaded.
  return load_tokenizer(path, files.model.metadata(), UINT32_MAX);
}

Result<Text> read_text(const VerifyFlags& flags) {
  Text text{.name = flags.text_file.empty() ? "the built-in text" : flags.text_file};
  std::string words(tune::bench_text());
  if (!flags.text_file.empty()) {
    SW_ASSIGN(words, flags.text_file == "-" ? read_standard_input(limits::kMaxTextBytes)
                                            : read_text_file(flags.text_file, limits::kMaxTextBytes));
  }
  SW_ASSIGN(text.tokenizer, tokenizer_of(flags.load.model));
  SW_ASSIGN(text.tokens, text.tokenizer->encode(words, {.add_special = true}));
  if (text.tokens.size() < 2)
    return invalid("{} has {} tokens; two or more are needed", text.name, text.tokens.size());
  if (flags.tokens > text.tokens.size())
    return invalid("--tokens {}: {} has {} tokens in this vocabulary", flags.tokens, text.name,
                   text.tokens.size());
  text.tokens.resize(std::min<size_t>(text.tokens.size(), flags.tokens != 0 ? flags.tokens : kTextTokens));
  return text;
}

// Rows of logits can be compared only where they are of the same tokens.
Result<void> check_vocabulary(const text::Vocabulary& own, const std::string& path) {
  SW_ASSIGN(const auto tokenizer, tokenizer_of(path));
  const text::Vocabulary& other = tokenizer->vocabulary();
  if (other.size() != own.size())
    return invalid(
        "--against {}: its vocabulary has {} tokens, that of the model {}; only files of the same "
        "model can be compared",
        path, other.size(), own.size());
  for (uint32_t id = 0; id < own.size(); ++id)
    if (other.text(id) != own.text(id))
      return invalid(
          "--against {}: its token {} is '{}', that of the model '{}'; only files of the same model can "
          "be compared",
          path, id, other.text(id), own.text(id));
  return {};
}

Result<tune::RowStore> make_store(const VerifyFlags& flags, const Text& text, uint32_t width) {
  const uint64_t row_bytes = uint64_t{width} * sizeof(float), most = flags.scratch_mib << 20;
  if (text.tokens.size() * row_bytes > most)
    return invalid(
        "the reference's logits of {} tokens take {} of disk space, and --scratch-mib allows {}: give "
        "--tokens {}, or allow more",
        text.tokens.size(), format_bytes(text.tokens.size() * row_bytes), format_bytes(most),
        most / row_bytes);
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  return tune::RowStore::create(error ? "/tmp" : folder.string(), width);
}

// Calls take(i, row) for every token. An error of take() ends it.
Result<void> run_text(engine::Engine& engine, std::span<const int32_t> tokens, const std::string& title,
                      const std::function<Result<void>(size_t, std::span<const float>)>& take) {
  ProgressBar bar(title);
  const engine::SequenceId sequence = engine.open_sequence();
  const size_t piece = engine.memory().ubatch;
  Result<void> taken;
  for (size_t first = 0; first < tokens.size(); first += piece) {
    const engine::BatchItem item{.sequence = sequence,
                                 .tokens = tokens.subspan(first, std::min(piece, tokens.size() - first)),
                                 .want = engine::Want::kAll};
    const auto decoded = engine.decode(
        std::span(&item, 1),
        [&](size_t, size_t token, std::span<const float> row) {
          if (taken) taken = take(first + token, row);
          bar.update(first + token + 1, tokens.size());
        },
        [&] { return taken && !interrupted(); });
    if (!taken) return taken;
    if (!decoded) return decoded;
  }
  bar.clear();
  engine.close_sequence(sequence);
  return {};
}

// The likeliest token every time, after the first tokens of the text, until the model ends its answer.
Result<std::vector<int32_t>> answer(engine::Engine& engine, const Text& text, uint32_t n,
                                    const std::string& title) {
  std::vector<int32_t> tokens;
  if (n == 0) return tokens;
  ProgressBar bar(title);
  const engine::SequenceId sequence = engine.open_sequence();
  std::vector<int32_t> next(
      text.tokens.begin(),
      text.tokens.begin() + static_cast<std::ptrdiff_t>(std::min(kPromptTokens, text.tokens.size())));
  while (tokens.size() < n) {
    const engine::BatchItem item{.sequence = sequence, .tokens = next, .want = engine::Want::kLast};
    int32_t best = 0;
    SW_TRY(engine.decode(
        std::span(&item, 1),
        [&](size_t, size_t, std::span<const float> row) {
          best = static_cast<int32_t>(tune::likeliest(row));
        },
        [] { return !interrupted(); }));
    tokens.push_back(best);
    if (text.tokenizer->vocabulary().is_end_of_generation(best)) break;
    next = {best};
    bar.update(tokens.size(), n);
  }
  bar.clear();
  engine.close_sequence(sequence);
  return tokens;
}

std::optional<AnswerDifference> first_difference(const text::Tokenizer& tokenizer,
                                                 std::span<const int32_t> reference,
                                                 std::span<const int32_t> other) {
  const size_t at = static_cast<size_t>(std::ranges::mismatch(reference, other).in1 - reference.begin());
  if (at == reference.size() && at == other.size()) return std::nullopt;
  const auto text_at = [&](std::span<const int32_t> tokens) {
    if (at >= tokens.size()) return std::string();
    return tokenizer.decode(tokens.subspan(at, 1), {.skip_special = false, .continuation = true})
        .value_or(fmt::format("token {}", tokens[at]));
  };
  return AnswerDifference{at, text_at(reference), text_at(other)};
}

class Verifier {
 public:
  Verifier(const VerifyFlags& flags, Text text) : flags_(flags), text_(std::move(text)) {
    found_.text = text_.name;
    found_.tokens = text_.tokens.size();
  }
  const Text& text() const { return text_; }
  Verification& found() { return found_; }
  const Verification& found() const { return found_; }
  // That was compared; nullptr: none.
  const backend::DeviceInfo* device() const { return device_ ? &*device_ : nullptr; }
  // In force in what was run, in its order.
  const std::vector<report::Setting>& settings() const { return settings_; }

  Result<void> run_reference(const Alternative& reference) {
    SW_ASSIGN(const auto engine, load(reference));
    SW_ASSIGN(store_, make_store(flags_, text_, engine->vocabulary()));
    row_.resize(engine->vocabulary());
    SW_TRY(run_text(*engine, text_.tokens, "reference",
                    [&](size_t, std::span<const float> row) { return store_->append(row); }));
    SW_ASSIGN(answer_, answer(*engine, text_, flags_.generate, "its answer"));
    return {};
  }

  Result<void> compare(const Alternative& alternative) {
    Compared compared{.name = alternative.name, .must_be_equal = alternative.must_be_equal};
    auto engine = load(alternative);
    if (!engine && engine.error().kind == Error::Kind::kNoMemory) {
      compared.skipped = engine.error().message;
      found_.compared.push_back(std::move(compared));
      return {};
    }
    if (!engine) return std::unexpected(engine.error());
    if (const backend::DeviceInfo* device = (*engine)->device(); device != nullptr && !device_)
      device_ = *device;
    if ((*engine)->vocabulary() != row_.size())
      return invalid("{}: it gives {} logits a token, the reference {}", alternative.name,
                     (*engine)->vocabulary(), row_.size());
    const auto take = [&](size_t i, std::span<const float> row) -> Result<void> {
      SW_TRY(store_->read(i, row_));
      std::optional<uint32_t> next;
      if (i + 1 < text_.tokens.size()) next = static_cast<uint32_t>(text_.tokens[i + 1]);
      compared.quality.add(tune::compare_rows(row_, row, next));
      return {};
    };
    SW_TRY(run_text(**engine, text_.tokens, alternative.name, take));
    SW_ASSIGN(const std::vector<int32_t> tokens, answer(**engine, text_, flags_.generate, "its answer"));
    compared.answer_tokens = answer_.size();
    compared.answer = first_difference(*text_.tokenizer, answer_, tokens);
    compared.shortfalls = tune::shortfalls(compared.quality, compared.must_be_equal, flags_.limits);
    if (compared.must_be_equal && compared.answer)
      compared.shortfalls.push_back(fmt::format(
          "every bit must be equal, and the answers differ from token {} on", compared.answer->token));
    found_.compared.push_back(std::move(compared));
    return {};
  }

 private:
  Result<std::unique_ptr<engine::Engine>> load(const Alternative& alternative) {
    engine::Options options = alternative.options;
    const auto needed =
        std::max(text_.tokens.size(), std::min(kPromptTokens, text_.tokens.size()) + flags_.generate);
    options.context = std::max(options.context, static_cast<uint32_t>(needed));
    FlagValues& flags = settings_.emplace_back(alternative.name, alternative.flags).flags;
    if (!flags_.text_file.empty()) flags["-f"] = flags_.text_file;
    flags["-n"] = fmt::format("{}", flags_.generate);
    flags["--tokens"] = fmt::format("{}", text_.tokens.size());
    auto engine = load_quietly(options);
    if (engine) take_effective(flags, **engine);
    return engine;
  }

  const VerifyFlags& flags_;
  const Text text_;
  std::optional<tune::RowStore> store_;
  std::vector<float> row_;
  std::vector<int32_t> answer_;  // the reference's
  std::optional<backend::DeviceInfo> device_;
  std::vector<report::Setting> settings_;
  Verification found_;
};

Result<void> write_result(const VerifyFlags& flags, const CLI::App& command, const Verifier& verifier) {
  report::ResultFile result{.kind = "verify"};
  const Text& text = verifier.text();
  result.created = tune::utc_now();
  result.command = command_line(command);
  result.build = tune::build_facts();
  SW_ASSIGN(result.model, tune::model_facts(flags.load.model));
  SW_ASSIGN(result.machine, tune::machine_facts(verifier.device()));
  result.workload = {
      .name = text.name, .content = tune::content_hash(std::as_bytes(std::span(text.tokens))), .requests = 1};
  result.settings = verifier.settings();
  add_to_result(verifier.found(), result);
  return write_output_file(flags.out, report::to_json(result));
}

}  // namespace

Result<int> verify_quality(const VerifyFlags& flags, const CLI::App& command) {
  std::vector<std::string> inputs = flags.against;
  inputs.insert(inputs.end(), {flags.load.model, flags.text_file});
  SW_TRY(check_output_file(flags.out, inputs));
  SW_ASSIGN(const Alternative plain, reference(flags, command));
  SW_ASSIGN(const std::vector<Alternative> list, alternatives(flags, command));
  SW_ASSIGN(Text text, read_text(flags));
  for (const std::string& path : flags.against) SW_TRY(check_vocabulary(text.tokenizer->vocabulary(), path));
  Verifier verifier(flags, std::move(text));
  if (const auto done = verifier.run_reference(plain); !done) {
    if (done.error().kind != Error::Kind::kCancelled) return std::unexpected(done.error());
    note("stopped before anything could be compared");
    return kExitInterrupted;
  }
  for (const Alternative& alternative : list) {
    const auto done = verifier.compare(alternative);
    if (!done && done.error().kind != Error::Kind::kCancelled) return std::unexpected(done.error());
    verifier.found().interrupted = !done;
    if (!done) break;  // what was compared is shown
  }
  const Verification& found = verifier.found();
  if (flags.json)
    fmt::print("{}\n", verification_json(found, flags.limits)
                           .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else
    fmt::print("{}", verification_text(found, flags.limits));
  if (!flags.out.empty()) SW_TRY(write_result(flags, command, verifier));
  if (!flush_stdout()) return fail(Error::Kind::kIo, "standard output cannot be written to");
  if (found.interrupted) return kExitInterrupted;
  return found.passed() ? kExitOk : kExitError;
}

}  // namespace spillway::cli
