#!/usr/bin/env python3
"""`spillway bench`, from outside: workloads, lists of settings, comparisons and repetitions."""
import csv, io, json, os, pathlib, signal, subprocess, time, unittest

from cli_case import SECONDS, SPILLWAY, Case, make

MODEL = "--layers 2 --experts 8 --used 2 --type Q8_0 --expert-type Q8_0"
PLANNED = ["--device", "host", "--host-device-mib", "64", "-cmoe", "-t", "1"]
TINY = ["-p", "8", "-n", "4", "-r", "2"]


def line(*texts, **more):
    return json.dumps({"messages": [{"role": "user", "content": text} for text in texts]} | more)


class Bench(Case):
    def bench(self, *arguments, **more):
        return self.works("bench", "-m", make(MODEL), *arguments, **more)

    def result(self, *arguments):
        """The result file of a run."""
        path = self.new_path(".json")
        self.bench(*arguments, "--out", path)
        return path, json.loads(pathlib.Path(path).read_text())

    def workload(self, *lines):
        path = self.new_path(".jsonl")
        pathlib.Path(path).write_text("\n".join(lines) + "\n")
        return path

    def test_plain_tokens(self):
        path, got = self.result(*TINY, "--device", "none", "-t", "1")
        self.assertEqual((got["schema"], got["kind"]), (1, "bench"))
        self.assertEqual([run["warm"] for run in got["runs"]], [False, True, True])
        for run in got["runs"]:
            prompt, tokens = run["requests"]
            self.assertEqual((prompt["prompt_tokens"], tokens["generated_tokens"], len(tokens["itl_ms"])), (8, 4, 4))
            self.assertGreater(run["cpu_s"], 0)
            self.assertGreater(run["host_peak_bytes"], 1 << 20)
        self.assertEqual(len({run["seed"] for run in got["runs"]}), 3)
        row, = got["rows"]
        self.assertEqual(row["label"], "measured")
        self.assertGreater(row["decode_tok_s"], 0)
        self.assertTrue(row["decode_low"] <= row["decode_tok_s"] <= row["decode_high"], row)
        flags = got["settings"][0]["flags"]
        for name, value in {"-t": "1", "-p": "8", "-n": "4", "--device": "none", "-lm": "none"}.items():
            self.assertEqual(flags[name], value, name)
        self.assertEqual(len(got["model"]["content"]), 32)
        self.assertIn("build ", got["build"]["version"])
        self.assertIn("spillway bench", got["command"])

    def test_lists_are_run_in_turn(self):
        _, got = self.result(*TINY, *PLANNED, "--moe-cache-mib", "0,25%,100%", "--moe-cache-cpu-share", "0")
        self.assertEqual([s["name"] for s in got["settings"]], ["--moe-cache-mib 0", "--moe-cache-mib 25%", "--moe-cache-mib 100%"])
        order = [(run["setting"], run["warm"]) for run in got["runs"]]
        self.assertEqual(order, [(0, False), (0, True), (1, False), (1, True), (2, False), (2, True),
                                 (2, True), (1, False), (1, True), (0, False), (0, True)])
        cache = [row["cache_bytes"] for row in got["rows"]]
        self.assertTrue(cache[0] == 0 < cache[1] < cache[2], cache)
        warm = [next(r["experts"] for r in got["runs"] if r["setting"] == s and r["warm"]) for s in range(3)]
        self.assertEqual(warm[0]["hits"], 0)
        self.assertLess(warm[2]["misses"], warm[0]["misses"] / 4)  # tokens of another place in the text
        self.assertGreater(warm[0]["bytes_up"], 0)
        self.assertEqual([row["verdict"] for row in got["rows"][1:]], ["not resolved"] * 2)  # two pairs
        self.assertIn("2 pairs of runs can't tell", got["conclusion"])
        self.assertNotIn("median of the ratios", got["conclusion"])
        shared = [note for note in got["notes"] if "share a loaded model" in note]
        self.assertEqual(len(shared), 1)
        self.assertIn("room for the largest expert cache", shared[0])
        self.assertEqual(len({run["device_peak_bytes"] for run in got["runs"]}), 1)

    def test_every_combination(self):
        _, got = self.result("-p", "4,8", "-n", "0", "-r", "1", "-t", "1,2", "--device", "none")
        self.assertEqual([s["name"] for s in got["settings"]],
                         ["-p 4 -t 1", "-p 4 -t 2", "-p 8 -t 1", "-p 8 -t 2"])
        self.assertEqual([s["flags"]["-t"] for s in got["settings"]], ["1", "2", "1", "2"])
        self.fails("at most 64", "bench", "-m", make(MODEL), "-t", ",".join("1" * 65))

    def test_other_work_is_not_compared(self):
        _, got = self.result("-p", "0", "-n", "4,8", "-r", "1", "-t", "1,2", "--device", "none")
        self.assertEqual([bool(row.get("verdict")) for row in got["rows"]], [False, True, False, False])
        note, = [note for note in got["notes"] if "same work" in note]
        self.assertTrue(note.endswith("'-n 8 -t 1', '-n 8 -t 2'."), note)

    def test_every_settings_notes_are_said_once(self):
        share = "The CPU share is fixed at 1, so nothing is promoted"
        path, got = self.result(*TINY, *PLANNED, "--moe-cache-mib", "50%", "--moe-cache-cpu-share", "auto,1")
        about = [note for note in got["notes"] if share in note]
        self.assertEqual(len(about), 1, got["notes"])
        self.assertTrue(about[0].startswith("--moe-cache-cpu-share 1: "), about)
        self.assertTrue(any(note.startswith("--moe-cache-cpu-share auto: In force: ") for note in got["notes"]), got["notes"])
        one, _ = self.result(*TINY, *PLANNED, "--moe-cache-mib", "50%", "--moe-cache-cpu-share", "1")
        out = self.new_path(".json")
        self.works("bench", "--compare", one, one, "-r", "1", "--out", out)
        about = [note for note in json.loads(pathlib.Path(out).read_text())["notes"] if share in note]
        self.assertEqual(len(about), 1)
        self.assertTrue(about[0].startswith("All settings: "), about)

    def test_workloads(self):
        file = self.workload(line("hello there", "and then?", max_tokens=5), line("another one", max_tokens=3, topic="b"))
        _, got = self.result("--workload", file, "--ignore-eos", "-r", "1", *PLANNED, "--moe-cache-mib", "50%")
        self.assertEqual(got["workload"]["name"], os.path.basename(file))
        self.assertEqual((got["workload"]["requests"], got["workload"]["users"]), (3, 1))
        for run in got["runs"]:
            self.assertEqual([(r["topic"], r["turn"], r["generated_tokens"]) for r in run["requests"]],
                             [("line 1", 0, 5), ("line 1", 1, 5), ("b", 0, 3)])
            self.assertGreater(run["requests"][1]["cached_tokens"], 0)
            self.assertEqual(sum(p["hits"] for p in run["hit_points"]), run["experts"]["hits"])
        _, two = self.result("--workload", file, "--users", "2", "-r", "1", "-n", "2", "--ignore-eos", "--device", "none")
        self.assertEqual({r["user"] for r in two["runs"][0]["requests"]}, {0, 1})
        self.assertEqual({r["generated_tokens"] for r in two["runs"][0]["requests"]}, {2})
        text = self.bench("--workload", "chat", "-n", "2", "-r", "1", "--device", "none").out
        for words in ("workload 'chat': 18 requests of 1 user", "TTFT s", "ITL p50 ms", "warm", "cold", "all figures are measured"):
            self.assertIn(words, text)

    def test_forms_of_output(self):
        flags = [*TINY, "--device", "none", "-t", "1,2"]
        rows = list(csv.DictReader(io.StringIO(self.bench(*flags, "-o", "csv").out)))
        self.assertEqual([(r["setting"], r["state"]) for r in rows],
                         [("-t 1", "warm"), ("-t 1", "cold"), ("-t 2", "warm")])  # the CPU alone has nothing to warm twice
        self.assertGreater(float(rows[0]["decode_tok_s"]), 0)
        text = self.bench(*flags).out
        self.assertIn("against the first", text)
        self.assertIn("95 % of decode: where", text)
        markdown = self.bench(*flags, "-o", "md").out
        self.assertIn("| setting |", markdown)
        self.assertIn("|---", markdown)
        self.assertEqual(json.loads(self.bench(*flags, "-o", "json").out)["kind"], "bench")

    def test_quiet(self):
        one = [*TINY, "--device", "none", "-t", "1"]
        loud, quiet = self.bench(*one), self.bench(*one, "-q")
        described = loud.out.splitlines()[0]
        self.assertIn("1 thread", described)
        self.assertNotIn(described, quiet.out)
        self.assertIn("all figures are measured", quiet.out)
        chat = self.bench("--workload", "chat", "-n", "2", "-r", "1", "--device", "none", "-t", "1", "-q").out
        self.assertNotIn(described, chat)
        # The tiny model lies in the caches, where it is read faster than memory, or it is read slower.
        self.assertRegex(quiet.out, r"decoding reads .* GB/s of weights (= \d+ % of|\(measured\)\. Reading memory alone with 1 thread )")

    def test_compare_and_repeat(self):
        one, _ = self.result(*TINY, *PLANNED, "--moe-cache-mib", "0")
        two, _ = self.result(*TINY, *PLANNED, "--moe-cache-mib", "100%")
        out = self.new_path(".json")
        shown = self.works("bench", "--compare", one, two, "-r", "3", "--out", out).out
        got = json.loads(pathlib.Path(out).read_text())
        self.assertEqual(len(got["settings"]), 2)
        self.assertIn(os.path.basename(one), got["settings"][0]["name"])
        self.assertEqual(sum(run["warm"] for run in got["runs"]), 6)
        self.assertIn(got["rows"][1]["verdict"], ("faster", "slower", "no difference seen", "not resolved"))
        self.assertRegex(got["conclusion"], r"Decode of .* times \(95 %: .* to .*; 3 pairs\)")
        self.assertEqual(got["conclusion"].count("median of the ratios of neighbouring runs"), 1)
        self.assertIn(got["rows"][1]["verdict"], shown)
        again = self.works("bench", "--repeat", out).out
        self.assertIn("Against " + out, again)
        self.assertIn(f"decode was {got['rows'][0]['decode_tok_s']:.1f} tok/s", again)  # as the table said
        self.assertIn("decode was", again)
        for words in ("the model was", "the workload was", "the CPU was", "the program was"):
            self.assertNotIn(words, again)
        again = self.works("bench", "--repeat", out, "-o", "csv")
        self.assertIn(f"against {out}: ", again.err)
        self.assertIn("decode was", again.err)
        self.assertTrue(again.out.startswith("setting,state,"), again.out)
        changed = json.loads(pathlib.Path(one).read_text())
        changed["model"]["content"] = "00"
        changed["machine"]["cpu"] = "Another"
        changed["build"]["version"] = "0.0"
        pathlib.Path(one).write_text(json.dumps(changed))
        again = self.works("bench", "--repeat", one).out
        for words in ("the model was", "the CPU was 'Another'", "the program was '0.0'"):
            self.assertIn(words, again)

    def test_what_can_not_be_run_is_refused(self):
        path = make(MODEL)
        good, _ = self.result(*TINY, "--device", "none")
        other, _ = self.result("-p", "4", "-n", "4", "-r", "1", "--device", "none")
        file = self.workload(line("x"), "{", line("y"))
        for words, arguments in ((["line 2", "no JSON"], ["--workload", file]), (["chat, code"], ["--workload", "chatter"]),
                                 (["at most 6"], ["--workload", "chat", "--users", "7"]), (["--workload"], ["--users", "2"]),
                                 (["-p"], ["--workload", "chat", "-p", "5"]), (["-o json"], ["--json", "-t", "1,2"]),
                                 (["--stats-json"], ["--stats-json", "x", "-t", "1,2"]), (["two results"], ["--compare", good]),
                                 (["-n"], ["--repeat", good, "-n", "5"]), (["same work"], ["--compare", good, other]),
                                 (["/nowhere"], ["--repeat", "/nowhere"]), (["not a result"], ["--repeat", file])):
            self.fails(words, "bench", "-m", path, *arguments)
        for arguments in (["-t", "1,,2"], ["-t", "1,many"], ["-ub", "0"], ["-o", "xml"], ["-p", "-4"], ["--compare", good, "--repeat", good]):
            self.assertEqual(self.call("bench", "-m", path, *arguments).returncode, 2, arguments)
        self.assertEqual(self.call("bench", *TINY).returncode, 2)

    def test_control_c_keeps_what_was_measured(self):
        out = self.new_path(".json")
        run = subprocess.Popen([SPILLWAY, "bench", "-m", make(MODEL), "-p", "0", "-n", "500", "-r", "1000", "--device", "none",
                                "--out", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(3)
        run.send_signal(signal.SIGINT)
        shown, errors = run.communicate(timeout=SECONDS)
        self.assertEqual(run.returncode, 130, errors)
        got = json.loads(pathlib.Path(out).read_text())
        self.assertEqual(got["runs"][-1]["cut_short"], "interrupted")
        self.assertIn(b"cut short", shown)
        note, = [note for note in got["notes"] if note.startswith("Interrupted: of the 1,000 warm runs")]
        self.assertRegex(note, r" \d+ of '--device none' came to their end\.$")

    def test_control_c_before_the_second_setting(self):
        out = self.new_path(".json")
        run = subprocess.Popen([SPILLWAY, "bench", "-m", make(MODEL), "-p", "0", "-n", "1000000", "-r", "2", "--device", "none",
                                "-c", "1000000", "-t", "1,2", "--out", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(3)
        run.send_signal(signal.SIGINT)
        shown, errors = run.communicate(timeout=SECONDS)
        self.assertEqual(run.returncode, 130, errors)
        got = json.loads(pathlib.Path(out).read_text())
        self.assertEqual([row["setting"] for row in got["rows"]], ["-t 1"])
        words = "Interrupted: of the 2 warm runs of each setting that were asked for, 0 of '-t 1' came to their end. " \
                "Not run, and in no table: '-t 2'."
        self.assertIn(words, got["notes"])
        self.assertIn(words.encode(), shown)
        page = self.works("report", out, "--md").out
        self.assertIn("in no table: '-t 2'", page)
        self.assertNotIn("| -t 2 | measured |", page)


if __name__ == "__main__":
    unittest.main()
