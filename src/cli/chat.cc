#include "cli/chat.h"

#include <editline/readline.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cli/common.h"
#include "cli/expert_report.h"
#include "cli/load_flags.h"
#include "cli/terminal.h"

namespace spillway::cli {
namespace {

constexpr const char* kHelp =
    "  /help             this list\n"
    "  /reset            forget the conversation (the system message stays)\n"
    "  /system TEXT      set the system message and forget the conversation; without TEXT, remove it\n"
    "  /set              show the settings\n"
    "  /set NAME VALUE   temp, top-k, top-p, min-p, repeat-penalty, seed, n, think (on, off)\n"
    "  /stats [layers]   figures of the last answer, what is loaded, what the experts did (of each layer)\n"
    "  /quit             leave (or Ctrl-D)\n"
    "Ctrl-C stops an answer. A line that ends with a backslash goes on in the next.\n";

// A Ctrl-D that was typed before the prompt took over the terminal arrives as a NUL, which libedit takes for
// the terminal's unset "literal next": the next Ctrl-D would be put into the line. It binds anew for each
// line.
int ignore_early_end() {
  rl_parse_and_bind("bind ^@ em-set-mark");
  return 0;
}

class Chat {
 public:
  Chat(Conversation& conversation, engine::Engine& engine) : conversation_(conversation), engine_(engine) {}

  int loop() {
    fmt::print("Chat with {}. /help lists the commands.\n", engine_.description().name.empty()
                                                                ? engine_.description().family
                                                                : engine_.description().name);
    using_history();
    rl_pre_input_hook = ignore_early_end;
    while (!terminated()) {
      const auto line = read_message();
      if (!line) break;
      if (line->empty()) continue;
      add_history(line->c_str());
      if ((*line)[0] != '/') {
        answer(*line);
      } else if (!run_command(*line)) {
        break;
      }
    }
    return terminated() ? kExitInterrupted : kExitOk;
  }

 private:
  // One message, of several lines where they end with a backslash; nothing at the end of input.
  std::optional<std::string> read_message() {
    std::string message;
    const char* prompt = "> ";
    for (;;) {
      set_prompting(true);
      const std::unique_ptr<char, decltype(&std::free)> line(readline(prompt), &std::free);
      if (terminated()) return std::nullopt;
      // A line that was typed counts, whatever came just before libedit took over the terminal.
      const bool fresh_line = line == nullptr && interrupted();
      set_prompting(false);
      if (fresh_line) {
        fmt::print("\n(Ctrl-D or /quit to leave)\n");
        message.clear();
        prompt = "> ";
        continue;
      }
      if (!line) {
        fmt::print("\n");
        return std::nullopt;
      }
      message += line.get();
      if (!message.ends_with('\\')) return message;
      message.back() = '\n';
      prompt = ". ";
    }
  }

  void answer(const std::string& message) {
    const auto result = conversation_.ask(message, [](const std::string& piece) {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      return flush_stdout();
    });
    if (!result) {
      report(result.error());
      return;
    }
    fmt::print("\n");
    last_ = result->figures;
    say(dim(format_figures(result->figures)));
    if (result->finish == Finish::kContextFull)
      note(fmt::format(
          "the answer was cut: the context is full ({} of {} positions); /reset, or start with a larger -c",
          conversation_.tokens_in_context(), engine_.context()));
    if (result->finish == Finish::kInterrupted) note("stopped");
  }

  // False for /quit.
  bool run_command(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string name = line.substr(1, space == std::string::npos ? space : space - 1);
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (name == "quit" || name == "exit") return false;
    if (name == "help") {
      fmt::print("{}", kHelp);
    } else if (name == "reset") {
      conversation_.reset();
      fmt::print("The conversation starts anew.\n");
    } else if (name == "system") {
      conversation_.set_system(rest);
      conversation_.reset();
      fmt::print("{}\n", rest.empty() ? "No system message; the conversation starts anew."
                                      : "System message set; the conversation starts anew.");
    } else if (name == "set") {
      set(rest);
    } else if (name == "stats") {
      fmt::print("{}\n{}{}{}\ncontext: {} of {} positions used\n", describe_load(engine_),
                 expert_text(engine_), rest == "layers" ? expert_layers_text(engine_.expert_stats()) : "",
                 format_figures(last_), conversation_.tokens_in_context(), engine_.context());
    } else {
      fmt::print("There is no command /{}; /help lists them.\n", name);
    }
    return true;
  }

  void set(const std::string& words) {
    sample::SamplerParams changed = conversation_.sampling();
    const size_t space = words.find(' ');
    const std::string name = words.substr(0, space);
    const std::string value = space == std::string::npos ? "" : words.substr(space + 1);
    bool known = true;
    const auto number = [&](auto& target) {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), target);
      if (error != std::errc() || end != value.data() + value.size()) {
        fmt::print("'{}' is not a value for {}.\n", value, name);
        known = false;
      }
    };
    if (name == "temp") {
      number(changed.temperature);
    } else if (name == "top-k") {
      number(changed.top_k);
    } else if (name == "top-p") {
      number(changed.top_p);
    } else if (name == "min-p") {
      number(changed.min_p);
    } else if (name == "repeat-penalty") {
      number(changed.repeat_penalty);
    } else if (name == "seed") {
      number(changed.seed);
    } else if (name == "n") {
      int64_t n = -1;
      number(n);
      if (known && n < -1) {
        fmt::print("n is {}, must be -1 (no limit) or a number of tokens.\n", n);
        known = false;
      }
      if (known) conversation_.options().max_tokens = n;
    } else if (name == "think" && (value == "on" || value == "off")) {
      conversation_.template_variables()["enable_thinking"] = value == "on";
    } else if (!name.empty()) {
      fmt::print("There is no setting '{}'; /help lists them.\n", words);
      known = false;
    }
    if (!known) return;
    if (const auto fine = sample::validate(changed, engine_.vocabulary()); !fine) {
      report(fine.error());
      return;
    }
    conversation_.sampling() = changed;
    fmt::print("temp {}, top-k {}, top-p {}, min-p {}, repeat-penalty {}, seed {}, n {}\n",
               changed.temperature, changed.top_k, changed.top_p, changed.min_p, changed.repeat_penalty,
               changed.seed, conversation_.options().max_tokens);
  }

  Conversation& conversation_;
  engine::Engine& engine_;
  Figures last_;
};

}  // namespace

Result<int> chat(Conversation& conversation, engine::Engine& engine) {
  return Chat(conversation, engine).loop();
}

}  // namespace spillway::cli
