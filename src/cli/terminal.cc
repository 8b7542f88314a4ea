#include "cli/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>

#include "cli/common.h"

namespace spillway::cli {
namespace {

volatile std::sig_atomic_t interrupt_flag = 0, terminate_flag = 0, prompting_flag = 0;

// `timeout -s INT` and some shells send one stop twice, to the process and to its group.
constexpr int64_t kSameStopMs = 200;
volatile std::sig_atomic_t interrupted_s = 0, interrupted_ms = 0;

// A stop that comes just before a prompt's read() can't interrupt it: SIGALRM follows each second until one
// does.
void knock(int) {
  if (prompting_flag) alarm(1);
}

void on_interrupt(int) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t since_ms = (now.tv_sec - interrupted_s) * 1000 + now.tv_nsec / 1'000'000 - interrupted_ms;
  if (interrupt_flag && !prompting_flag && since_ms > kSameStopMs) _exit(130);
  knock(0);
  if (interrupt_flag) return;
  interrupt_flag = 1;
  interrupted_s = static_cast<std::sig_atomic_t>(now.tv_sec);
  interrupted_ms = static_cast<std::sig_atomic_t>(now.tv_nsec / 1'000'000);
}

void on_terminate(int) {
  terminate_flag = 1;
  knock(0);
}

// Reading a mapped page that the file no longer has, or that its disk can't give, is a signal and no error:
// there is nowhere to go on from, but it can be said.
void on_bus_error(int) {
  constexpr char kWords[] =
      "spillway: a part of a mapped file can't be read any more: the model's file was cut short or replaced "
      "while "
      "it was in use, or its disk failed; start again, with '-lm none' to read it into memory first\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWords, sizeof(kWords) - 1);
  _exit(kExitError);
}

}  // namespace

bool stdin_is_terminal() { return isatty(STDIN_FILENO); }
bool stdout_is_terminal() { return isatty(STDOUT_FILENO); }
bool stderr_is_terminal() { return isatty(STDERR_FILENO); }

void prepare_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is then an error of the write
  std::signal(SIGBUS, on_bus_error);
  // Opened for reading, so that writing to a closed output still fails. open() gives the lowest free number.
  for (int stream = 0; stream <= 2; ++stream)
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != stream) _exit(kExitError);
}

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: a blocking read returns
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = knock;
  sigaction(SIGALRM, &action, nullptr);
  action.sa_handler = on_terminate;
  action.sa_flags = SA_RESETHAND;  // a second one ends it at once
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return interrupt_flag != 0 || terminate_flag != 0; }
bool terminated() { return terminate_flag != 0; }
void set_prompting(bool prompting) {
  interrupt_flag = 0;
  prompting_flag = prompting ? 1 : 0;
  alarm(0);
  if (terminate_flag) knock(0);
}

std::string dim(const std::string& text) {
  const char* no_color = std::getenv("NO_COLOR");
  if (!stderr_is_terminal() || (no_color && *no_color)) return text;
  return "\x1b[2m" + text + "\x1b[0m";
}

}  // namespace spillway::cli
