// What every command shares: exit codes, messages to the person, and small formatting.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace spillway::cli {

// 0 = done, 1 = the input, file or machine does not allow it (a message says why), 2 = wrong usage.
inline constexpr int kExitOk = 0;
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitModelFailed = 3;    // tune: only what was measured can be trusted
inline constexpr int kExitInterrupted = 130;  // as a shell reports SIGINT
inline constexpr int kExitTerminated = 143;   // and SIGTERM

// One command: adds its subcommand, with options and help; what it runs sets `exit_code`.
void add_run(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);
void add_detokenize(CLI::App& app, int& exit_code);
void add_logits(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_devices(CLI::App& app, int& exit_code);
void add_probe(CLI::App& app, int& exit_code);
void add_verify(CLI::App& app, int& exit_code);
void add_tune(CLI::App& app, int& exit_code);
void add_profiles(CLI::App& app, int& exit_code);
void add_trace(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_report(CLI::App& app, int& exit_code);

// Prints "spillway: <message>" to standard error. The exit code: kExitInterrupted of kCancelled, else
// kExitError.
int report(const Error& error);
void note(const std::string& message);  // for the person; standard error
void say(const std::string& line);      // to standard error as it is

// The text with its control characters (but line ends and tabs) escaped: texts from files and users may hold
// some, and a terminal would obey them.
std::string printable(std::string_view text);

// "1.5 GiB", "144 B"
std::string format_bytes(uint64_t bytes);

// Standard output can still be written to; false when it can't (a closed pipe, a full disk).
bool flush_stdout();

// The exit code of a command that did its work: an error and its message where standard output did not take
// all of it.
int finish_output();

}  // namespace spillway::cli
