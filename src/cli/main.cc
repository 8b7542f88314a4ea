#include <algorithm>
#include <system_error>

#include "cli/arguments.h"
#include "cli/common.h"
#include "cli/terminal.h"
#include "cli/version.h"

int main(int argc, char** argv) {
  using namespace spillway::cli;
  prepare_standard_streams();
  CLI::App app("Runs Mixture-of-Experts language models (GGUF files) that are larger than the GPU's memory.",
               "spillway");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);

  int exit_code = kExitOk;
  add_run(app, exit_code);
  add_inspect(app, exit_code);
  add_tokenize(app, exit_code);
  add_detokenize(app, exit_code);
  add_logits(app, exit_code);
  add_bench(app, exit_code);
  add_devices(app, exit_code);
  add_probe(app, exit_code);
  add_verify(app, exit_code);
  add_trace(app, exit_code);
  add_plan(app, exit_code);
  add_tune(app, exit_code);
  add_profiles(app, exit_code);
  add_report(app, exit_code);

  std::vector<std::string> arguments = rewrite_arguments(argc, argv);
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  if (!arguments.empty() && !arguments[0].starts_with('-') &&
      std::ranges::find(commands, arguments[0]) == commands.end()) {
    note(fmt::format("'{}' is no command; there are {}", arguments[0], fmt::join(commands, ", ")));
    return kExitUsage;
  }
  std::ranges::reverse(arguments);  // CLI11 takes them from the back
  take_last_of_repeated(app);
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kExitOk : kExitUsage;
  } catch (const std::bad_alloc&) {
    return report(
        {spillway::Error::Kind::kNoMemory, "out of memory; a smaller -c or -ub, or '-lm mmap', needs less"});
  } catch (const std::system_error& error) {  // fmt::print throws where standard output fails
    return report(
        {spillway::Error::Kind::kIo, fmt::format("standard output cannot be written to: {}", error.what())});
  }
  return terminated() && exit_code == kExitInterrupted ? kExitTerminated : exit_code;
}
