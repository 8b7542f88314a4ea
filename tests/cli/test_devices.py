#!/usr/bin/env python3
"""The commands with a device beside the CPU: the pretended one everywhere, and software Vulkan where there is one."""
import json, os, pathlib, re, sys, time, unittest

from cli_case import Case, make

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_timeline

LAYERS, EXPERTS, USED = 3, 16, 4
MODEL = f"--layers {LAYERS} --experts {EXPERTS} --used {USED} --type Q8_0"
HOST = ["--device", "host"]
PLANNED = [*HOST, "-cmoe"]
TOKENS = [(7 * i * i + 3 * i) % 300 for i in range(48)]
GREEDY = ["--no-chat", "--temp", "0", "--ignore-eos"]


class Shared(Case):
    def stats(self, *flags, n=24):
        """What --stats-json wrote for a prompt of 6 tokens and n - 1 decoded ones."""
        path = self.new_path(".json")
        done = self.works("run", "-m", make(MODEL), *GREEDY, "-p", "thus I", "-n", n, "--stats-json", path, *flags)
        self.said = done.err
        return json.loads(pathlib.Path(path).read_text())

    def plan(self, *flags):
        return json.loads(self.works("inspect", "-m", make(MODEL), "--json", *flags).out)["plan"]

    def expert_bytes(self):
        """Of a slot: the rows of a group are interleaved and padded, so a little more than in the file."""
        cache = self.plan(*PLANNED, "--moe-cache-mib", "100%")["device"]["cache"]
        self.assertEqual(cache["slots"], LAYERS * EXPERTS)
        return cache["bytes"] // cache["slots"]


class Devices(Case):
    def test_the_list(self):
        listed = json.loads(self.works("devices", "--json").out)
        host = listed[-1]
        self.assertEqual(host["id"], "host")
        self.assertGreater(host["available_bytes"], 0)
        text = self.works("devices").out
        for device in listed:
            self.assertTrue({"id", "name", "driver", "memory_bytes", "available_bytes", "max_allocation_bytes", "software",
                             "unified_memory", "copy_queue", "notes"} <= set(device))
            self.assertIn(device["id"], text)
        self.assertTrue(host["software"])

    def test_one_device_and_its_self_test(self):
        one = json.loads(self.works("devices", *HOST, "--self-test", "--json").out)
        self.assertEqual([(d["id"], d["self_test"]) for d in one], [("host", {"passed": True, "faults": []})])
        self.assertIn("as defined, bit for bit", self.works("devices", *HOST, "--self-test").out)
        self.fails("none", "devices", "--device", "none")

    def test_a_device_that_is_not_there(self):
        for name in ("vulkan:77", "quantum", "vulkan:x", "vulkan:"):
            self.fails([f"--device {name}", "host"], "devices", "--device", name)
            for command in (["run", "-p", "x", "-n", 1], ["inspect"], ["bench", "-p", 4, "-n", 1], ["verify", "--exact"]):
                self.fails([f"--device {name}", "host"], command[0], "-m", make(MODEL), *command[1:], "--device", name)


