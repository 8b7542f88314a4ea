#!/usr/bin/env python3
"""`spillway verify` without --exact, from outside: what must be equal, what may differ and by how much."""
import json, os, pathlib, subprocess, unittest

from cli_case import Case, make

SHAPE = "--layers 2 --experts 8 --used 2 --hidden 256 --expert-width 256"
TEXT = ["--tokens", 48, "-n", 12]
quantized = {}


def file_of(type):
    """The same weights in this type."""
    if type not in quantized:
        source = make(f"{SHAPE} --type F32")
        path = f"{source}.{type}.gguf"
        subprocess.run([os.environ["QUANTIZE_MODEL"], source, path, "--dense", type, "--experts", type, "--narrow", "Q8_0"],
                       check=True)
        quantized[type] = path
    return quantized[type]


class Verify(Case):
    def compared(self, *flags, code=0):
        done = self.call("verify", "-m", file_of("Q8_0"), *TEXT, "--json", *flags)
        self.assertEqual(done.returncode, code, done.err + done.out)
        return json.loads(done.out)

    def test_settings_of_the_cache_are_identical(self):
        got = self.compared("--device", "host", "-cmoe", "--moe-cache-mib", "0,25%", "--moe-cache-cpu-share", "0,auto")
        self.assertEqual([c["name"] for c in got["compared"]],
                         [f"host, cache {c}, share {s}" for c in ("0", "25%") for s in ("0", "auto")])
        for c in got["compared"]:
            self.assertEqual((c["result"], c["must_be_equal"], c["rows"], c["identical_rows"]), ("identical", True, 48, 48))
            self.assertEqual((c["mean_kl"]["value"], c["top1"], c["perplexity_ratio"]["value"]), (0, 1, 1))
            self.assertNotIn("answer_differs", c)
        self.assertTrue(got["passed"])

    def test_another_file_of_the_model(self):
        loose = ["--max-kl", 10, "--min-top1", 0, "--max-ppl-ratio", 10]
        close, far = self.compared("--device", "none", "--against", file_of("Q6_K"), "--against", file_of("Q4_0"), *loose)["compared"]
        for c in (close, far):
            self.assertEqual((c["result"], c["must_be_equal"], c["identical_rows"]), ("within limits", False, 0))
            self.assertGreater(c["mean_kl"]["value"], 0)
            self.assertGreaterEqual(c["max_kl"]["value"], c["mean_kl"]["value"])
            self.assertGreater(c["perplexity"]["standard_error"], c["perplexity_ratio"]["standard_error"])
        self.assertGreater(far["mean_kl"]["value"], 2 * close["mean_kl"]["value"])
        # One limit at a time, just below what was seen.
        for flag, value, word in (("--max-kl", far["mean_kl"]["value"] * 0.9, "divergence"),
                                  ("--max-ppl-ratio", far["perplexity_ratio"]["value"] * 0.9, "perplexity")):
            args = dict(zip(loose[::2], loose[1::2])) | {flag: value}
            failed = self.compared("--device", "none", "--against", file_of("Q4_0"), *(x for pair in args.items() for x in pair), code=1)
            self.assertFalse(failed["passed"])
            self.assertEqual(len(failed["compared"][0]["shortfalls"]), 1)
            self.assertIn(word, failed["compared"][0]["shortfalls"][0])
            self.assertIn(flag, failed["compared"][0]["shortfalls"][0])

    def test_kv_types(self):
        got = self.compared("--device", "none", "-ctk", "f16,f32", "-ctv", "f16,f32")
        self.assertEqual([c["name"] for c in got["compared"]],
                         ["KV cache: keys f16, values f32", "KV cache: keys f32, values f16", "KV cache: keys f32, values f32"])
        for c in got["compared"]:
            self.assertEqual((c["result"], c["must_be_equal"]), ("within limits", False))
            self.assertLess(c["mean_kl"]["value"], 0.05)

    def test_a_forged_difference_fails(self):
        # A copy of the file promises what the file does: one byte of a weight that no hash sees is changed.
        data = bytearray(pathlib.Path(file_of("Q8_0")).read_bytes())
        copy = self.new_path()
        pathlib.Path(copy).write_bytes(data)
        same = self.compared("--device", "none", "--against", copy)["compared"][0]
        self.assertEqual((same["result"], same["must_be_equal"]), ("identical", True))
        at = len(data) - len(data) // 3
        for i in range(at, at + 34 * 64, 34):  # blocks of Q8_0: some byte of each
            data[i] ^= 0x08
        pathlib.Path(copy).write_bytes(data)
        done = self.call("verify", "-m", file_of("Q8_0"), *TEXT, "--device", "none", "--against", copy, "--json")
        got = json.loads(done.out)
        forged = got["compared"][0]
        self.assertTrue(forged["must_be_equal"], "the change was seen by the hash")
        self.assertEqual((done.returncode, forged["result"]), (1, "fails"))
        self.assertIn("every bit must be equal", forged["shortfalls"][0])

    def test_for_people_and_as_a_result_file(self):
        out = self.new_path(".json")
        done = self.works("verify", "-m", file_of("Q8_0"), *TEXT, "--device", "host", "--against", file_of("Q6_K"), "--max-kl", 10,
                          "--min-top1", 0, "--max-ppl-ratio", 10, "--out", out)
        for words in ("reference: the CPU alone", "identical  host", "every bit is promised", "divergence: mean", "perplexity:",
                      "same likeliest token", "answer: ", "2 of 2 comparisons keep to the limits; 1 of them"):
            self.assertIn(words, done.out)
        result = json.loads(pathlib.Path(out).read_text())
        self.assertEqual(result["kind"], "verify")
        self.assertIn("2 of 2", result["conclusion"])
        self.assertIn("--min-top1 0", result["command"])
        self.assertNotEqual(result["machine"]["device"], "none")
        self.assertTrue(any("mean divergence" in t["name"] and t["value"] > 0 for t in result["terms"]))
        reference, cached, other = (setting["flags"] for setting in result["settings"])
        self.assertEqual((reference["--device"], cached["--device"], other["--device"]), ("none", "host", "none"))
        self.assertEqual((reference["-m"], other["-m"]), (file_of("Q8_0"), file_of("Q6_K")))
        for flags in (reference, cached, other):
            self.assertGreater(int(flags["-t"]) * int(flags["-c"]) * int(flags["-ub"]), 0)
            self.assertNotEqual(flags["-lm"], "auto")
        self.assertIn("host, cache auto, share auto: every bit is promised; the answers are the same.", result["notes"])

    def test_what_it_refuses(self):
        q8 = file_of("Q8_0")
        self.fails(["nothing to compare with", "--against", "-ctk"], "verify", "-m", q8, "--device", "none")
        self.fails("--stats-json", "verify", "-m", q8, "--device", "host", "--stats-json", self.new_path(".json"), code=2)
        self.fails("-ctk f8", "verify", "-m", q8, "-ctk", "f16,f8")
        self.fails("--device quantum", "verify", "-m", q8, "--device", "quantum")
        other = make(SHAPE + " --vocabulary 400 --type Q8_0")
        self.fails([other, "vocabulary", "same model"], "verify", "-m", q8, "--device", "none", "--against", other)
        self.fails(["--scratch-mib", "--tokens"], "verify", "-m", make("--vocabulary 3000 --type Q8_0"), "--device", "host",
                   "--scratch-mib", 1, "--tokens", 200)
        self.fails("no scratch file", "verify", "-m", q8, "--device", "host", *TEXT, env={**os.environ, "TMPDIR": "/proc"})
        self.fails("--tokens 99999", "verify", "-m", q8, "--device", "host", "--tokens", 99999)


if __name__ == "__main__":
    unittest.main()
