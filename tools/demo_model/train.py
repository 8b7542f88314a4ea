#!/usr/bin/python3
"""Train the demo model on the CPU for a fixed wall-clock time.

The learning rate follows the clock: linear warmup over the first steps, then
linear decay to 5 % of the peak at --until, whatever the load of the machine.

Usage: train.py --until HH:MM [--build build] [--resume]
"""
import argparse
import datetime
import json
import os
import signal
import time

import numpy as np
import torch
import torch.nn.functional as F

from model import Config, Qwen3Moe, perplexity

TOPICS = ("prose", "code", "german", "chat")
MIX = (0.38, 0.17, 0.15, 0.30)              # share of the training sequences
MIX_LAST_QUARTER = (0.30, 0.14, 0.11, 0.45)


class Stream:
    """Sequences of one topic; every epoch is a new permutation with a new offset.

    Chat sequences start at the beginning of a conversation, the others anywhere.
    """

    def __init__(self, path, align, rng, eot):
        self.data = np.fromfile(path, dtype="<u2")
        self.align, self.rng, self.length = align, rng, 0
        self.starts = np.flatnonzero(self.data == eot) + 1 if align else None
        self.queue = []

    def next(self, length):
        """length + 1 token ids (inputs and targets)."""
        if not self.queue or length != self.length:
            self.length, last = length, len(self.data) - length - 1
            starts = self.starts[self.starts < last] if self.align else np.arange(self.rng.integers(length), last, length)
            self.queue = self.rng.permutation(starts).tolist()
        start = self.queue.pop()
        return self.data[start:start + length + 1].astype(np.int64)


def save(path, **state):
    torch.save(state, path + ".tmp")
    os.replace(path + ".tmp", path)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--until", required=True, help="end of the training, HH:MM (local clock)")
    ap.add_argument("--build", default="build")
    ap.add_argument("--tokens", type=int, default=2048, help="tokens per step")
    ap.add_argument("--length", type=int, default=512, help="tokens per sequence; short until --long-after")
    ap.add_argument("--short", type=int, default=256)
    ap.add_argument("--long-after", type=float, default=0.6, help="share of the time")
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--warmup", type=int, default=150, help="steps")
    ap.add_argument("--aux", type=float, default=0.01, help="coefficient of the load balancing loss, per layer")
    ap.add_argument("--save-every", type=float, default=600, help="seconds")
    ap.add_argument("--max-steps", type=int, default=10 ** 9)
    ap.add_argument("--resume", action="store_true")
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rng = np.random.default_rng(1)

    config = Config()
    model = Qwen3Moe(config)
    eot = config.vocab_size - 3
    decay = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() == 1]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
                            lr=args.lr, betas=(0.9, 0.95), foreach=True)
    hour, minute = map(int, args.until.split(":"))
    end = datetime.datetime.now().replace(hour=hour, minute=minute, second=0).timestamp()
    start, step, tokens, spent = time.time(), 0, 0, 0.0
    path = f"{args.build}/checkpoint.pt"
    if args.resume:
        state = torch.load(path)
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        start, step, tokens, spent = state["start"], state["step"], state["tokens"], state["spent"]
        rng = np.random.default_rng(1 + step)
    streams = [Stream(f"{args.build}/tokens/{t}.train.u16", t == "chat", rng, eot) for t in TOPICS]
    valid = [np.fromfile(f"{args.build}/tokens/{t}.valid.u16", dtype="<u2").astype(np.int64)[:8 * 512] for t in TOPICS]
    print("parameters (all, per token):", *model.parameter_counts(), flush=True)
    log = open(f"{args.build}/train.jsonl", "a" if args.resume else "w")

    def checkpoint():
        save(path, model=model.state_dict(), opt=opt.state_dict(), start=start, step=step, tokens=tokens,
             spent=spent, args=vars(args))

    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))      # save and leave
    saved, window = time.time(), []
    while time.time() < end and step < args.max_steps and not stop:
        began = time.time()
        progress = (began - start) / (end - start)
        mix = MIX_LAST_QUARTER if progress > 0.75 else MIX
        lr = args.lr * min(1, (step + 1) / args.warmup) * (1 - 0.95 * progress)
        for g in opt.param_groups:
            g["lr"] = lr
        length = args.length if progress > args.long_after else args.short
        pick = rng.choice(len(TOPICS), args.tokens // length, p=mix)
        batch = torch.from_numpy(np.stack([streams[i].next(length) for i in pick]))
        with torch.cpu.amp.autocast(dtype=torch.bfloat16):
            logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.float().view(-1, config.vocab_size), batch[:, 1:].reshape(-1))
        aux = model.aux_loss()
        opt.zero_grad()
        (loss + args.aux * aux).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        step += 1
        tokens += logits.shape[0] * logits.shape[1]
        spent += time.time() - began
        window.append((float(loss), float(aux), time.time() - began))
        if step % 50 == 0 or step < 4:
            l, a, t = (sum(c) / len(window) for c in zip(*window))
            peak = max(float(x.mlp.load.max() / x.mlp.load.sum()) for x in model.layers)
            row = dict(step=step, tokens=tokens, loss=round(l, 4), aux=round(a / config.num_hidden_layers, 4), grad_norm=round(float(norm), 3),
                       lr=round(lr, 6), tok_s=round(args.tokens / t), busiest=round(peak, 4),
                       minutes=round((time.time() - start) / 60, 1))
            window = []
            print(json.dumps(row), file=log, flush=True)
            print(" ".join(f"{k} {v}" for k, v in row.items()), flush=True)
        if time.time() - saved > args.save_every or step == 50:
            model.eval()
            ppl = {t: round(perplexity(model, v)[0], 2) for t, v in zip(TOPICS, valid)}
            model.train()
            print("valid perplexity", json.dumps(ppl), flush=True)
            print(json.dumps(dict(step=step, tokens=tokens, valid=ppl)), file=log, flush=True)
            checkpoint()
            saved = time.time()
    checkpoint()
    print(f"done: {step} steps, {tokens} tokens, {spent:.0f} s of computation", flush=True)


if __name__ == "__main__":
    main()