class SameText(Shared):
    SETTINGS = (["-cmoe", "--moe-cache-mib", "0"], ["-cmoe", "--moe-cache-mib", "25%"],
                ["-cmoe", "--moe-cache-mib", "25%", "--moe-cache-cpu-share", "0"],
                ["-cmoe", "--moe-cache-mib", "12s", "--moe-cache-cpu-share", "0.5", "--moe-promote", "on", "-ub", "5"],
                ["-cmoe", "--moe-cache-mib", "0.05", "--moe-cache-policy", "lru", "--no-host"],
                ["-cmoe", "--moe-cache-mib", "100%", "--moe-cache-policy", "static", "-lm", "mmap"],
                ["-cmoe", "--moe-cache-mib", "20%", "--moe-cache-policy", "b12191", "--moe-cache-cpu-share", "0.9", "-lm", "dio"],
                ["-ngl", "0"], ["-ngl", "1", "-cmoe"], ["-ngl", "2", "-ncmoe", "2", "-lm", "dio"], ["-ngl", "all", "-ncmoe", "0"],
                ["-ncmoe", "1", "--moe-cache-mib", "30%", "-t", "3"], [], ["--host-device-mib", "64"], ["-ctk", "f16", "--moe-explore", "off"])

    def test_logits(self):
        plain = self.logits(make(MODEL), TOKENS)
        for flags in self.SETTINGS:
            for piece in ("0", "1"):
                self.assertEqual(self.logits(make(MODEL), TOKENS, *HOST, *flags, *(["--piece", piece] if piece != "0" else [])), plain, flags)

    def test_text(self):
        plain = self.works("run", "-m", make(MODEL), *GREEDY, "-p", "thus", "-n", 20).out
        for flags in self.SETTINGS[:6]:
            self.assertEqual(self.works("run", "-m", make(MODEL), *GREEDY, "-p", "thus", "-n", 20, *HOST, *flags).out, plain, flags)

    def test_vulkan(self):
        if not any(d["id"].startswith("vulkan") for d in json.loads(self.works("devices", "--json").out)):
            self.skipTest("this machine has no Vulkan device")
        self.assertEqual(self.logits(make(MODEL), TOKENS, "--device", "vulkan", "-cmoe", "--moe-cache-mib", "25%", "-c", "64"),
                         self.logits(make(MODEL), TOKENS))

    def test_auto_takes_no_software_device(self):
        if all(d["software"] for d in json.loads(self.works("devices", "--json").out)):
            self.assertNotIn("device", self.plan())


class Statistics(Shared):
    def check_sums(self, s):
        e, b = s["experts"], s["bytes"]
        self.assertEqual(e["misses"], e["cpu"] + e["uploaded"] + e["streamed"] + e["joined"])
        self.assertEqual(b["uploaded"], (e["uploaded"] + e["streamed"]) * self.expert_bytes())
        self.assertEqual(b["promoted"], e["promoted"] * self.expert_bytes())
        self.assertEqual(e["failed"], 0)
        if e["hits"] + e["misses"]:
            self.assertAlmostEqual(e["hit_rate"], e["hits"] / (e["hits"] + e["misses"]))
        for name in e:
            if name != "hit_rate":
                self.assertEqual(e[name], s["cold"]["experts"][name] + s["warm"]["experts"][name], name)
                self.assertEqual(e[name], sum(layer["experts"][name] for layer in s["layers"]), name)
        for part in (s, s["cold"], s["warm"], *s["layers"]):
            self.assertTrue(part["experts"]["hits"] + part["experts"]["misses"] >= part["plans"])

    def test_counters_add_up_and_say_what_was_in_force(self):
        steps = 24  # the prompt, and the 24th token is not run
        for flags in (["--moe-cache-mib", "25%"], ["--moe-cache-mib", "25%", "--moe-cache-cpu-share", "0"],
                      ["--moe-cache-mib", "12s", "--moe-cache-cpu-share", "1"], ["--moe-cache-mib", "0"],
                      ["--moe-cache-mib", "100%", "--moe-cache-cpu-share", "0", "--moe-promote", "off"]):
            s = self.stats(*PLANNED, *flags)
            self.check_sums(s)
            e = s["experts"]
            self.assertEqual((s["plans"], s["waits"]["count"]), (steps * LAYERS, steps * LAYERS), flags)
            self.assertEqual([layer["layer"] for layer in s["layers"]], list(range(LAYERS)))
            if flags[1] == "0":
                self.assertEqual((e["hits"], e["uploaded"], e["promoted"]), (0, 0, 0))
            if flags[2:] == ["--moe-cache-cpu-share", "0"]:
                self.assertEqual(e["cpu"], 0)
                self.assertGreater(e["uploaded"], 0)
            if flags[2:] == ["--moe-cache-cpu-share", "1"]:
                self.assertEqual(s["warm"]["experts"]["misses"], s["warm"]["experts"]["cpu"])
                self.assertGreater(e["cpu"], 0)
            if flags[1] == "100%":
                self.assertEqual((e["cpu"], e["evicted"]), (0, 0))
                self.assertLessEqual(e["misses"], LAYERS * EXPERTS)
            self.assertEqual(s["placement"]["cache"]["slots"] > 0, flags[1] != "0")

    def test_resident_layers_do_not_wait(self):
        s = self.stats(*HOST, "-ngl", "all", "-ncmoe", "0")
        self.assertEqual((s["plans"], s["waits"]["count"], s["layers"]), (0, 0, []))
        self.assertEqual(s["resident_layer_passes"], 24 * LAYERS)

    def test_the_cpu_alone(self):
        s = self.stats("--device", "none")
        self.assertEqual((s["plans"], s["layers"]), (0, []))
        self.assertNotIn("placement", s)

    def test_every_documented_name_is_there(self):
        s = self.stats(*PLANNED, "--moe-cache-mib", "25%")
        page = (ROOT / "docs/expert-cache.md").read_text()
        table = page.split("| JSON | meaning |")[1].split("\n\n")[0]
        names = 0
        for row in table.splitlines()[2:]:
            group = ""
            for name in re.findall(r"`([a-z_.\[\]]+)`", row.split("|")[1]):
                name = name.removesuffix("[]")
                group = name.rsplit(".", 1)[0] if "." in name else group if name not in s else ""
                value = s
                for key in ([*group.split("."), name.rsplit(".", 1)[-1]] if group else [name]):
                    self.assertIn(key, value, name)
                    value = value[key]
                names += 1
        self.assertGreater(names, 20)

    def test_the_end_line_and_the_block_at_the_start(self):
        self.stats(*PLANNED, "--moe-cache-mib", "25%")
        for words in ("device host", "expert cache:", f"12 of {LAYERS * EXPERTS} experts", "estimated", "% hits", "waits of"):
            self.assertIn(words, self.said)
        self.assertIn("cannot be written", self.fails(
            "/nowhere", "run", "-m", make(MODEL), *GREEDY, "-p", "x", "-n", 1, "--stats-json", "/nowhere/x.json").err)


