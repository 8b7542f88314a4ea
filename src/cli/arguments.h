// The command line as llama.cpp's users type it: "-lm mmap", "-ctk f16". CLI11 knows only one-letter options
// after a single dash, so these are rewritten before it sees them, and shown that way in the help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace spillway::cli {

// The arguments with "-lm" made "--lm" and so on; an argument after "--" is left alone.
std::vector<std::string> rewrite_arguments(int argc, char** argv);

// Of an option that takes one value and is given twice, the last counts: people add to a command line to
// change it.
void take_last_of_repeated(CLI::App& app);

// Help in which these options have one dash.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
};

}  // namespace spillway::cli
