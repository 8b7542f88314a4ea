// What the command line asks of the terminal and of signals.
#pragma once

#include <atomic>
#include <string>

namespace spillway::cli {

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();

// Makes a reader that goes away (`| head`) an error of writing rather than a signal, and keeps the numbers of
// standard streams that the caller closed from being given to files that are opened later.
void prepare_standard_streams();

// From here on Ctrl-C and SIGTERM set a flag instead of ending the program; a second one, a fifth of a second
// later or more, ends it.
void catch_interrupts();
bool interrupted();  // the flag
bool terminated();   // it was SIGTERM, which is not only for what runs now
// Clears Ctrl-C's flag. While a prompt waits, no number of Ctrl-Cs ends the program.
void set_prompting(bool prompting);

// A terminal escape around text that matters less, where standard error is a terminal and NO_COLOR is unset.
std::string dim(const std::string& text);

}  // namespace spillway::cli