class Timeline(Shared):
    def test_lanes_and_overlap(self):
        path = self.new_path(".json")
        big = make("--layers 4 --experts 16 --used 4 --hidden 256 --expert-width 256 --head-length 64 --type Q8_0")
        start = time.monotonic()
        self.works("run", "-m", big, *GREEDY, "-p", "thus", "-n", 32, *PLANNED, "--moe-cache-mib", "25%",
                   "--moe-cache-cpu-share", "0.5", "--timeline", path)
        took_us = 1e6 * (time.monotonic() - start)
        lanes = check_timeline.read(path)
        for lane, events in lanes.items():
            self.assertTrue(events, lane)
            self.assertLess(max(end for _, end in events), took_us, lane)
        for lane in ("cpu", "planner"):  # of one thread: one after the other
            for (_, end), (begin, _) in zip(lanes[lane], lanes[lane][1:]):
                self.assertLessEqual(end, begin + 0.002)
        self.assertGreater(check_timeline.overlap_us(lanes["cpu"], lanes["device"] + lanes["link"]), 0)
        self.fails("/nowhere", "run", "-m", make(MODEL), *GREEDY, "-p", "x", "-n", 1, *PLANNED, "--timeline", "/nowhere/x.json")


class Verify(Shared):
    def test_exact(self):
        done = self.works("verify", "--exact", "-m", make(MODEL), *HOST, "--tokens", 40)
        self.assertIn("10 of 10 settings", done.out)
        got = json.loads(self.works("verify", "--exact", "-m", make(MODEL), *HOST, "--tokens", 12, "--json").out)
        self.assertEqual({row["result"] for row in got["settings"]}, {"identical"})
        self.assertTrue(any(row["hits"] for row in got["settings"]) and any(row["cpu"] for row in got["settings"]))

    def test_what_it_cannot_do(self):
        self.fails(["nothing to compare", "--device host"], "verify", "--exact", "-m", make(MODEL), "--device", "none", "--tokens", 4)
        self.fails("--tokens", "verify", "--exact", "-m", make(MODEL), *HOST, "--tokens", 1000000)


