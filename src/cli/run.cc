// `spillway run`: one prompt, or a chat on a terminal.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "cli/chat.h"
#include "cli/common.h"
#include "cli/conversation.h"
#include "cli/demo_model.h"
#include "cli/expert_report.h"
#include "cli/load_flags.h"
#include "cli/sampling_flags.h"
#include "cli/terminal.h"

namespace spillway::cli {
namespace {

struct RunFlags {
  LoadFlags load;
  SamplingFlags sampling;
  std::string prompt, prompt_file, system, template_file, template_variables, thinking = "default", pre;
  int64_t max_tokens = -1;
  bool no_chat = false, ignore_eos = false, show_special = false, json = false, no_figures = false;
  std::vector<std::string> stops;

  void add_to(CLI::App& command);
};

void RunFlags::add_to(CLI::App& command) {
  const char* group = "Prompt and answer";
  auto* p = command
                .add_option("-p,--prompt", prompt,
                            "the prompt; without one, a chat on a terminal, else standard input")
                ->group(group);
  command.add_option("-f,--file", prompt_file, "read the prompt from a file; - is standard input")
      ->excludes(p)
      ->group(group);
  command.add_option("--sys,--system-prompt", system, "system message of the chat")->group(group);
  command
      .add_option("-n,--predict", max_tokens, "most tokens to generate; -1: until the end of text or context")
      ->check(CLI::Range(int64_t{-1}, int64_t{limits::kMaxContext}))
      ->capture_default_str()
      ->group(group);
  command.add_flag("--no-chat,--no-cnv", no_chat, "continue the plain text: no chat template")->group(group);
  command.add_flag("--ignore-eos", ignore_eos, "never choose an end-of-generation token")->group(group);
  command.add_option("-r,--reverse-prompt,--stop", stops, "stop when this text appears; may be repeated")
      ->group(group);
  command.add_flag("--special", show_special, "show special tokens in the output")->group(group);
  command.add_option("--chat-template-file", template_file, "use this Jinja template instead of the model's")
      ->group(group);
  command.add_option("--chat-template-kwargs", template_variables, "JSON object of template variables")
      ->group(group);
  command.add_option("--think", thinking, "reasoning before the answer, where the template knows it")
      ->check(CLI::IsMember({"default", "on", "off"}))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--pre", pre,
                  "pre-tokenizer to use instead of the file's (for files that name none or a wrong one)")
      ->group(group);
  command.add_flag("--json", json, "one JSON object on standard output: text, finish reason and figures")
      ->group(group);
  command.add_flag("--no-figures", no_figures, "no closing line of figures on standard error")->group(group);
  load.add_to(command);
  load.add_records_to(command);
  load.add_profile_to(command);
  command.get_option("--model")->required(false)->description(
      "GGUF file; of a split model, any of its files; without it, the demo model");
  sampling.add_to(command);
}

nlohmann::ordered_json answer_json(const Answer& answer, const sample::SamplerParams& sampling) {
  const Figures& f = answer.figures;
  const uint32_t computed = f.prompt_tokens - f.cached_tokens;
  const uint32_t decoded = f.generated_tokens > 0 ? f.generated_tokens - 1 : 0;
  return {{"text", answer.text},
          {"finish_reason", finish_name(answer.finish)},
          {"seed", sampling.seed},
          {"measured",
           {{"prompt_tokens", f.prompt_tokens},
            {"cached_tokens", f.cached_tokens},
            {"generated_tokens", f.generated_tokens},
            {"prefill_s", f.prefill_seconds},
            {"ttft_s", f.first_token_seconds},
            {"decode_s", f.decode_seconds},
            {"prefill_tok_s", f.prefill_seconds > 0 ? computed / f.prefill_seconds : 0},
            {"decode_tok_s", f.decode_seconds > 0 ? decoded / f.decode_seconds : 0}}}};
}

// Says why an answer is not whole, and gives the exit code.
int explain_finish(const Answer& answer, const engine::Engine& engine) {
  switch (answer.finish) {
    case Finish::kContextFull:
      note(fmt::format(
          "the answer was cut: the context is full ({} of {} positions); raise -c",
          answer.figures.prompt_tokens + answer.figures.generated_tokens - 1,  // the last is not in it
          engine.context()));
      return kExitError;
    case Finish::kInterrupted:
      return kExitInterrupted;
    default:
      return kExitOk;
  }
}

Result<std::string> get_prompt(const RunFlags& flags, const CLI::App& command) {
  if (command.count("--prompt") > 0) return flags.prompt;
  if (!flags.prompt_file.empty() && flags.prompt_file != "-")
    return read_text_file(flags.prompt_file, limits::kMaxTextBytes);
  return read_standard_input(limits::kMaxTextBytes);
}

Result<text::Json> template_variables(const RunFlags& flags,
                                      const std::optional<text::ChatTemplate>& chat_template) {
  text::Json variables = text::Json::object();
  if (!flags.template_variables.empty()) {
    variables = text::Json::parse(flags.template_variables, nullptr, false);
    if (!variables.is_object())
      return invalid(
          "--chat-template-kwargs '{}' is not a JSON object, such as {{\"enable_thinking\": false}}",
          flags.template_variables);
  }
  if (flags.thinking != "default") {
    if (!chat_template || !chat_template->capabilities().enable_thinking)
      note(fmt::format("--think {} has no effect: this model's chat template has no such switch",
                       flags.thinking));
    variables["enable_thinking"] = flags.thinking == "on";
  }
  return variables;
}

// Plain continuation of a text.
Result<Answer> continue_text(engine::Engine& engine, const text::Tokenizer& tokenizer,
                             const std::string& prompt, const sample::SamplerParams& sampling,
                             const GenerateOptions& options,
                             const std::function<bool(const std::string&)>& emit) {
  SW_ASSIGN(const std::vector<int32_t> tokens, tokenizer.encode(prompt, {.add_special = true}));
  if (tokens.empty()) return invalid("the prompt is empty: there is nothing to continue");
  const engine::SequenceId sequence = engine.open_sequence();
  std::vector<int32_t> history;
  return generate(engine, sequence, tokenizer, tokens, sampling, options, history, emit);
}

Result<int> run(RunFlags& flags, const CLI::App& command) {
  const bool chat_on_terminal =
      command.count("--prompt") == 0 && flags.prompt_file.empty() && stdin_is_terminal();
  if (chat_on_terminal && flags.no_chat)
    return invalid("--no-chat needs a prompt: give -p, -f or standard input");
  if (chat_on_terminal && flags.json) return invalid("--json needs a prompt: give -p, -f or standard input");
  if (command.count("--model") > 0 && flags.load.model.empty())
    return invalid(
        "-m is empty (a variable that is not set?): give a file, or leave -m out for the demo model");
  if (flags.load.model.empty()) {
    SW_ASSIGN(flags.load.model, find_demo_model());
    note(fmt::format("no -m given: this is the demo model, small and made to show the program ({})",
                     flags.load.model));
  }
  SW_TRY(flags.load.check_outputs({flags.prompt_file, flags.template_file}));
  catch_interrupts();
  std::string prompt;
  if (!chat_on_terminal) {
    SW_ASSIGN(prompt, get_prompt(flags, command));
    if (prompt.empty()) return invalid("the prompt is empty: there is nothing to answer");
  }

  SW_ASSIGN(const auto engine, load_engine(flags.load, command));
  SW_ASSIGN(const auto tokenizer,
            load_tokenizer(flags.load.model, engine->metadata(), engine->vocabulary(),
                           flags.pre.empty() ? std::nullopt : std::optional(flags.pre)));
  for (const std::string& warning : tokenizer->warnings()) note("warning: " + warning);
  SW_ASSIGN(const sample::SamplerParams sampling,
            flags.sampling.resolve(command, engine->metadata(), tokenizer->vocabulary().size()));
  GenerateOptions options{.max_tokens = flags.max_tokens,
                          .ignore_eos = flags.ignore_eos,
                          .show_special = flags.show_special,
                          .stops = flags.stops};

  const auto emit = [&](const std::string& piece) {
    if (flags.json) return true;
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    return flush_stdout();
  };
  Result<Answer> answer = Answer{};
  if (flags.no_chat) {
    for (const char* name : {"--system-prompt", "--chat-template-file", "--chat-template-kwargs", "--think"})
      if (command.count(name) > 0)
        note(fmt::format("{} has no effect with --no-chat: the text is continued as it is", name));
    answer = continue_text(*engine, *tokenizer, prompt, sampling, options, emit);
  } else {
    SW_ASSIGN(const auto chat_template,
              load_chat_template(engine->metadata(), tokenizer->vocabulary(), flags.template_file));
    if (!chat_template)
      return invalid(
          "the file has no chat template (key 'tokenizer.chat_template'): give one with "
          "--chat-template-file, "
          "or --no-chat to continue plain text");
    Conversation conversation(*engine, *tokenizer, *chat_template, sampling, options);
    SW_ASSIGN(conversation.template_variables(), template_variables(flags, chat_template));
    conversation.set_system(flags.system);
    if (chat_on_terminal) {
      SW_ASSIGN(const int code, chat(conversation, *engine));
      SW_TRY(write_records(flags.load, *engine));
      return code;
    }
    answer = conversation.ask(prompt, emit);
  }
  SW_TRY(answer);
  if (flags.json) {
    fmt::print("{}\n",
               answer_json(*answer, sampling).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (!answer->text.ends_with('\n')) {
    fmt::print("\n");
  }
  if (!flush_stdout()) return fail(Error::Kind::kIo, "standard output cannot be written to");
  if (!flags.no_figures) {
    say(dim(format_figures(answer->figures)));
    if (const std::string line = expert_line(engine->expert_stats()); !line.empty()) say(dim(line));
  }
  SW_TRY(write_records(flags.load, *engine));
  return explain_finish(*answer, *engine);
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", "Answer a prompt, or chat on a terminal");
  flags->add_to(*command);
  command->callback([flags, command, &exit_code] {
    const auto result = run(*flags, *command);
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace spillway::cli
