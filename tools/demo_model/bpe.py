#!/usr/bin/python3
"""Byte-level BPE with the Qwen2 pre-tokenizer: training and encoding.

Vocabulary: 256 byte tokens (GPT-2 byte-to-unicode alphabet), the merged
tokens in merge order, then <|endoftext|>, <|im_start|>, <|im_end|>.

Usage: bpe.py [--build build] [--vocab 4096] [--reuse] [--topics prose,code,german,chat]
  trains on <build>/corpus/*.train.jsonl, writes <build>/tokenizer.json and the
  encoded splits <build>/tokens/{topic}.{split}.u16 (documents end in
  <|endoftext|>).  With --reuse an existing tokenizer.json only encodes.
"""
import argparse
import collections
import heapq
import json
import os

import numpy as np
import regex

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TOPICS = ("prose", "code", "german", "chat")
PATTERN = regex.compile(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def byte_alphabet():
    """GPT-2's map of the 256 byte values to printable characters."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, extra = {}, 0
    for b in range(256):
        table[b] = chr(b) if b in keep else chr(256 + extra)
        extra += b not in keep
    return table


BYTE_TO_CHAR = byte_alphabet()
CHAR_TO_BYTE = {c: b for b, c in BYTE_TO_CHAR.items()}


class Tokenizer:
    def __init__(self, merges):
        """merges: list of (left, right) strings in the byte alphabet."""
        self.merges = [tuple(m) for m in merges]
        self.tokens = [BYTE_TO_CHAR[b] for b in range(256)] + [a + b for a, b in self.merges] + SPECIALS
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        self.ranks = {m: i for i, m in enumerate(self.merges)}
        self.cache = {}
        self.special = regex.compile("(" + "|".join(map(regex.escape, SPECIALS)) + ")")
        self.eot, self.im_start, self.im_end = (self.ids[s] for s in SPECIALS)

    def _bpe(self, piece):
        parts = [BYTE_TO_CHAR[b] for b in piece.encode("utf-8")]
        while len(parts) > 1:
            rank, i = min((self.ranks.get((parts[i], parts[i + 1]), 1 << 30), i) for i in range(len(parts) - 1))
            if rank == 1 << 30:
                break
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        return [self.ids[p] for p in parts]

    def encode(self, text, special=True):
        """str -> list of token ids; with special=True the control tokens are recognised."""
        out = []
        for k, part in enumerate(self.special.split(text) if special else [text]):
            if special and k % 2:
                out.append(self.ids[part])
                continue
            for piece in PATTERN.findall(part):
                ids = self.cache.get(piece)
                if ids is None:
                    ids = self.cache[piece] = self._bpe(piece)
                out += ids
        return out

    def decode(self, ids):
        return b"".join(self.tokens[i].encode() if i >= len(self.tokens) - 3 else
                        bytes(CHAR_TO_BYTE[c] for c in self.tokens[i]) for i in ids).decode("utf-8", "replace")

    @classmethod
    def load(cls, path):
        return cls(json.load(open(path, encoding="utf-8"))["merges"])


def train(counts, n_merges):
    """counts: {pre-token: frequency} -> merges, most frequent pair first."""
    words = [([BYTE_TO_CHAR[b] for b in w.encode("utf-8")], c) for w, c in counts.items()]
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, (parts, c) in enumerate(words):
        for p in zip(parts, parts[1:]):
            pairs[p] += c
            where[p].add(i)
    heap = [(-c, p) for p, c in pairs.items()]
    heapq.heapify(heap)
    merges, made = [], set()
    while len(merges) < n_merges:
        c, best = heapq.heappop(heap)
        if -c != pairs[best]:               # stale heap entry
            if pairs[best] > 0:
                heapq.heappush(heap, (-pairs[best], best))
            continue
        if best[0] + best[1] in made:       # same token by another pair: keep the vocabulary unique
            del pairs[best]
            continue
        made.add(best[0] + best[1])
        merges.append(best)
        changed = set()
        for i in where.pop(best):
            parts, count = words[i]
            for p in zip(parts, parts[1:]):
                pairs[p] -= count
            new, k = [], 0
            while k < len(parts):
                if k + 1 < len(parts) and (parts[k], parts[k + 1]) == best:
                    new.append(parts[k] + parts[k + 1])
                    k += 2
                else:
                    new.append(parts[k])
                    k += 1
            words[i] = (new, count)
            for p in zip(new, new[1:]):
                pairs[p] += count
                where[p].add(i)
                changed.add(p)
        pairs.pop(best, None)
        for p in changed:
            heapq.heappush(heap, (-pairs[p], p))
    return merges


def documents(build, topic, split):
    with open(f"{build}/corpus/{topic}.{split}.jsonl", encoding="utf-8") as f:
        for line in f:
            yield json.loads(line)["text"]


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default="build")
    ap.add_argument("--vocab", type=int, default=4096)
    ap.add_argument("--reuse", action="store_true")
    ap.add_argument("--topics", default=",".join(TOPICS))
    args = ap.parse_args()
    path = f"{args.build}/tokenizer.json"
    if not args.reuse:
        counts = collections.Counter()
        for topic in TOPICS[:3]:
            for text in documents(args.build, topic, "train"):
                counts.update(PATTERN.findall(text))
        counts = {w: c for w, c in counts.items() if c > 2 and len(w) < 40}
        print(len(counts), "distinct pre-tokens")
        merges = train(counts, args.vocab - 256 - len(SPECIALS))
        json.dump({"merges": merges, "specials": SPECIALS}, open(path, "w"), ensure_ascii=False)
    tok = Tokenizer.load(path)
    assert len(tok.tokens) == len(tok.ids) == args.vocab
    os.makedirs(f"{args.build}/tokens", exist_ok=True)
    for topic in args.topics.split(","):
        for split in ("valid", "train"):
            ids, size = [], 0
            for text in documents(args.build, topic, split):
                ids += tok.encode(text, special=topic == "chat")
                ids.append(tok.eot)
                size += len(text.encode())
            np.array(ids, dtype="<u2").tofile(f"{args.build}/tokens/{topic}.{split}.u16")
            print(f"{topic:6} {split} {len(ids):9} tokens, {size / max(1, len(ids)):.2f} bytes/token")


if __name__ == "__main__":
    main()