class Placement(Shared):
    def where(self, *flags):
        """Of each layer: c(pu), r(esident), p(lanned); upper case where the output is on the device."""
        device = self.plan(*HOST, *flags)["device"]
        text = "".join(layer["experts"][0] for layer in device["layers"])
        for layer in device["layers"]:
            self.assertEqual(layer["on_device"], layer["experts"] != "cpu")
        return text.upper() if device["output_on_device"] else text

    def test_layers_as_llama_cpp_counts_them(self):
        for flags, expected in (((), "RRR"), (("-ngl", "0"), "ccc"), (("-ngl", "1"), "ccr"), (("-ngl", "3"), "rrr"), (("-ngl", "4"), "RRR"),
                                (("-ngl", "99"), "RRR"), (("-ngl", "all"), "RRR"), (("-ngl", "auto"), "RRR"), (("-cmoe",), "PPP"),
                                (("-ncmoe", "0"), "RRR"), (("-ncmoe", "2"), "PPR"), (("-ncmoe", "99"), "PPP"), (("-ngl", "2", "-cmoe"), "cpp"),
                                (("-ngl", "2", "-ncmoe", "2"), "cpr"), (("--n-gpu-layers", "1", "--cpu-moe"), "ccp"), (("--n-cpu-moe", "1"), "PRR")):
            self.assertEqual(self.where(*flags), expected, flags)

    def test_every_byte_has_its_place(self):
        for flags in ((), ("-cmoe",), ("-ngl", "1"), ("-ncmoe", "1", "--moe-cache-mib", "25%"), ("-ngl", "0")):
            plan = self.plan(*HOST, *flags, "-c", "128")
            d = plan["device"]
            self.assertLessEqual(d["weight_bytes"] + d["kv_bytes"] + d["scratch_bytes"] + d["expert_bytes"], d["budget_bytes"])
            on_device = sum(layer["on_device"] for layer in d["layers"])
            self.assertEqual(d["kv_bytes"], on_device * 128 * 2 * (16 + 16) * 2, flags)
            self.assertEqual(plan["kv_bytes"], (LAYERS - on_device) * 128 * 2 * (16 + 16) * 2, flags)
            self.assertEqual(d["weight_bytes"] > 0, on_device > 0)
            resident = sum(layer["experts"] == "resident" for layer in d["layers"])
            self.assertGreaterEqual(d["expert_bytes"], (resident * EXPERTS + d["cache"]["slots"]) * self.expert_bytes())
        text = self.works("inspect", "-m", make(MODEL), *HOST, "-cmoe").out
        for words in ("On the device (planned)", "dense weights", "KV cache", "scratch", "expert cache"):
            self.assertIn(words, text)

    def test_cache_sizes(self):
        for size, slots in (("25%", 12), ("12s", 12), ("100%", 48), ("0", 0), ("10000", 48), ("auto", 48)):
            cache = self.plan(*PLANNED, "--moe-cache-mib", size)["device"]["cache"]
            self.assertEqual((cache["slots"], cache["of_experts"], cache["bytes"]), (slots, 48, slots * self.expert_bytes()), size)

    def test_direct_reads(self):
        plan = self.plan("-lm", "dio")
        self.assertIn(plan["load_mode"], ("dio", "none"))
        self.assertIn("around the page cache" if plan["load_mode"] == "dio" else "refused", plan["load_mode_reason"])
        self.assertEqual(plan["weights_own_bytes"], self.plan("-lm", "none")["weights_own_bytes"])
        self.assertEqual(plan["weights_mapped_bytes"], 0)

    def test_too_little_device_memory(self):
        self.assertLess(self.plan(*PLANNED, "--host-device-mib", "5", "-c", "64", "-ub", "8")["device"]["cache"]["slots"], 49)
        self.fails("MiB", "run", "-m", make(MODEL), *GREEDY, "-p", "x", "-n", 1, *HOST, "-ngl", "all",
                   "--host-device-mib", "1", "-c", "512")


