#!/usr/bin/env python3
"""`spillway report`, from outside: pages from result files, and files that are none."""
import html.parser, json, os, pathlib, unittest

from cli_case import Case


def result(**more):
    return {"schema": 1, "kind": "bench", "model": {"name": "demo", "file": "demo.gguf", "content": "00ff", "bytes": 10},
            "settings": [{"name": "default", "flags": {"-t": "2"}}, {"name": "no cache", "flags": {"-t": "2", "--moe-cache-mib": "0"}}],
            "rows": [{"setting": "default", "label": "measured", "cache_bytes": 1 << 30, "share": "auto", "decode_tok_s": 50.0},
                     {"setting": "no cache", "label": "measured", "share": "auto", "decode_tok_s": 20.0, "verdict": "slower"}],
            "runs": [{"setting": 0, "warm": True, "seconds": 1.0,
                      "requests": [{"generated_tokens": 4, "decode_s": 0.06, "itl_ms": [20.0, 19.0, 21.0], "finish": "length"}]}],
            "conclusion": "The default is kept."} | more


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)


class Report(Case):
    def result_file(self, **more):
        path = self.new_path(".json")
        pathlib.Path(path).write_text(json.dumps(result(**more)))
        return path

    def test_one_page_from_a_result(self):
        path = self.result_file()
        self.assertEqual(self.works("report", path).out.strip(), path.replace(".json", ".html"))
        page = pathlib.Path(path.replace(".json", ".html")).read_text()
        tags = Tags(page).tags
        self.assertGreaterEqual(tags.count("svg"), 6)
        self.assertNotIn("script", tags)
        for words in ("The default is kept.", "What got slower", "no cache"):
            self.assertIn(words, page)
        self.works("report", path)  # its own page is replaced
        self.assertEqual(self.works("report", path, "--out", "-").out, page)

    def test_markdown(self):
        done = self.works("report", self.result_file(), "--md")
        self.assertIn("| default | measured | 1 GiB | auto | 50.0 |", done.out)
        self.assertIn("> The default is kept.", done.out)

    def test_another_model_is_said_beside_its_numbers(self):
        other = self.result_file(model={"name": "demo", "file": "demo.gguf", "content": "0100", "bytes": 10})
        done = self.works("report", self.result_file(), other, "--md")
        self.assertIn("These numbers do not stand for result 1. Different here: model demo", done.out)
        self.assertIn("2 (not comparable)", self.works("report", self.result_file(), other, "--out", "-").out)

    def test_what_is_not_known_is_no_difference(self):
        plan = self.result_file(kind="plan", model={"name": "demo", "file": "demo.gguf", "bytes": 10}, runs=[])
        done = self.works("report", self.result_file(), plan, "--md")
        self.assertIn("not comparable: see result 2", done.out)
        self.assertIn("Different here: another kind of result (plan).", done.out)
        for words in ("content )", "0 requests", "memory", "(empty)"):
            self.assertNotIn(words, done.out)

    def test_wrong_input_is_named(self):
        path = self.result_file()
        self.fails("wibble.json", "report", "/nowhere/wibble.json")
        self.fails(["rows[0].decode_tok_s", "a number"], "report", self.result_file(rows=[{"decode_tok_s": "fast"}]))
        self.fails("is read here", "report", path, "--out", path)
        self.fails("no regular file", "report", path, "--out", os.path.dirname(path))
        page = pathlib.Path(path.replace(".json", ".html"))
        page.write_text("something dear")
        self.fails("--out", "report", path)
        self.assertEqual(page.read_text(), "something dear")
        self.assertEqual(self.call("report").returncode, 2)


if __name__ == "__main__":
    unittest.main()
