#!/usr/bin/env python3
"""The commands of the program, from outside: what they print, where, and how they end."""
import json, os, pathlib, resource, shutil, signal, stat, subprocess, time, unittest

import gguf_file as g
from cli_case import MAKE_MODEL, SECONDS, SPILLWAY, Case, make, model

GREEDY = ["--no-chat", "--temp", "0"]


class Usage(Case):
    def test_wrong_usage_is_exit_code_2(self):
        path = make()
        for arguments in ([], ["fly"], ["run", "--fly"], ["inspect"], ["logits", "-m", path], ["run", "-m", path, "-p", "x", "-t", "-1"],
                          ["run", "-m", path, "-p", "x", "-t", "many"], ["run", "-m", path, "-p", "x", "-c", "-5"],
                          ["run", "-m", path, "-p", "x", "-n", "-2"], ["run", "-m", path, "-p", "x", "-lm", "carrier-pigeon"],
                          ["run", "-m", path, "-p", "x", "-ctk", "q4_0"], ["run", "-m", path, "-p", "x", "-f", "y"],
                          ["run", "-m", path, "-p", "x", "--isa", "mmx"], ["run", "-m", path, "-p", "x", "-ub", "0"],
                          ["bench", "-m", path, "-r", "0"], ["run", "-m", path, "-p", "x", "-s", "-2"]):
            done = self.call(*arguments)
            self.assertEqual(done.returncode, 2, f"{arguments}: {done.err}")
            self.assertEqual(done.out, "")
            self.assertTrue(done.err)
        self.assertIn("'fly' is no command; there are run, inspect", self.call("fly").err)
        self.assertEqual(self.call("run", "-m", path, "-p", "x", "-s", "9" * 20).returncode, 2)

    def test_help_and_version(self):
        self.assertIn("run", self.works("--help").out)
        version = self.works("--version").out
        self.assertIn("spillway", version)
        self.assertIn("kernels", version)
        for command in ("run", "inspect", "tokenize", "detokenize", "logits", "bench"):
            self.assertIn("-m", self.works(command, "--help").out)
        self.assertIn("-lm", self.works("run", "--help").out)

    def test_the_last_of_a_repeated_flag_counts(self):
        shown = self.works("inspect", "-m", make(), "--json", "-t", "1", "-t", "3", "-c", "64", "-c", "96").out
        self.assertEqual([json.loads(shown)["plan"][k] for k in ("threads", "context")], [3, 96])

    def test_wrong_values_are_exit_code_1(self):
        path = make()
        for words, arguments in ((["--logit-bias"], ["--logit-bias", "abc"]),
                                 (["999999"], ["--logit-bias", "999999+1"]), (["--logit-bias"], ["--logit-bias", "1+nan"]),
                                 (["temp"], ["--temp", "-1"]), (["top"], ["--top-p", "1.5"]), (["nan"], ["--temp", "nan"]),
                                 (["wibble"], ["--chat-template-file", "/nowhere/wibble"]), (["JSON"], ["--chat-template-kwargs", "[1]"]),
                                 (["TOKEN_ID"], ["--logit-bias", "4294967301+100"])):
            self.fails(words, "run", "-m", path, "-p", "x", "-n", "1", *arguments)

    def test_flags_of_llama_cpp_without_effect_are_said(self):
        done = self.works("run", "-m", make(), *GREEDY, "-p", "x", "-n", "1", "-ngl", "99", "-cmoe", "-ncmoe", "3", "-b", "64")
        for flag in ("-ngl", "-cmoe", "-ncmoe", "-b"):
            self.assertIn(flag + " has no effect", done.err)


