#!/usr/bin/env python3
"""`spillway probe` from outside: what it writes, who reads it, and what it refuses."""
import json, os, pathlib, shutil, unittest

from cli_case import FOLDER, Case, make

MODEL = "--layers 3 --experts 16 --used 4 --type Q8_0"
QUICK = ["--seconds", "0.1", "-t", "1"]
HOST = ["--device", "host", "--host-device-mib", "600"]
PROFILES = f"{FOLDER}/data/spillway/profiles"


class Probe(Case):
    def setUp(self):
        shutil.rmtree(PROFILES, True)

    def test_the_cpu_alone(self):
        done = self.works("probe", "--device", "none", *QUICK)
        for words in ("memory, read", "Q4_K", "MXFP4", "All measured", "step_us", "no device was measured", "limits"):
            self.assertIn(words, done.out)
        self.assertIn("written to", done.err)
        profile = json.loads(pathlib.Path(PROFILES, "none.json").read_text())
        quantities = profile["quantities"]
        self.assertEqual(quantities["cpu_gb_s"]["label"], "measured")
        self.assertLessEqual(quantities["cpu_gb_s"]["low"], quantities["cpu_gb_s"]["high"])
        self.assertEqual(quantities["link_gb_s"], {"value": 12.0, "label": "default", "reason": "no device was measured"})
        self.assertEqual(profile["machine"]["device"], "none")
        self.assertTrue(profile["machine"]["cpu"])
        self.assertRegex(profile["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    def test_a_run_starts_from_it(self):
        out = json.loads(self.works("probe", *HOST, *QUICK, "--json").out)
        path = pathlib.Path(PROFILES, "host.json")
        self.assertEqual(json.loads(path.read_text()), out)
        for name, quantity in out["quantities"].items():
            self.assertEqual(quantity["label"], "default" if name == "step_us" else "measured", name)
        run = ["run", "-m", make(MODEL), "--no-chat", "--temp", "0", "--ignore-eos", "-p", "thus", "-n", 2, "--device",
               "host", "-cmoe"]
        self.assertIn(f"hardware profile: {out['source']} (measured)", self.works(*run).err)
        # Measured with another processor or driver, it is not used.
        for key, value, words in (("cpu", "a slide rule", "slide rule"), ("driver", "0.1", "driver changed"),
                                  ("cores", 999, "999")):
            other = json.loads(json.dumps(out))
            other["machine"][key] = value
            path.write_text(json.dumps(other))
            said = self.works(*run).err
            self.assertIn("is not used", said)
            self.assertIn(words, said)
            self.assertNotIn("hardware profile: ", said)
        path.write_text("damaged")
        self.assertIn("host.json: not a hardware profile", self.works(*run).err)

    def test_a_replay_on_it(self):
        profile, trace = self.new_path(".json"), self.new_path(".trace")
        self.works("probe", *HOST, *QUICK, "--out", profile)
        self.assertFalse(os.path.exists(PROFILES))
        self.works("trace", "record", "-m", make(MODEL), *HOST, "-cmoe", "--prompt-tokens", 4, "-n", 8, "-o", trace)
        shown = json.loads(self.works("trace", "replay", trace, "--machine", profile, "--json").out)
        self.assertEqual(shown["label"], "estimated")
        self.assertEqual(shown["profile"], json.loads(pathlib.Path(profile).read_text())["name"])
        self.fails(["--machine", "no such file", "rtx3060"], "trace", "replay", trace, "--machine", "toaster")
        pathlib.Path(profile).write_text("{}")
        self.fails(["--machine", profile, "not a hardware profile"], "trace", "replay", trace, "--machine", profile)

    def test_a_page_of_it(self):
        profile = self.new_path(".json")
        self.works("probe", *HOST, *QUICK, "--out", profile)
        got = json.loads(pathlib.Path(profile).read_text())
        markdown = self.works("report", profile, "--md").out
        for words in ("# Spillway report", "## What the machine does", "## Machine", "Experts on the CPU", "The link",
                      "Fixed costs", "Middle half of the repetitions", got["machine"]["cpu"].split()[0]):
            self.assertIn(words, markdown)
        for name in got["quantities"]:
            self.assertIn("| " + name.replace("_", "\\_") + " |", markdown)
        self.assertIn("<svg", self.works("report", profile, "--out", "-").out)
        got["quantities"]["link_gb_s"]["label"] = "sure"
        pathlib.Path(profile).write_text(json.dumps(got))
        self.fails([profile, "quantities.link_gb_s.label"], "report", profile)

    def test_what_it_refuses(self):
        self.fails("--device quantum", "probe", "--device", "quantum", *QUICK)
        self.fails(["host device", "bytes are needed"], "probe", "--device", "host", "--host-device-mib", 1, *QUICK)
        self.fails("cannot be written", "probe", "--device", "none", *QUICK, "--out", "/dev/null/x")
        self.fails("", "probe", "--seconds", "0", code=2)


if __name__ == "__main__":
    unittest.main()