class NotInForce(Shared):
    def said_by(self, *flags):
        return self.works("run", "-m", make(MODEL), *GREEDY, "-p", "x", "-n", 1, *flags).err

    def test_flags_without_a_device(self):
        given = {"-ngl": "3", "-cmoe": None, "-ncmoe": "1", "--moe-cache-mib": "5", "--moe-cache-cpu-share": "0.5", "--moe-cache-policy": "lru",
                 "--moe-cache-half-life": "9", "--moe-cache-admit": "2", "--moe-promote": "on", "--moe-explore": "off", "--no-host": None,
                 "--on-device-loss": "host"}
        said = self.said_by("--device", "none", *[word for flag in given.items() for word in flag if word])
        for flag in given:
            self.assertIn(flag + " has no effect: the CPU runs alone", said)

    def test_a_cache_too_small(self):
        self.assertIn("too few", self.said_by(*PLANNED, "--moe-cache-mib", "6s"))
        self.assertIn("no whole expert", self.said_by(*PLANNED, "--moe-cache-mib", "0.001"))

    def test_cache_flags_without_a_cache(self):
        said = self.said_by(*PLANNED, "--moe-cache-mib", "0", "--moe-cache-policy", "lru", "--moe-cache-admit", "2", "--moe-promote", "on")
        for flag in ("--moe-cache-policy", "--moe-cache-admit", "--moe-promote"):
            self.assertIn(flag + " has no effect: there is no cache", said)
        said = self.said_by(*HOST, "-ngl", "all", "-ncmoe", "0", "--moe-cache-mib", "5", "--moe-cache-cpu-share", "0.5", "--moe-cache-policy", "lru")
        self.assertIn("the expert cache is not needed", said)
        for flag in ("--moe-cache-policy", "--moe-cache-cpu-share"):
            self.assertIn(flag + " has no effect: the experts of all layers on the device are resident", said)
        said = self.said_by(*HOST, "-ngl", "0", "--moe-cache-mib", "5", "--moe-cache-cpu-share", "0.5")
        self.assertIn("no layer with experts lies on the device", said)
        said = self.said_by(*PLANNED, "-ncmoe", "1", "--moe-cache-mib", "5")
        self.assertIn("-ncmoe has no effect beside -cmoe", said)

    def test_a_number_as_share_turns_others_off(self):
        said = self.said_by(*PLANNED, "--moe-cache-mib", "25%", "--moe-cache-cpu-share", "0.5")
        self.assertIn("nothing is promoted", said)
        self.assertIn("without an admission", said)

    def test_pinning(self):
        self.assertIn("as asked (--no-host)", self.said_by(*PLANNED, "--no-host"))
        self.assertEqual(self.stats(*PLANNED, "--no-host")["pinned_bytes"], 0)


class Values(Shared):
    def test_wrong_values_name_the_flag(self):
        for flag, values in {"--moe-cache-mib": ("-1", "x", "101%", "2.5s", "nan", "5 MiB", "%", ""), "--moe-cache-cpu-share": ("1.1", "-0.1", "x", "nan", ""),
                             "--moe-cache-policy": ("mru", ""), "--moe-cache-half-life": ("-1", "x", "0.5", "1e99"), "--moe-cache-admit": ("-1", "1e9", "x"),
                             "--moe-promote": ("maybe",), "--moe-explore": ("auto",), "-ngl": ("-1", "x", "1.5", ""), "-ncmoe": ("-1", "x"),
                             "--on-device-loss": ("panic",), "--host-device-mib": ("-1", "x"), "-lm": ("direct",)}.items():
            for value in values:
                for command in (["run", "-p", "x", "-n", 1], ["inspect"]):
                    done = self.call(command[0], "-m", make(MODEL), *command[1:], *HOST, flag, value)
                    self.assertIn(done.returncode, (1, 2), (flag, value, done.err))
                    self.assertIn(flag.lstrip("-"), done.err, (flag, value))
                    self.assertEqual(done.out, "")

    def test_on_device_loss(self):
        for what in ("fail", "host"):
            self.works("run", "-m", make(MODEL), *GREEDY, "-p", "x", "-n", 2, *PLANNED, "--on-device-loss", what)