class Run(Case):
    def test_prompts_from_everywhere(self):
        path, prompt = make(), "in the end"
        file = self.new_path(".txt")
        pathlib.Path(file).write_text(prompt)
        rest = ["run", "-m", path, *GREEDY, "-n", "5"]
        plain = self.works(*rest, "-p", prompt).out
        self.assertEqual(plain, self.works(*rest, "-f", file).out)
        self.assertEqual(plain, self.works(*rest, input=prompt).out)
        self.assertEqual(plain, self.works(*rest, "-f", "-", input=prompt).out)
        self.fails("/nowhere", *rest, "-f", "/nowhere/prompt.txt")
        self.fails("", *rest, "-f", os.path.dirname(file))

    def test_an_empty_prompt_is_refused(self):
        self.fails("empty", "run", "-m", make(), *GREEDY, "-p", "")
        self.fails("empty", "run", "-m", make(), *GREEDY, input="")
        self.fails("empty", "run", "-m", make(), "-p", "", input="not this")

    def test_any_bytes_are_a_prompt(self):
        for text in (b"\xff\xfe\x00\x80", b"\0", "é漢字🦙".encode(), b"\r\n\t", b"<|im_end|><|im_start|>"):
            self.works("run", "-m", make(), *GREEDY, "-n", "3", input=text)
            done = self.call("run", "-m", make(), "--temp", "0", "-n", "3", input=text)  # a template needs text
            self.assertEqual(done.returncode, 1 if b"\xff" in text else 0, done.err)
            if done.returncode:
                self.assertIn("the prompt is no valid UTF-8", done.err)
        self.assertIn("the system message is no", self.fails("byte 1 is 0xFF", "run", "-m", make(), "-sys", b"a\xff".decode(errors="surrogateescape"), "-p", "q").err)

    def test_a_prompt_longer_than_the_context(self):
        self.fails(["5000", "512"], "run", "-m", make(), *GREEDY, "-p", "q" * 5000)
        self.fails(["5000", "64", "-c"], "run", "-m", make(), *GREEDY, "-c", "64", "-p", "q" * 5000)
        self.fails(["1000000"], "run", "-m", make(), *GREEDY, input="\n" * 1000000)

    def test_a_full_context(self):
        done = self.fails(["full", "64", "-c"], "run", "-m", make(), *GREEDY, "-c", "64", "-p", "q" * 60, "--ignore-eos")
        self.assertIn("64 of 64", done.err)
        self.assertTrue(done.out)
        # The same figure for a prompt that fills it to the last position.
        self.fails("64 of 64", "run", "-m", make(), *GREEDY, "-c", "64", "-p", "q" * 64, "--ignore-eos")
        self.fails(["65", "64"], "run", "-m", make(), *GREEDY, "-c", "64", "-p", "q" * 65)

    def test_lengths(self):
        def answer(*flags):
            return json.loads(self.works("run", "-m", make(), *GREEDY, "-p", "q", "--json", *flags).out)

        for n in (1, 2, 17):
            got = answer("-n", n, "--ignore-eos")
            self.assertEqual((got["measured"]["generated_tokens"], got["finish_reason"]), (n, "length"))
        self.assertEqual(answer("-n", 0)["measured"]["generated_tokens"], 0)
        self.assertEqual(answer("-n", 0)["text"], "")

    def test_seeds(self):
        def text(*flags):
            return self.works("run", "-m", make(), "--no-chat", "-p", "q", "-n", "24", "--temp", "1.5", "--ignore-eos", "--no-figures", *flags).stdout

        self.assertEqual(text("-s", "7"), text("-s", "7"))
        self.assertEqual(text("-s", "7"), text("-s", "7", "-t", "3", "-ub", "1", "--isa", "scalar", "-lm", "mmap"))
        self.assertNotEqual(text("-s", "7"), text("-s", "8"))
        self.assertNotEqual(text(), text())

    def test_sampling_has_effect(self):
        def text(*flags):
            return self.works("run", "-m", make(), *GREEDY, "-p", "BANANABANANABANANA", "-n", "12", "--ignore-eos", "--no-figures", *flags).stdout

        again = text("--logit-bias", "65+30")
        self.assertEqual(again[:12], b"A" * 12)
        self.assertNotEqual(again, text("--logit-bias", "65+30", "--presence-penalty", "50"))
        self.assertNotEqual(again, text("--logit-bias", "65+30", "--frequency-penalty", "50"))
        self.assertNotEqual(again, text("--logit-bias", "65+30", "--repeat-penalty", "1000"))
        self.assertNotIn(b"A", text("--logit-bias", "65-inf"))
        self.assertEqual(text(), text("--top-k", "1"))

    def biased(self, *flags):
        """An answer in which the model always wants the token <|im_end|>."""
        return json.loads(self.works("run", "-m", make(), *GREEDY, "-p", "q", "--json", "-n", "6", "--logit-bias", "264+1000", *flags).out)

    def test_end_of_generation(self):
        got = self.biased()
        self.assertEqual((got["finish_reason"], got["text"]), ("stop", ""))
        got = self.biased("--ignore-eos")
        self.assertEqual((got["finish_reason"], got["measured"]["generated_tokens"]), ("length", 6))

    def test_several_end_tokens(self):
        m = model()
        m.set("tokenizer.ggml.eos_token_ids", g.ARR, (g.I32, [65, 66]))
        m.set("tokenizer.ggml.eot_token_id", g.U32, 67)
        path = self.written(m)
        for token in (65, 66, 67, 264):
            got = json.loads(self.works("run", "-m", path, *GREEDY, "-p", "q", "--json", "-n", "6", "--logit-bias", f"{token}+1000").out)
            self.assertEqual((got["finish_reason"], got["text"]), ("stop", ""), token)

    def test_stop_strings(self):
        def answer(*stops):
            flags = [f for s in stops for f in ("--stop", s)]
            return json.loads(self.works("run", "-m", make(), *GREEDY, "-p", "q", "--json", "-n", "8", "--logit-bias", "88+1000", *flags).out)

        self.assertEqual(answer()["text"], "X" * 8)
        got = answer("nothing", "XXX")  # over three tokens
        self.assertEqual((got["finish_reason"], got["text"]), ("stop_string", ""))
        self.assertEqual(answer("XXY")["text"], "X" * 8)  # what could have been a stop string is not lost
        done = self.works("run", "-m", make(), *GREEDY, "-p", "q", "-n", "8", "--logit-bias", "88+1000", "--stop", "XXXX")
        self.assertEqual(done.out.strip(), "")
        self.fails("empty", "run", "-m", make(), *GREEDY, "-p", "q", "--stop", "")

    def test_chat_template(self):
        self.works("run", "-m", make(), "-p", "hi", "-n", "3", "--temp", "0")
        m = model()
        m.kv.pop("tokenizer.chat_template")
        path = self.written(m)
        self.fails(["tokenizer.chat_template", "--no-chat"], "run", "-m", path, "-p", "hi", "-n", "3")
        self.works("run", "-m", path, *GREEDY, "-p", "hi", "-n", "3")
        broken, refuses = self.new_path(".jinja"), self.new_path(".jinja")
        pathlib.Path(broken).write_text("{{- if .System }}")
        pathlib.Path(refuses).write_text("{{ raise_exception('only with tea') }}")
        self.fails(broken, "run", "-m", path, "-p", "hi", "--chat-template-file", broken)
        self.fails("only with tea", "run", "-m", path, "-p", "hi", "--chat-template-file", refuses)

    def test_interrupted_by_ctrl_c(self):
        with subprocess.Popen([SPILLWAY, "run", "-m", make("--context 100000"), *GREEDY, "-p", "q", "--ignore-eos", "-c", "100000"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.read(20)
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)
            process.send_signal(signal.SIGINT)  # as `timeout -s INT` does: to the process, and to its group
            out, err = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(b"measured", err)

    def test_a_stopped_wait_for_input(self):
        for stop, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with subprocess.Popen([SPILLWAY, "run", "-m", make(), "-q", "-n", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) as process:
                time.sleep(0.5)
                process.send_signal(stop)
                err = process.stderr.read()
                self.assertEqual(process.wait(SECONDS), code, err)
            self.assertIn(b"stopped while waiting for standard input", err)

    def test_figures_go_to_standard_error(self):
        done = self.works("run", "-m", make(), *GREEDY, "-p", "q", "-n", "4")
        self.assertIn("measured: prompt 1 tokens", done.err)
        self.assertNotIn("measured", done.out)
        for n, end in ((0, "tok/s; generated 0 tokens\n"), (1, "s; generated 1 tokens\n")):  # no rate of nothing
            self.assertTrue(self.works("run", "-m", make(), *GREEDY, "-p", "q", "-n", n).err.endswith(end))
        self.assertNotIn("measured", self.works("run", "-m", make(), *GREEDY, "-p", "q", "-n", "4", "--no-figures", "--quiet").err)


class Output(Case):
    def test_a_reader_that_leaves(self):
        for arguments in (["run", "-m", make(), *GREEDY, "-p", "q", "-n", "400", "--ignore-eos"], ["inspect", "-m", make(), "--tensors", "--metadata"],
                          ["tokenize", "-m", make(), "-p", "q" * 100000], ["inspect", "-m", make(), "--json"]):
            with subprocess.Popen([SPILLWAY, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                process.stdout.read(1)
                process.stdout.close()
                process.stdout = None
                process.communicate(timeout=SECONDS)
            self.assertIn(process.returncode, (0, 1, 130), arguments)  # never a signal

    def test_a_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        with open("/dev/full", "wb") as full:
            for arguments in (["run", "-m", make(), *GREEDY, "-p", "q", "-n", "4"], ["inspect", "-m", make()], ["tokenize", "-m", make(), "-p", "q"]):
                done = subprocess.run([SPILLWAY, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=SECONDS)
                self.assertEqual(done.returncode, 1, arguments)
                self.assertIn(b"standard output", done.stderr, arguments)
        self.fails("", "logits", "-m", make(), "--tokens", "1", "-o", "/dev/full/x")

    def test_what_is_no_file_is_written_to_and_not_replaced(self):
        pipe = self.new_path(".pipe")
        os.mkfifo(pipe)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
        self.works("logits", "-m", make(), "--tokens", "1,2", "-o", pipe)
        self.assertEqual(len(reader.communicate(timeout=SECONDS)[0]), 2 * 300 * 4)
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))
        if os.path.exists("/dev/full"):
            link = self.new_path(".full")  # of the test's own, so that a fault here leaves the device alone
            os.symlink("/dev/full", link)
            self.fails("cannot be written", "logits", "-m", make(), "--tokens", "1,2", "-o", link)
            self.assertTrue(os.path.islink(link))

    def test_no_standard_streams(self):
        done = subprocess.run(f"'{SPILLWAY}' inspect -m '{make()}' >&- 2>&-", shell=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 1)
        done = subprocess.run(f"'{SPILLWAY}' run -m '{make()}' --no-chat -n 1 <&-", shell=True, timeout=SECONDS, capture_output=True)
        self.assertEqual(done.returncode, 1)

    def test_no_output_replaces_the_model(self):
        path = self.new_path()
        shutil.copy(make(), path)
        before = pathlib.Path(path).read_bytes()
        run = ("run", "-m", path, "--no-chat", "-p", "hi", "-n", "1")
        self.fails("is read here", "logits", "-m", path, "--tokens", "1,2", "-o", path)
        for flag in ("--stats-json", "--timeline"):
            self.fails("is read here", *run, flag, path)
        bench = ("bench", "--device", "none", "-m", path, "-p", "4", "-n", "2", "-r", "1")
        self.fails("is read here", *bench, "--out", path)
        self.fails("is read here", *bench, "--stats-json", path)
        self.fails("is read here", "verify", "--device", "none", "-m", make(), "--against", path, "--out", path)
        self.fails("is read here", "plan", "-m", path, "--machine", "rtx4090-pcie4-ddr5", "--out", path)
        self.fails("is read here", "tune", "--device", "host", "-cmoe", "-m", path, "--out", path)
        self.fails("no regular file", *bench, "--out", "/dev/full")
        text = self.new_path(".jsonl")
        pathlib.Path(text).write_text('{"messages": [{"role": "user", "content": "hi"}]}')
        self.fails("is read here", *bench[:5], "-r", "1", "--workload", text, "--out", text)
        self.fails("is read or written already", *run[:4], "-n", "1", "-f", text, "--stats-json", text)
        self.assertTrue(pathlib.Path(text).read_text().startswith('{"messages"'))
        self.fails("name the same file", *run, "--stats-json", "x.json", "--timeline", "./x.json")
        self.fails("there is no folder '/nowhere'", *run, "--stats-json", "/nowhere/x.json")
        self.assertEqual(pathlib.Path(path).read_bytes(), before)

    def test_a_stopped_record_is_kept(self):
        out = self.new_path(".trace")
        for stop, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process = subprocess.Popen([SPILLWAY, "trace", "record", "-m", make("--context 100000"), "--device", "host", "-cmoe", "-n", "90000",
                                        "-f", "-", "-o", out], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            process.stdin.write(b"the weir " * 20000)
            process.stdin.close()
            process.stdin = None
            partial = pathlib.Path(out + ".partial")
            while not partial.exists() or partial.stat().st_size < 20000:
                self.assertIsNone(process.poll())
                time.sleep(0.05)
            process.send_signal(stop)
            shown = process.communicate(timeout=SECONDS)[0]
            self.assertEqual(process.returncode, code)
            self.assertIn(b"then it was stopped", shown)
            self.works("trace", "replay", out)

    def test_no_number_is_a_usage_error(self):
        for arguments in (["probe", "--seconds", "nan"], ["tune", "-m", make(), "--minutes", "nan"],
                          ["verify", "-m", make(), "--max-kl", "nan"]):
            self.fails("is no number from", *arguments, code=2)

    def test_a_model_cut_short_while_it_is_mapped(self):
        path = self.new_path()
        subprocess.run([MAKE_MODEL, *"--layers 6 --hidden 256 --experts 32 --context 100000".split(), "--out", path], check=True)
        process = subprocess.Popen([SPILLWAY, "run", "-m", path, "-lm", "mmap", "--no-chat", "-p", "hi", "--ignore-eos", "-n", "90000",
                                    "-c", "95000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(1)  # it has begun
        os.truncate(path, 0)
        err = process.communicate(timeout=SECONDS)[1].decode()
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("cut short or replaced", err)

    def test_an_empty_name_is_no_demo_model(self):
        self.fails("-m is empty", "run", "-m", "", "-p", "hi")

    def test_what_no_chat_leaves_out_is_said(self):
        done = self.works("run", "-m", make(), "--no-chat", "-p", "hi", "-n", "1", "-sys", "be brief")
        self.assertIn("has no effect with --no-chat", done.err)

    def test_a_longer_context_than_the_model_was_trained_for_is_said(self):
        done = self.works("run", "-m", make("--context 64"), "--no-chat", "-p", "hi", "-n", "1", "-c", "128")
        self.assertIn("more than the 64 positions", done.err)

    def test_logits_are_written_whole_or_not_at_all(self):
        out = self.new_path(".f32")
        self.works("logits", "-m", make(), "--tokens", "1,2,3", "-o", out)
        before = pathlib.Path(out).read_bytes()
        self.assertEqual(len(before), 3 * 300 * 4)
        self.fails(["300", "vocabulary"], "logits", "-m", make(), "--tokens", "1,300", "-o", out)
        self.fails("token", "logits", "-m", make(), "--tokens", "1,x", "-o", out)
        self.fails("empty", "logits", "-m", make(), "--tokens", "", "-o", out)
        self.fails("64", "logits", "-m", make(), "--tokens", "1," * 65, "-o", out, "-c", "64")
        self.assertEqual(pathlib.Path(out).read_bytes(), before)
        # A limit on the size of files, as a disk that fills up.
        limit = lambda: (resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)), signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
        self.fails(out, "logits", "-m", make(), "--tokens", "1,2,3,4", "-o", out, preexec_fn=limit)
        self.assertEqual(pathlib.Path(out).read_bytes(), before)
        self.assertEqual([name for name in os.listdir(os.path.dirname(out)) if "partial" in name], [])
        self.fails("/nowhere", "logits", "-m", make(), "--tokens", "1", "-o", "/nowhere/out.f32")
        self.fails("", "logits", "-m", make(), "--tokens", "1", "-o", os.path.dirname(out))

    def test_a_folder_that_cannot_be_written_to(self):
        folder = self.new_path("")
        os.mkdir(folder, 0o555)
        if os.access(folder, os.W_OK):
            self.skipTest("this user may write everywhere")
        self.fails(folder, "logits", "-m", make(), "--tokens", "1", "-o", folder + "/out.f32")

    def test_logits_do_not_depend_on_how(self):
        tokens = list(range(40))
        plain = self.logits(make(), tokens)
        for flags in (["-t", "3"], ["-lm", "mmap"], ["--isa", "scalar"], ["-ub", "7"], ["--piece", "1"], ["--piece", "9", "--neighbours", "5"], ["-c", "64"]):
            self.assertEqual(self.logits(make(), tokens, *flags), plain, flags)
        by_types = [str([list(row) for row in self.logits(make(), tokens, "-ctk", key, "-ctv", value)]) for key in ("f16", "f32") for value in ("f16", "f32")]
        self.assertEqual(by_types[0], str([list(row) for row in plain]))
        self.assertEqual(len(set(by_types)), 4)
        out, listed = self.new_path(".f32"), self.new_path(".txt")
        pathlib.Path(listed).write_text("[1, 2\n3]")
        got = json.loads(self.works("logits", "-m", make(), "--tokens-file", listed, "-o", out, "--json").out)
        self.assertEqual((got["rows"], got["columns"]), (3, 300))
        self.works("logits", "-m", make(), "-o", out, input="4 5 6")


class Inspect(Case):
    def test_sizes_have_a_fitting_unit(self):
        self.assertRegex(self.works("inspect", "-m", make()).out, r"\b0\.\d M parameters, 0\.\d M active")

    def test_every_family_and_type(self):
        for flags in ("", "--family qwen2moe", "--family llama", "--family llama --split-experts", "--family olmoe --kv-heads 4",
                      "--type Q4_K --expert-type Q6_K --hidden 256 --expert-width 256 --head-length 64", "--tied", "--layers 3 --dense-layers 1",
                      "--family llama --experts 0 --used 0"):
            path = make(flags)
            text = self.works("inspect", "-m", path).out
            self.assertIn("experts" if "--experts 0" not in flags else "dense", text)
            got = json.loads(self.works("inspect", "-m", path, "--json", "--tensors").out)
            self.assertEqual(got["file_bytes"], os.path.getsize(path))
            self.assertTrue(got["plan"]["fits"])
            total = sum(t["bytes"] for t in got["tensors"])
            self.assertEqual(got["sizes"]["total_bytes"], total, flags)
            self.assertEqual(got["unused_tensors"], [])
            self.works("inspect", "-m", path, "--metadata", "--tensors", "--check")

    def test_what_the_plan_says_is_what_is_asked(self):
        path = make("--type Q8_0")
        plan = lambda *flags: json.loads(self.works("inspect", "-m", path, "--json", *flags).out)["plan"]
        self.assertEqual(plan("-c", "256")["kv_bytes"], 256 * 2 * 2 * (16 + 16) * 2)
        self.assertEqual(plan("-c", "256", "-ctk", "f32", "-ctv", "f32")["kv_bytes"], 2 * plan("-c", "256")["kv_bytes"])
        self.assertEqual(plan("-lm", "mmap")["weights_own_bytes"], 0)
        self.assertEqual(plan("-lm", "mmap")["weights_mapped_bytes"], os.path.getsize(path))
        self.assertEqual(plan("-t", "3")["threads"], 3)
        self.assertGreater(plan("-t", "3", "-ub", "64")["scratch_bytes"], plan("-t", "3", "-ub", "8")["scratch_bytes"])

    def test_a_context_that_does_not_fit(self):
        path = make("--layers 8 --heads 8 --kv-heads 8 --head-length 256")
        shown = json.loads(self.works("inspect", "-m", path, "--json", "-c", str(2**24)).out)["plan"]
        self.assertFalse(shown["fits"])
        self.assertIn("MiB missing", shown["verdict"])
        self.fails(["does not fit", "MiB", "-c"], "run", "-m", path, *GREEDY, "-p", "q", "-c", str(2**24))

    def test_a_terminal_is_safe_from_the_file(self):
        m = model()
        m.set("general.name", g.STR, "evil\x1b]0;gotcha\x07\r\nname")
        m.set("some.text", g.STR, "\x1b[2J")
        done = self.works("inspect", "-m", self.written(m), "--metadata", "--tensors")
        self.assertNotIn("\x1b", done.out)
        self.assertNotIn("\x07", done.out)


class Tokens(Case):
    def test_round_trip(self):
        for text in ("hello the end", "  two  spaces ", "é漢字🦙\n\n\nx", "<|im_end|> stays text", "\t\r"):
            ids = self.works("tokenize", "-m", make(), input=text).out.strip()
            self.assertEqual(self.works("detokenize", "-m", make(), "--tokens", ids).out.removesuffix("\n"), text.removesuffix("\n"))
            self.assertNotIn("264", ids.split(","))
        self.assertEqual(self.works("tokenize", "-m", make(), "-p", "a<|im_end|>", "--parse-special").out.strip(), "97,264")
        got = json.loads(self.works("tokenize", "-m", make(), "-p", "the é", "--json").out)["tokens"]
        self.assertEqual(bytes(b for t in got for b in t["bytes"]).decode(), "the é")
        self.works("tokenize", "-m", make(), "-p", "the é", "--show")

    def test_odd_lists(self):
        self.fails("'x'", "detokenize", "-m", make(), "--tokens", "1,x")
        for bad in ("300", "-1", "99999999999999999999", "1.5"):
            self.fails(bad, "detokenize", "-m", make(), "--tokens=" + bad)
        self.assertEqual(self.works("tokenize", "-m", make(), "-p", "").out.strip(), "")
        self.works("detokenize", "-m", make(), "--tokens", "")
        self.works("detokenize", "-m", make(), "--tokens", "[1, 2 3\n4],")
        for bad in ("1,,2", ",1", "1,2,,", "1, ,2"):
            self.fails("empty place", "detokenize", "-m", make(), "--tokens", bad)

    def test_many_blank_lines(self):
        text = "one" + "\n" * 50000 + "two"
        ids = self.works("tokenize", "-m", make(), input=text).out
        self.assertEqual(self.works("detokenize", "-m", make(), input=ids).out.rstrip("\n"), text)


class Bench(Case):
    def test_a_tiny_model(self):
        got = json.loads(self.works("bench", "-m", make(), "-p", "20", "-n", "5", "-r", "2", "--json").out)
        self.assertEqual(got["label"], "measured")
        self.assertEqual((len(got["prefill"]["tok_s"]), len(got["decode"]["tok_s"])), (2, 2))
        self.assertGreater(got["decode"]["mean"], 0)
        self.assertIn("tok/s", self.works("bench", "-m", make(), "-p", "20", "-n", "0", "-r", "1").out)
        self.fails("nothing", "bench", "-m", make(), "-p", "0", "-n", "0")
        self.fails(["10", "20"], "bench", "-m", make(), "-p", "20", "-n", "2", "-c", "10")


if __name__ == "__main__":
    unittest.main()
