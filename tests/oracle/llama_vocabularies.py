"""Compares ids on the vocabulary files of a llama.cpp checkout (models/ggml-vocab-*.gguf): with the ids beside them
(*.inp and *.out, made there with the families' own encoders), and, where a program is given that encodes a text with
llama.cpp, with what it says on many more texts.

    llama_vocabularies.py ENCODE_LINES WORK_FOLDER --models=FOLDER [--peer PROGRAM --texts TEXTS.json]

PROGRAM is called as `PROGRAM FILE --nul 1` with texts on its standard input, each ended by a NUL byte, and prints a line
of ids, separated by commas, for each (no special tokens added or parsed). Exit codes: 0 equal, 1 not, 77 skipped because the folder isn't there.
"""
import argparse, glob, json, mmap, os, struct, subprocess, sys

SEPARATOR = b"\n__ggml_vocab_test__\n"
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class Metadata:
    """The metadata of a GGUF file, as a dictionary."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.at = 16
        count = self.take("<Q")
        self.keys = {}
        for _ in range(count):
            name = self.string()
            self.keys[name] = self.value(self.take("<I"))

    def take(self, form):
        (value,) = struct.unpack_from(form, self.bytes, self.at)
        self.at += struct.calcsize(form)
        return value

    def string(self):
        length = self.take("<Q")
        self.at += length
        return self.bytes[self.at - length : self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind != 9:
            return self.take(SCALARS[kind])
        kind, length = self.take("<I"), self.take("<Q")
        return [self.value(kind) for _ in range(length)]


def vocabulary_data(keys):
    get = lambda name: keys.get("tokenizer.ggml." + name)
    data = {"kind": get("model"), "tokens": get("tokens"), "types": get("token_type") or []}
    for ours, theirs in (("pre", "pre"), ("scores", "scores"), ("merges", "merges"), ("unk", "unknown_token_id"),
                         ("add_space_prefix", "add_space_prefix")):
        if get(theirs) is not None:
            data[ours] = get(theirs)
    return data


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("encode_lines")
    parser.add_argument("work")
    parser.add_argument("--models", default="")
    parser.add_argument("--peer")
    parser.add_argument("--texts")
    parser.add_argument("--only")
    arguments = parser.parse_args()
    files = sorted(glob.glob(os.path.join(arguments.models, "ggml-vocab-*.gguf")))
    if not files:
        print(f"SKIPPED: no ggml-vocab-*.gguf in '{arguments.models}' (models/ of a llama.cpp checkout)")
        return 77
    os.makedirs(arguments.work, exist_ok=True)
    faults = 0
    for path in files:
        name = os.path.basename(path)[len("ggml-vocab-") : -len(".gguf")]
        if arguments.only and name not in arguments.only.split(","):
            continue
        data = vocabulary_data(Metadata(path).keys)
        vocabulary = os.path.join(arguments.work, name + ".llama.json")
        with open(vocabulary, "w") as file:
            json.dump(data, file)

        def ours(texts):
            listed = os.path.join(arguments.work, "texts.llama.json")
            with open(listed, "w") as file:
                json.dump([list(text) for text in texts], file)
            run = subprocess.run([arguments.encode_lines, vocabulary, listed], capture_output=True, text=True)
            if run.returncode != 0:
                return run.stderr.strip().split("\n")[-1]
            return [line.split("|")[0].split() for line in run.stdout.strip("\n").split("\n")]

        if os.path.exists(path + ".inp"):
            with open(path + ".inp", "rb") as file:
                texts = file.read().split(SEPARATOR)
            with open(path + ".out") as file:
                expected = [line.split() for line in file.read().split("\n")][: len(texts)]
            got = ours(texts)
            if isinstance(got, str):
                print(f"{name}: refused: {got[:110]}")
                continue
            wrong = [i for i in range(len(texts)) if got[i] != expected[i]]
            print(f"{name} (pre {data.get('pre')}): {len(texts) - len(wrong)} of {len(texts)} as in the file beside it")
            for i in wrong[:4]:
                print(f"  {texts[i]!r}\n    expected {' '.join(expected[i])}\n    ours     {' '.join(got[i])}")
            faults += len(wrong)
        if arguments.peer and arguments.texts:
            with open(arguments.texts) as file:
                texts = [bytes(text) for text in json.load(file)]
            texts = [text for text in texts if text and b"\0" not in text]
            got = ours(texts)
            if isinstance(got, str):
                continue
            listed = b"".join(text + b"\0" for text in texts)
            run = subprocess.run([arguments.peer, path, "--nul", "1"], input=listed, capture_output=True)
            peer = [line.split(",") if line else [] for line in run.stdout.decode().split("\n")]
            wrong = [(texts[i], peer[i], got[i]) for i in range(len(texts)) if peer[i] != got[i]]
            print(f"{name}: {len(texts) - len(wrong)} of {len(texts)} as llama.cpp")
            for text, peer, ids in wrong[:6]:
                print(f"  {text.decode('utf-8', 'replace')!r}\n    llama.cpp {' '.join(peer)[:200]}\n    ours      {' '.join(ids)[:200]}")
    return 1 if faults else 0


sys.exit(main())