class Bench(Shared):
    def test_experts_in_text_and_json(self):
        flags = ["bench", "-m", make(MODEL), "-p", 20, "-n", 8, "-r", 2, *PLANNED, "--moe-cache-mib", "25%"]
        got = json.loads(self.works(*flags, "--json").out)
        self.assertEqual(got["settings"]["device"], "host")
        self.assertNotIn("decode_fraction_of_read_bandwidth", got)
        e = got["experts"]
        for name in ("hits", "misses", "cpu", "uploaded", "streamed", "promoted", "evicted"):
            self.assertEqual(e[name], e["cold"][name] + e["warm"][name], name)
        self.assertGreater(e["hits"] + e["misses"], 0)
        self.assertEqual(e["waits"]["count"], LAYERS * (1 + 2) * (1 + 8))  # a cold run first
        self.assertEqual(e["bytes"]["uploaded"], (e["uploaded"] + e["streamed"]) * self.expert_bytes())
        self.assertTrue({"device", "link", "cpu", "layers", "waiting"} <= set(e["time_us"]))
        text = self.works(*flags).out
        for words in ("expert cache: ", "cold", "warm", "% hits", "uploaded", "waits", "tok/s"):
            self.assertIn(words, text)
        alone = json.loads(self.works("bench", "-m", make(MODEL), "-p", 4, "-n", 2, "-r", 1, "--device", "none", "--json").out)
        self.assertNotIn("experts", alone)
        self.assertIn("decode_fraction_of_read_bandwidth", alone)


