#!/usr/bin/env python3
"""Makes the golden logits of this folder with llama.cpp as the peer. README.md says how.

  make_goldens.py MAKE_MODEL PEER_LOGITS [NAME ...]
MAKE_MODEL: build/release/tests/make_model. PEER_LOGITS: a program that takes `MODEL --tokens 1,2,3 --kv f32 --ctx N
--out F` and writes a row of little-endian float32 logits for each token, from llama.cpp with flash attention off.
"""
import pathlib, random, struct, subprocess, sys, tempfile

# name: (flags of make_model, tokens, positions kept)
CASES = {
    "qwen3moe": ("--family qwen3moe --head-length 32 --seed 11", 12, range(12)),
    "qwen2moe": ("--family qwen2moe --seed 12", 12, range(12)),
    "llama": ("--family llama --seed 13", 12, range(12)),
    "olmoe": ("--family olmoe --kv-heads 4 --experts 8 --used 3 --seed 14", 12, range(12)),
    "qwen3moe-tied": ("--family qwen3moe --tied --seed 21", 12, [0, 11]),
    "llama-tied-rope-factors": ("--family llama --tied --rope-factors --seed 22", 24, [1, 12, 23]),
    "llama-linear": ("--family llama --rope-scaling linear --rope-factor 8 --seed 23", 24, [1, 23]),
    "llama-dense": ("--family llama --experts 0 --used 0 --dense-width 96 --seed 24", 12, [0, 11]),
    "qwen3moe-unnamed-scaling": ("--family qwen3moe --rope-scaling unnamed --seed 25", 24, [1, 23]),
    "qwen3moe-yarn": ("--family qwen3moe --head-length 64 --rope-scaling yarn --rope-original-context 32 --seed 26",
                      80, [3, 31, 79]),
    "qwen2moe-yarn": ("--family qwen2moe --heads 2 --kv-heads 1 --head-length 32 --rope-scaling yarn --rope-factor 2.5 "
                      "--rope-original-context 256 --seed 27", 64, [5, 63]),
    "qwen3moe-long": ("--family qwen3moe --layers 2 --seed 29", 300, [126, 127, 128, 129, 299]),
}


def main():
    make_model, peer = sys.argv[1:3]
    here = pathlib.Path(__file__).parent
    for name in sys.argv[3:] or CASES:
        flags, count, kept = CASES[name]
        with tempfile.TemporaryDirectory() as folder:
            model, out = f"{folder}/model.gguf", f"{folder}/logits.f32"
            made = subprocess.run([make_model, *flags.split(), "--hash", "--out", model], check=True, capture_output=True, text=True)
            source = random.Random(name)
            tokens = [source.randrange(300) for _ in range(count)]
            subprocess.run([peer, model, "--tokens", ",".join(map(str, tokens)), "--kv", "f32", "--ctx", "512", "--out", out], check=True)
            data = open(out, "rb").read()
        width = len(data) // (4 * count)
        rows = struct.iter_unpack(f"<{width}f", data)
        lines = [f"model {flags}", f"hash {made.stdout.strip()}", "tokens " + " ".join(map(str, tokens))]
        lines += [f"row {i} " + " ".join("%.9g" % v for v in row) for i, row in enumerate(rows) if i in kept]
        (here / f"{name}.txt").write_text("\n".join(lines) + "\n")
        print(name)


if __name__ == "__main__":
    main()
