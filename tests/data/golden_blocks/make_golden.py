#!/usr/bin/env python3
"""Writes dequant.txt: raw blocks of each type and the float32 values the peer's ggml gives for them.

Needs the peer driver (peer_quant, peer_dequant), named by --bin. Python 3 standard library only.
The input is seeded, so a second run with the same peer gives the same file.
"""
import argparse, pathlib, random, struct, subprocess

ap = argparse.ArgumentParser()
ap.add_argument("--bin", default=str(pathlib.Path(__file__).resolve().parent.parent / "bin"))
ap.add_argument("--out", default=str(pathlib.Path(__file__).resolve().parent / "dequant.txt"))
A = ap.parse_args()

# name, elements in a block, bytes in a block, byte offsets of its F16 scales (first d, then dmin or m)
TYPES = [
    ("F16", 1, 2, None), ("BF16", 1, 2, None),
    ("Q4_0", 32, 18, (0,)), ("Q4_1", 32, 20, (0, 2)), ("Q5_0", 32, 22, (0,)), ("Q5_1", 32, 24, (0, 2)),
    ("Q8_0", 32, 34, (0,)),
    ("Q2_K", 256, 84, (80, 82)), ("Q3_K", 256, 110, (108,)), ("Q4_K", 256, 144, (0, 2)),
    ("Q5_K", 256, 176, (0, 2)), ("Q6_K", 256, 210, (208,)),
    ("IQ4_NL", 32, 18, (0,)), ("IQ4_XS", 256, 136, (0,)), ("MXFP4", 32, 17, "e8m0"),
]


def run(cmd, type_, data):
    return subprocess.run([f"{A.bin}/{cmd}", type_], input=data, stdout=subprocess.PIPE, check=True).stdout


def f16(x):
    return struct.pack("<e", x)


def cases(name, n, size, scales, rng):
    if scales is None:  # F16 and BF16: rows of 32 values
        special = {"F16": [0x0000, 0x8000, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400,
                           0x8400, 0x3555, 0x7C00, 0xFC00, 0x2E66],
                   "BF16": [0x0000, 0x8000, 0x3F80, 0xBF80, 0x7F7F, 0xFF7F, 0x0001, 0x8001, 0x007F, 0x807F, 0x0080,
                            0x8080, 0x3EAB, 0x7F80, 0xFF80, 0x3DCD]}[name]
        yield "quantized", run("peer_quant", name, struct.pack("<32f", *[rng.gauss(0, 1) for _ in range(32)]))
        yield "special", struct.pack("<16H", *special)
        top = 0x7C00 if name == "F16" else 0x7F80
        yield "random-finite", struct.pack("<32H", *finite(rng, top))
        return
    for sigma in (1.0, 0.02):
        yield f"quantized sigma={sigma}", run("peer_quant", name, struct.pack(f"<{n}f", *[rng.gauss(0, sigma) for _ in range(n)]))
    if scales == "e8m0":
        for e in (127, 120, 2, 1, 0, 200):
            yield f"random e={e}", bytes([e]) + rng.randbytes(size - 1)
        return
    for note, values in (("positive scale", (0.0123, 0.0456)), ("negative scale", (-0.0371, -0.0642)),
                         ("zero scale", (0.0, 0.25)), ("denormal scale", (3.2e-5, -7.0e-6))):
        raw = bytearray(rng.randbytes(size))
        for off, v in zip(scales, values):
            raw[off:off + 2] = f16(v)
        yield f"random {note}", bytes(raw)


def finite(rng, top):
    out = []
    while len(out) < 32:
        v = rng.getrandbits(16)
        if v & top != top:
            out.append(v)
    return out


with open(A.out, "w") as f:
    f.write("# Golden values for dequantizing; see README.md for the format and how they were made.\n")
    for i, (name, n, size, scales) in enumerate(TYPES):
        f.write(f"type {name} {n} {size}\n")
        for note, raw in cases(name, n, size, scales, random.Random(1000 + i)):
            out = run("peer_dequant", name, raw)
            assert len(raw) % size == 0 and len(out) == len(raw) // size * n * 4
            f.write(f"case {note}\nraw {raw.hex()}\nf32 {out.hex()}\n")