class Trace(Shared):
    FLAGS = ("--moe-cache-mib", "25%", "--moe-cache-cpu-share", "0")

    def record(self, *flags):
        path, stats = self.new_path(".spwt"), self.new_path(".json")
        self.works("trace", "record", "-m", make(MODEL), "-o", path, "--prompt-tokens", 16, "-n", 32, "--stats-json", stats, *PLANNED, *flags)
        return path, json.loads(pathlib.Path(stats).read_text())

    def test_replay_reproduces_what_ran(self):
        for flags in (self.FLAGS, ("--moe-cache-mib", "25%"), ("--moe-cache-mib", "20s", "--moe-cache-policy", "b12191", "--moe-cache-cpu-share", "0.5")):
            path, stats = self.record(*flags)
            shown = json.loads(self.works("trace", "show", path, "--json").out)
            self.assertTrue(shown["whole"])
            self.assertEqual((shown["steps"], shown["tokens"]), (33, 48))
            names = ("hits", "misses", "cpu", "uploaded", "streamed", "promoted", "evicted")
            for name in names:
                self.assertEqual(shown["counters"][name], stats["experts"][name], (flags, name))
            self.assertEqual(shown["counters"]["bytes_uploaded"], stats["bytes"]["uploaded"])
            self.assertIn("hits", self.works("trace", "show", path).out)
            done = self.works("trace", "replay", path)
            self.assertIn(f"the {33 * LAYERS} recorded plans are reproduced exactly", done.out)
            self.assertTrue(json.loads(self.works("trace", "replay", path, "--json").out)["reproduced"])
        # With a fixed share nothing depends on times: the simulation uploads the very bytes that the run did.
        path, stats = self.record(*self.FLAGS)
        got = json.loads(self.works("trace", "replay", path, "--json").out)
        self.assertEqual(got["counters"]["bytes_uploaded"], stats["bytes"]["uploaded"])
        self.assertEqual(got["counters"]["hits"], stats["experts"]["hits"])

    def test_other_settings_and_machines(self):
        path, _ = self.record(*self.FLAGS)
        replay = lambda *flags: json.loads(self.works("trace", "replay", path, "--json", *flags).out)
        plain = replay()
        self.assertEqual(plain["label"], "predicted")
        self.assertGreaterEqual(plain["belady_hit_rate"], plain["counters"]["hit_rate"])
        self.assertGreater(replay("--moe-cache-mib", "100%")["counters"]["hits"], plain["counters"]["hits"])
        self.assertGreater(replay("--moe-cache-cpu-share", "1")["counters"]["cpu"], 0)
        for policy in ("crf", "lru", "static", "b12191"):
            self.assertIn(policy, replay("--moe-cache-policy", policy)["settings"])
        machines = ("rtx3060-pcie3-ddr4", "rtx3060-pcie4-ddr4", "rtx4090-pcie4-ddr5", "rtx3090-pcie4-epyc")
        for machine in machines:
            got = replay("--machine", machine)
            self.assertEqual((got["label"], got["profile"]), ("estimated", machine))
            self.assertIn("estimated", self.works("trace", "replay", path, "--machine", machine).out)
        bigger = replay("--expert-bytes", "1000000")
        self.assertEqual(bigger["counters"]["bytes_uploaded"] % 1000000, 0)
        self.assertGreater(bigger["us"], plain["us"])
        table = self.works("trace", "compare", path, path).out
        for machine in machines:
            self.assertIn(machine, table)

    def test_wrong_values_name_the_flag(self):
        path, _ = self.record(*self.FLAGS)
        for flag, value in (("--machine", "abacus"), ("--as-model", "nobody"), ("--moe-cache-mib", "auto"), ("--moe-cache-mib", "x"), ("--moe-cache-cpu-share", "2"),
                            ("--moe-cache-policy", "mru"), ("--moe-cache-half-life", "0.5"), ("--moe-cache-half-life", "-1"), ("--moe-cache-admit", "-1"),
                            ("--moe-promote", "perhaps"), ("--expert-bytes", "-5"), ("--expert-bytes", "x")):
            done = self.call("trace", "replay", path, flag, value)
            self.assertIn(done.returncode, (1, 2), (flag, value))
            self.assertIn(flag, done.err)

    def test_damaged_traces(self):
        path, _ = self.record(*self.FLAGS)
        data = pathlib.Path(path).read_bytes()
        other = self.new_path(".spwt")

        def every_command_refuses(words, content):
            pathlib.Path(other).write_bytes(content)
            for command in (["show"], ["replay"], ["compare"]):
                self.fails([other, *words], "trace", *command, other)

        every_command_refuses([], b"")
        every_command_refuses([], b"GGUF" + data[4:])
        every_command_refuses(["version"], data[:4] + b"\x63" + data[5:])
        every_command_refuses([], data[:40])  # within the head
        pathlib.Path(other).write_bytes(data[:len(data) * 2 // 3])
        done = self.works("trace", "show", other)
        self.assertIn("breaks off", done.err + done.out)
        self.assertFalse(json.loads(self.works("trace", "show", other, "--json").out)["whole"])
        self.assertIn("reproduced exactly", self.works("trace", "replay", other).out)
        # A changed byte is found, or leaves a trace that says something else; it never ends the program.
        for at in range(20, len(data), max(1, len(data) // 60)):
            pathlib.Path(other).write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:])
            self.assertIn(self.call("trace", "replay", other).returncode, (0, 1))
        self.fails("/nowhere", "trace", "show", "/nowhere/x.spwt")
        self.fails("", "trace", "replay", os.path.dirname(path))

    def test_nothing_to_record(self):
        out = self.new_path(".spwt")
        record = ("trace", "record", "-m", make(MODEL), "-o", out, "-n", 4)
        self.fails(["nothing to record", "--device"], *record, "--device", "none")
        self.fails(["nothing to record", "-cmoe"], *record, *HOST, "-ngl", "all", "-ncmoe", "0")
        self.fails("/nowhere", "trace", "record", "-m", make(MODEL), "-o", "/nowhere/x.spwt", "-n", 4, *PLANNED)
        self.fails("-n 0", *record[:-1], 0, "--prompt-tokens", 0, *PLANNED)
        self.assertFalse(os.path.exists(out))
        self.assertEqual([name for name in os.listdir(os.path.dirname(out)) if "partial" in name], [])


if __name__ == "__main__":
    unittest.main()
