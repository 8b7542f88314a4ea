#!/usr/bin/env python3
"""`spillway tune` on a small model and the pretended device, and what `run` makes of it. Its times mean nothing, so which
settings win is not asked; that the whole way works, is."""
import json, os, pathlib, shutil, unittest

from cli_case import FOLDER, SECONDS, Case, make

MODEL = "--layers 2 --experts 8 --used 2 --type Q8_0 --vocabulary 300 --context 4096"
HOST = ["--device", "host", "-cmoe"]
QUICK = ["--minutes", str(SECONDS / 600), "-t", "1"]  # more where the build is slower


def conversations(n):
    return "".join(json.dumps({"messages": [{"role": "user", "content": f"the {i} th day " * 3}], "max_tokens": 24}) + "\n"
                   for i in range(n))


class Tune(Case):
    def setUp(self):
        self.config = self.new_path(".config")
        self.env = {**os.environ, "XDG_CONFIG_HOME": self.config, "XDG_DATA_HOME": FOLDER + "/data"}
        self.workload = self.new_path(".jsonl")
        pathlib.Path(self.workload).write_text(conversations(6))

    def tune(self, *flags, **how):
        return self.call("tune", "-m", make(MODEL), *HOST, *QUICK, "--workload", self.workload, *flags, env=self.env, **how)

    def kept(self):
        return sorted(pathlib.Path(self.config).glob("spillway/tuned/*.json"))

    def test_a_result_that_says_what_is_measured(self):
        out = self.new_path(".json")
        done = self.tune("--moe-cache-mib", "50%", "--out", out)
        self.assertIn(done.returncode, (0, 3), done.err)
        result = json.loads(pathlib.Path(out).read_text())
        self.assertEqual(result["kind"], "tune")
        self.assertTrue(result["conclusion"])
        self.assertTrue(result["model"]["content"] and result["build"]["version"] and result["machine"]["cpu"])
        self.assertIn("spillway tune", result["command"])
        for setting in result["settings"]:
            flags = setting["flags"]
            self.assertEqual((flags["-m"], flags["--device"], flags["-ctk"]), (make(MODEL), "host", "f16"))
            self.assertGreater(int(flags["-t"]) * int(flags["-c"]) * int(flags["-ub"]), 0)
        self.assertGreater(len({setting["flags"]["--moe-cache-mib"] for setting in result["settings"]}), 1)
        measured = [row for row in result["rows"] if row["label"] == "measured"]
        self.assertGreaterEqual(len(measured), 2)
        self.assertEqual(measured[0]["setting"], "cache auto, share auto")
        self.assertTrue(all(row["decode_tok_s"] > 0 for row in result["rows"]))
        if done.returncode == 3:
            self.assertTrue(any("The term that failed is" in note for note in result["notes"]), result["notes"])
            self.assertEqual(len(measured), len(result["rows"]))
        self.assertIn(result["conclusion"], done.out)
        self.assertGreater(len(result["runs"]), 2)
        self.assertEqual({term["label"] for term in result["terms"]} - {"predicted", "default", "measured"}, set())

    def test_run_uses_what_was_kept_and_says_when_not(self):
        done = self.tune("--moe-cache-mib", "50%")
        self.assertIn(done.returncode, (0, 3), done.err)
        (file,) = self.kept()
        profile = json.loads(file.read_text())
        profile["flags"] = {"--moe-cache-mib": "0.0625", "--moe-cache-cpu-share": "0.5"}  # whatever it found
        file.write_text(json.dumps(profile))
        listed = json.loads(self.works("profiles", "--json", env=self.env).out)["tuned"]
        self.assertEqual([(one["file"], one["model_there"], one["flags"]) for one in listed],
                         [(str(file), True, profile["flags"])])
        self.assertIn("--moe-cache-mib 0.0625", self.works("profiles", env=self.env).out)

        def run(*flags, model=make(MODEL)):
            stats = self.new_path(".json")
            done = self.works("run", "-m", model, "--no-chat", "-p", "thus", "-n", 2, *flags, "--stats-json", stats,
                              env=self.env)
            return done.err, json.loads(pathlib.Path(stats).read_text())["placement"]["cache"]["bytes"]

        said, cache = run(*HOST)
        self.assertIn("were tuned for this model and machine", said)
        self.assertLessEqual(cache, 65536)
        said, cache = run(*HOST, "--profile", "none")
        self.assertNotIn("tuned", said)
        self.assertGreater(cache, 65536)
        said, cache = run(*HOST, "--moe-cache-mib", "100%")
        self.assertIn("but for --moe-cache-mib, given by hand", said)
        self.assertGreater(cache, 65536)
        said, cache = run(*HOST, "--profile", file)
        self.assertIn("were tuned for this model and machine", said)
        # Something changed.
        said, cache = run(*HOST, "-lm", "mmap")
        self.assertIn("the loading mode was 'none', now it is 'mmap'", said)
        self.assertGreater(cache, 65536)
        said, cache = run("--device", "host")
        self.assertIn("are not used: it was made with -cmoe", said)
        profile["facts"]["machine"]["driver"] = "older"
        file.write_text(json.dumps(profile))
        said, cache = run(*HOST)
        self.assertIn("its driver was 'older'", said)
        self.fails(["its driver was 'older'", "run 'spillway tune' again"], "run", "-m", make(MODEL), "-p", "x", "-n", 1,
                   "--no-chat", *HOST, "--profile", file, env=self.env)
        # A moved model keeps its settings; another model in its place does not get them.
        profile["facts"]["machine"]["driver"] = json.loads(self.works("devices", *HOST[:2], "--json").out)[0]["driver"]
        file.write_text(json.dumps(profile))
        moved = self.new_path()
        shutil.copy(make(MODEL), moved)
        self.assertIn("were tuned for this model", run(*HOST, model=moved)[0])
        file.write_text("{")
        self.assertIn("is passed over", run(*HOST)[0])

    def test_everything_fits(self):
        done = self.tune()
        self.assertEqual(done.returncode, 0, done.err)
        self.assertIn("All experts fit on the device", done.out)
        self.assertEqual(self.kept(), [])

    def test_limits_are_kept_or_refused(self):
        done = self.tune("--max-device-mib", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is the smallest that would do", done.err)
        least = int(done.err.split(" is the smallest")[0].split()[-1])
        self.assertIn("--max-device-mib", self.tune("--max-device-mib", least - 1).err)
        out = self.new_path(".json")
        done = self.tune("--max-device-mib", least, "--out", out, "--no-keep", "--minutes", "0.1")
        self.assertIn(done.returncode, (0, 3), done.err)
        for run in json.loads(pathlib.Path(out).read_text())["runs"]:
            self.assertLessEqual(run["device_peak_bytes"], least << 20)
        self.assertEqual(self.kept(), [])
        self.fails(["does not fit", "usable"], "tune", "-m", make(MODEL), *HOST, *QUICK, "--moe-cache-mib", "50%",
                   "--max-host-mib", "1", env=self.env)

    def test_wrong_use(self):
        self.fails("nothing to tune: the CPU runs alone", "tune", "-m", make(MODEL), "--device", "none")
        self.fails("nothing to tune without a cache", "tune", "-m", make(MODEL), *HOST, "--moe-cache-mib", "0")
        self.fails("", "tune", "-m", make(MODEL), "--goal", "fame", code=2)
        bad = self.new_path(".jsonl")
        pathlib.Path(bad).write_text(conversations(1) + "{\n")
        self.fails([bad, "2"], "tune", "-m", make(MODEL), *HOST, "--workload", bad)


if __name__ == "__main__":
    unittest.main()
