#include "cli/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "cli/common.h"

namespace spillway::cli {
namespace {

volatile std::sig_atomic_t interrupt_flag = 0;

void on_interrupt(int) {
  if (interrupt_flag) _exit(130);
  interrupt_flag = 1;
}

}  // namespace

bool stdin_is_terminal() { return isatty(STDIN_FILENO); }
bool stdout_is_terminal() { return isatty(STDOUT_FILENO); }
bool stderr_is_terminal() { return isatty(STDERR_FILENO); }

void prepare_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  // Opened for reading, so that writing to a closed output still fails. open() gives the lowest free number.
  for (int stream = 0; stream <= 2; ++stream)
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != stream) _exit(kExitError);
}

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: a blocking read returns
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return interrupt_flag != 0; }
void clear_interrupted() { interrupt_flag = 0; }

std::string dim(const std::string& text) {
  const char* no_color = std::getenv("NO_COLOR");
  if (!stderr_is_terminal() || (no_color && *no_color)) return text;
  return "\x1b[2m" + text + "\x1b[0m";
}

}  // namespace spillway::cli
