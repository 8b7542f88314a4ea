// `spillway tokenize` and `spillway detokenize`.
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "cli/common.h"
#include "cli/model_text.h"
#include "cli/token_list.h"
#include "engine/model_files.h"
#include "text/stream_decoder.h"

namespace spillway::cli {
namespace {

struct TokenizeFlags {
  std::string model, prompt, file, pre, tokens;
  bool no_special = false, parse_special = false, json = false, show = false;
};

Result<std::unique_ptr<text::Tokenizer>> open_tokenizer(const TokenizeFlags& flags) {
  SW_ASSIGN(const engine::ModelFiles files, engine::open_model_files(flags.model));
  const auto* embedding = files.model.find("token_embd.weight");
  const uint64_t rows =
      embedding ? embedding->dims[1] : limits::kMaxVocabulary;  // a vocabulary-only file has none
  SW_ASSIGN(auto tokenizer, load_tokenizer(flags.model, files.model.metadata(),
                                           static_cast<uint32_t>(std::min<uint64_t>(rows, UINT32_MAX)),
                                           flags.pre.empty() ? std::nullopt : std::optional(flags.pre)));
  for (const std::string& warning : tokenizer->warnings()) note("warning: " + warning);
  return tokenizer;
}

Result<void> tokenize(const TokenizeFlags& flags, bool has_prompt) {
  SW_ASSIGN(const auto tokenizer, open_tokenizer(flags));
  std::string text = flags.prompt;
  if (!has_prompt) {
    SW_ASSIGN(text, flags.file.empty() || flags.file == "-"
                        ? read_standard_input(limits::kMaxTextBytes)
                        : read_text_file(flags.file, limits::kMaxTextBytes));
  }
  SW_ASSIGN(const auto ids, tokenizer->encode(text, {.add_special = !flags.no_special,
                                                     .parse_special = flags.parse_special}));
  if (flags.json) {
    nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
    for (const int32_t id : ids) {
      const std::string_view bytes = tokenizer->token_bytes(id);
      pieces.push_back({{"id", id},
                        {"text", text::to_valid_utf8(bytes)},
                        {"bytes", std::vector<uint8_t>(bytes.begin(), bytes.end())}});
    }
    fmt::print("{}\n", nlohmann::ordered_json{{"tokens", pieces}}.dump(flags.show ? 2 : -1));
  } else if (flags.show) {
    for (const int32_t id : ids)
      fmt::print("{:>8}  {}\n", id, nlohmann::json(text::to_valid_utf8(tokenizer->token_bytes(id))).dump());
  } else {
    fmt::print("{}\n", fmt::join(ids, ","));
  }
  return {};
}

Result<void> detokenize(const TokenizeFlags& flags, bool has_tokens) {
  SW_ASSIGN(const auto tokenizer, open_tokenizer(flags));
  std::string list = flags.tokens;
  if (!has_tokens) {
    SW_ASSIGN(list, read_standard_input(limits::kMaxTextBytes));
  }
  SW_ASSIGN(const auto ids, parse_token_list(list));
  SW_ASSIGN(const std::string bytes, tokenizer->decode(ids, {.skip_special = !flags.parse_special}));
  if (flags.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"text", text::to_valid_utf8(bytes)}}.dump());
  } else {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    if (stdout && !bytes.ends_with('\n')) std::fputc('\n', stdout);
  }
  return {};
}

void add_model(CLI::App& command, TokenizeFlags& flags) {
  command.add_option("-m,--model", flags.model, "GGUF file; of a split model, any of its files")->required();
  command.add_option("--pre", flags.pre, "pre-tokenizer to use instead of the file's");
  command.add_flag("--json", flags.json, "print JSON");
}

int finish(const Result<void>& result) {
  if (!result) return report(result.error());
  return finish_output();
}

}  // namespace

void add_tokenize(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* command = app.add_subcommand("tokenize", "Print the token ids of a text, separated by commas");
  add_model(*command, *flags);
  auto* prompt =
      command->add_option("-p,--prompt", flags->prompt, "the text; without it, -f or standard input");
  command->add_option("-f,--file", flags->file, "read the text from a file")->excludes(prompt);
  command->add_flag("--no-special", flags->no_special,
                    "do not add the begin and end tokens that the model asks for");
  command->add_flag("--parse-special", flags->parse_special, "read control tokens in the text as such");
  command->add_flag("--show", flags->show, "one token a line, with its text");
  command->callback(
      [flags, prompt, &exit_code] { exit_code = finish(tokenize(*flags, prompt->count() > 0)); });
}

void add_detokenize(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* command = app.add_subcommand("detokenize", "Print the text of token ids");
  add_model(*command, *flags);
  auto* tokens = command->add_option("--tokens", flags->tokens,
                                     "ids separated by commas or spaces; without it, standard input");
  command->add_flag("--special", flags->parse_special, "show control tokens");
  command->callback(
      [flags, tokens, &exit_code] { exit_code = finish(detokenize(*flags, tokens->count() > 0)); });
}

}  // namespace spillway::cli
