#include "cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace spillway::cli {
namespace {

constexpr std::string_view kOneDashNames[] = {"lm",   "ctk",   "ctv", "ub", "sys", "ngl",
                                              "cmoe", "ncmoe", "fa",  "tb", "cnv", "no-cnv"};

bool is_one_dash(std::string_view name) {
  return std::ranges::find(kOneDashNames, name) != std::end(kOneDashNames);
}

// For a shell.
std::string quoted(const std::string& value) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!value.empty() && value.find_first_not_of(kPlain) == std::string::npos) return value;
  std::string text = "'";
  for (const char c : value) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::vector<std::string> rewrite_arguments(int argc, char** argv) {
  std::vector<std::string> result;
  bool verbatim = false;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--") verbatim = true;
    if (!verbatim && argument.size() > 2 && argument[0] == '-' && argument[1] != '-') {
      const std::string_view name = std::string_view(argument).substr(1, argument.find('=') - 1);
      if (is_one_dash(name)) argument.insert(0, "-");
    }
    result.push_back(std::move(argument));
  }
  return result;
}

void take_last_of_repeated(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({}))
    for (CLI::Option* option : command->get_options())
      if (option->get_items_expected_max() == 1)
        option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

std::string name_as_written(const CLI::Option& option) {
  for (const std::string& name : option.get_lnames())
    if (is_one_dash(name)) return "-" + name;
  return option.get_snames().empty() ? "--" + option.get_lnames()[0] : "-" + option.get_snames()[0];
}

std::string command_line(const CLI::App& command) {
  std::string line = "spillway " + command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    line += " " + name_as_written(*option);
    if (option->get_items_expected_max() == 0) continue;
    for (const std::string& value : option->reduced_results()) line += " " + quoted(value);
  }
  return line;
}

NumberWithin::NumberWithin(double low, double high)
    : CLI::Validator(
          [low, high](std::string& text) {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) return std::string();
            return fmt::format("{} is no number from {} to {}", text, low, high);
          },
          fmt::format("FLOAT in [{} - {}]", low, high)) {}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  std::string names = CLI::Formatter::make_option_name(option, is_positional);
  for (const std::string_view name : kOneDashNames) {
    const std::string two_dashes = "--" + std::string(name);
    for (size_t at = names.find(two_dashes); at != std::string::npos; at = names.find(two_dashes, at + 1)) {
      const size_t end = at + two_dashes.size();
      if (end == names.size() || names[end] == ',') names.erase(at, 1);
    }
  }
  return names;
}

}  // namespace spillway::cli
