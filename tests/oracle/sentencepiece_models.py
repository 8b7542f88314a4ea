"""Compares ids with those of SentencePiece itself (Debian: python3-sentencepiece) on models trained here on the repository's
own texts: with and without byte tokens, with and without the space prefix, of two sizes.

    sentencepiece_models.py ENCODE_LINES WORK_FOLDER

Exit codes: 0 equal, 1 not, 77 skipped because the package isn't there.
"""
import glob, io, json, os, random, subprocess, sys

try:
    import sentencepiece
except ImportError:
    print("SKIPPED: the Python package sentencepiece isn't installed (apt-get install python3-sentencepiece)")
    sys.exit(77)

TRAPS = ["", " ", "  ", "a", " a", "a ", "a  b", "   a   b   ", "\n", "a\n\nb", "\t\tx", "don't", "12345", "3.14", "é è ü ß",
         "e\u0301", "中文字", "日本語", "한국어", "สวัสดี", "नमस्ते", "😀", "👨‍👩‍👧", "▁", "a▁b", "<s>", "</s>", "<unk>", "<0x41>", "\u00a0", "\u3000",
         "x" * 100, "ab" * 60, " " * 60, "\n" * 60, "中" * 30, "\u0001", "const std::string& text) {\n    return text;\n  }\n"]


def texts(corpus):
    chosen = random.Random(4)
    out = list(TRAPS)
    for _ in range(500):
        start = chosen.randrange(len(corpus) - 200)
        out.append(corpus[start : start + chosen.randrange(1, 160)])
    alphabet = list("ab the  \n.,éß中😀1") + ["the ", "ing", "  ", "▁"]
    for _ in range(300):
        out.append("".join(chosen.choice(alphabet) for _ in range(chosen.randrange(1, 25))))
    return out


def train(path, corpus, options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus.split("\n")), model_writer=model, model_type="bpe", normalization_rule_name="identity",
        remove_extra_whitespaces=False, minloglevel=2, hard_vocab_limit=False, **options)
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def vocabulary_data(model, options):
    def kind(i):
        if model.is_unknown(i):
            return 2
        return 3 if model.is_control(i) else 6 if model.is_byte(i) else 5 if model.is_unused(i) else 1

    count = model.get_piece_size()
    return {"kind": "llama", "tokens": [model.id_to_piece(i) for i in range(count)],
            "scores": [model.get_score(i) for i in range(count)], "types": [kind(i) for i in range(count)],
            "unk": model.unk_id(), "add_space_prefix": options["add_dummy_prefix"]}


def main():
    encode_lines, work = sys.argv[1:3]
    os.makedirs(work, exist_ok=True)
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    files = sorted(glob.glob(os.path.join(root, "src/**/*.h"), recursive=True) + glob.glob(os.path.join(root, "docs/*.md")))
    corpus = "\n".join(open(path, encoding="utf-8").read() for path in files)[:400_000]
    listed = os.path.join(work, "sentencepiece.texts.json")
    samples = texts(corpus)
    with open(listed, "w") as file:
        json.dump([list(text.encode()) for text in samples], file)
    faults = 0
    for options in [
        {"vocab_size": 1500, "byte_fallback": True, "add_dummy_prefix": True, "allow_whitespace_only_pieces": True},
        {"vocab_size": 700, "byte_fallback": True, "add_dummy_prefix": False, "split_by_whitespace": False},
        {"vocab_size": 900, "byte_fallback": False, "add_dummy_prefix": True},
        {"vocab_size": 1200, "byte_fallback": True, "add_dummy_prefix": True, "split_digits": True, "character_coverage": 0.99},
    ]:
        model = train(work, corpus, options)
        path = os.path.join(work, "sentencepiece.vocabulary.json")
        with open(path, "w") as file:
            json.dump(vocabulary_data(model, options), file)
        run = subprocess.run([encode_lines, path, listed], capture_output=True, text=True, check=True)
        got = [line.split("|")[0].split() for line in run.stdout.strip("\n").split("\n")]
        wrong = [i for i, text in enumerate(samples) if [str(id) for id in model.encode(text)] != got[i]]
        print(f"{options}: {len(samples) - len(wrong)} of {len(samples)} as SentencePiece")
        for i in wrong[:5]:
            print(f"  {samples[i]!r}\n    expected {model.encode(samples[i])}\n    ours     {' '.join(got[i])}")
        faults += len(wrong)
    return 1 if faults else 0


sys.exit(main())
