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

// An option's name as these users write it: with one dash where it has such a name ("-t", "-ngl"), else its
// first with two.
std::string name_as_written(const CLI::Option& option);

// The command with what was given, as it could be typed again.
std::string command_line(const CLI::App& command);

// As CLI::Range for fractions, but refuses what is no number.
struct NumberWithin : CLI::Validator {
  NumberWithin(double low, double high);
};

// Help in which these options have one dash.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
};

}  // namespace spillway::cli
