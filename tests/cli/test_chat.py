#!/usr/bin/env python3
"""The chat on a terminal, through a pseudo-terminal."""
import os, pty, re, select, signal, time, unittest

from cli_case import SECONDS, SPILLWAY, Case, make


class Terminal:
    def __init__(self, *arguments):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "dumb"
            os.execv(SPILLWAY, [SPILLWAY, *map(str, arguments)])
        self.text, self.at = "", 0

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the program has ended
            return False
        self.text += data.decode(errors="replace")
        return bool(data)

    def until(self, pattern, seconds=SECONDS):
        """What came since the last call, up to the pattern."""
        end = time.monotonic() + seconds
        while not (found := re.compile(pattern).search(self.text, self.at)):
            if time.monotonic() > end or not self.read(1) and not self.alive():
                raise AssertionError(f"'{pattern}' did not come after: {self.text[self.at:][-800:]!r}")
        piece, self.at = self.text[self.at:found.end()], found.end()
        return piece

    def alive(self):
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def say(self, text):
        os.write(self.fd, text.encode())

    def press(self, key, pattern):
        """Until it is taken: libedit shows its prompt before it takes over the terminal, and what comes in between is lost."""
        for _ in range(SECONDS):
            self.say(key)
            try:
                return self.until(pattern, 1)
            except AssertionError:
                pass
        raise AssertionError(f"{key!r} was never taken: {self.text[self.at:][-800:]!r}")

    def end(self, seconds=SECONDS):
        """The exit code; a negative number is a signal."""
        stop = time.monotonic() + seconds
        while self.read(0.2) or (self.alive() and time.monotonic() < stop):
            pass
        if self.alive():
            os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Chat(Case):
    def open(self, *flags, context=4096):
        terminal = Terminal("run", "-m", make(f"--context {context}"), "--temp", "0", "-s", "1", *flags)
        self.greeting = terminal.until("> ")
        self.addCleanup(os.close, terminal.fd)
        return terminal

    def leaves_by_ctrl_d(self, t):
        t.until("> ")
        t.press("\x04", r"\^D\r\n")
        self.assertEqual(t.end(), 0)

    def test_a_conversation(self):
        t = self.open("-n", "8")
        self.assertIn("/help", self.greeting)
        t.say("/help\n")
        shown = t.until("Ctrl-C.*\n")
        for command in ("/reset", "/system", "/set", "/stats", "/quit"):
            self.assertIn(command, shown)
        t.say("hello\n")
        first = t.until("measured: prompt .*tok/s")
        self.assertIn("generated", first)
        t.say("again\n")
        self.assertRegex(t.until("measured: prompt .*tok/s"), r"\([1-9]\d* cached\)")
        t.say("/stats\n")
        self.assertRegex(t.until(r"context: \d+ of 4096"), "threads")
        t.say("/reset\n")
        t.until("anew")
        t.say("hello\n")  # as the first time, seed aside: temperature 0
        answer = lambda s: s.split("measured")[0].split("hello\r\n")[-1]  # behind the echo of what was typed
        self.assertEqual(answer(t.until("measured: prompt .*tok/s")), answer(first))
        t.say("/system be brief\n")
        t.until("System message set")
        t.say("/quit\n")
        self.assertEqual(t.end(), 0)

    def test_statistics_of_a_device(self):
        t = self.open("-n", "8", "--device", "host", "-cmoe", "--moe-cache-mib", "50%")
        self.assertIn("expert cache: ", self.greeting)
        t.say("/stats\n")  # before anything ran: what is in force
        shown = t.until(r"context: 0 of 4096")
        self.assertIn("device host", shown)
        self.assertIn("4 of 8 experts", shown)
        self.assertNotIn("warm", shown)
        t.say("hello\n")
        self.assertRegex(t.until("experts: .*waits of|measured: prompt .*tok/s"), "generated|experts")
        t.say("/stats\n")
        shown = t.until(r"context: \d+ of 4096")
        for words in ("device host", "expert cache: ", "cold", "warm", "% hits", "waits", "pinned"):
            self.assertIn(words, shown)
        t.say("/stats layers\n")
        shown = t.until(r"context: \d+ of 4096")
        self.assertRegex(shown, r"   0 +\d+ hits")
        self.assertRegex(shown, r"   1 +\d+ hits")
        t.say("/quit\n")
        self.assertEqual(t.end(), 0)

    def test_settings(self):
        t = self.open("-n", "4")
        t.say("/set temp 0.5\n")
        t.until("temp 0.5,")
        t.say("/set top-k 3\n")
        t.until("top-k 3,")
        t.say("/set temp -4\n")
        t.until("temp")
        t.say("/set temp warm\n")
        t.until("'warm' is not a value for temp")
        t.say("/set colour blue\n")
        t.until("There is no setting 'colour blue'")
        t.say("/set n 2\n")
        t.until("n 2")
        t.say("/set n -7\n")
        t.until("n is -7, must be")
        t.say("/set\n")
        self.assertIn("temp 0.5, top-k 3", t.until("n 2\r?\n"))
        t.say("/frobnicate\n")
        t.until("There is no command /frobnicate")
        t.say("\n\n")
        t.say("hi\n")
        t.until("generated 2 tokens|generated 1 tokens")
        self.leaves_by_ctrl_d(t)

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        t = self.open("--ignore-eos", "-c", "100000", context=100000)
        t.say("go on for ever\n")
        time.sleep(0.5)
        t.say("\x03")
        t.until("stopped")
        t.say("/set n 3\n")
        t.until("n 3")
        t.say("still there?\n")
        t.until("generated 3 tokens")
        t.until("> ")
        t.say("half a line")
        t.press("\x03", "/quit to leave")  # at the prompt: a fresh line
        t.say("/quit\n")
        self.assertEqual(t.end(), 0)

    def test_keys_that_come_before_the_prompt_is_ready(self):
        t = self.open("-n", "2")
        t.say("\x03\x03\x03half a line\x03")
        t.press("\x03", "/quit to leave")
        t.say("hello\n")
        t.until("measured")
        self.leaves_by_ctrl_d(t)

    def test_a_termination_ends_it_with_its_code(self):
        t = self.open("-n", "2")
        os.kill(t.pid, signal.SIGTERM)
        self.assertEqual(t.end(), 143)
        t = self.open("--ignore-eos", "-c", "100000", context=100000)
        t.say("go on for ever\n")
        t.until("for ever\r\n..")
        os.kill(t.pid, signal.SIGTERM)
        self.assertEqual(t.end(), 143)

    def test_a_full_context_is_said_and_reset_helps(self):
        t = self.open("--ignore-eos", "-c", "64", context=64)
        t.say("hello\n")
        self.assertIn("64 of 64", t.until("context is full.*\n"))
        t.say("hello\n")  # the conversation no longer fits
        t.until(r"prompt has \d+ tokens and the context is 64")
        t.say("/reset\n")
        t.until("anew")
        t.say("hello\n")
        t.until("context is full.*\n")
        t.say("/quit\n")
        self.assertEqual(t.end(), 0)

    def test_lines_that_go_on(self):
        t = self.open("-n", "2")
        t.say("first\\\n")
        t.until(r"\. ")
        t.say("second\n")
        t.until("measured")
        t.say("/quit\n")
        self.assertEqual(t.end(), 0)


if __name__ == "__main__":
    unittest.main()
