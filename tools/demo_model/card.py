#!/usr/bin/python3
"""Write <out>/MODEL_CARD.md from the measured results.

Usage: card.py [--build build] [--out out] [--notes FILE]
  --notes: text inserted after the training facts (what was special about this run)
"""
import argparse
import json
import os

# From each package's debian/copyright (the main "Files: *" paragraph or the licence of the text).
LICENCES = {
    "bash-completion": "GPL-2+", "bible-kjv-text": "public domain (text), GPL-2+ (package)",
    "debian-faq": "permissive copyleft (SPI notice)", "debian-faq-de": "permissive copyleft (SPI notice)",
    "debian-handbook": "GPL-2+ or CC-BY-SA-3.0", "debian-policy": "GPL-2+",
    "debian-reference-en": "GPL-2+", "debian-reference-de": "GPL-2+",
    "developers-reference": "GPL-2", "developers-reference-de": "GPL-2",
    "dict-foldoc": "GFDL-1.1+, no invariant sections", "dict-gcide": "GPL-2+", "dict-wn": "WordNet 3.0 licence",
    "git-doc": "GPL-2", "gnome-user-docs": "CC-BY-SA-3.0", "installation-guide-amd64": "GPL-2",
    "libpython3.11-stdlib": "PSF-2.0", "libreoffice-help-de": "MPL-2.0", "libreoffice-help-en-us": "MPL-2.0",
    "linux-doc-6.1": "GPL-2", "linux-source-6.1": "GPL-2", "manpages": "GPL-2+ and the licences of the single pages",
    "manpages-de": "GPL-3+", "perl-doc": "GPL-1+ or Artistic", "python3-django": "BSD-3-Clause",
    "python3-sympy": "BSD-3-Clause", "python3.11-doc": "PSF-2.0",
    "r-cran-janeaustenr": "public domain (novels), MIT (package)",
}
TOPICS = ("prose", "code", "german", "chat")


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default="build")
    ap.add_argument("--out", default="out")
    ap.add_argument("--notes")
    args = ap.parse_args()
    check = json.load(open(f"{args.out}/check.json"))
    sources = json.load(open(f"{args.build}/corpus/sources.json"))
    size = {t: os.path.getsize(f"{args.build}/tokens/{t}.train.u16") // 2 for t in TOPICS}
    total, active = check["parameters"], check["parameters_per_token"]
    rows = "\n".join(
        f"| {s['package']} | {s['version']} | {s['topic']} | " +
        (f"{s['train'] / 1e6:.2f}" if "train" in s else "glosses") + f" | {LICENCES[s['package']]} |" for s in sources)
    ppl = "\n".join(
        f"| {t} | " + (f"{check['perplexity'][t]['perplexity']:.2f} ({check['perplexity'][t]['predicted']})"
                       if t in check["perplexity"] else "-") +
        f" | {check['validation_split'][t]['perplexity']:.2f} ({check['validation_split'][t]['predicted']}) |" for t in TOPICS)
    layers = check["routing"]["layers"]
    routing = "\n".join(
        f"| {r['layer']} | {r['entropy_bits']:.2f} | {r['busiest_share']:.3f} | {r['least_share']:.4f} | " +
        " | ".join(f"{r[t]['entropy_bits']:.2f}, {r[t]['busiest_share']:.3f} (#{r[t]['busiest_expert']})" for t in TOPICS) +
        f" | {r['distance_prose_code']:.2f} | {r['distance_prose_german']:.2f} | {r['distance_code_german']:.2f} | {r['distance_prose_chat']:.2f} |"
        for r in layers)
    notes = open(args.notes, encoding="utf-8").read().strip() + "\n\n" if args.notes else ""
    text = f"""# Spillway Demo {total / 1e6:.0f}M-A{active / 1e6:.1f}M

A small mixture-of-experts language model, made to show how tokens are routed to
experts and to test an engine against a reference. It is not meant to be clever.

## Model

Computation of `Qwen3MoeForCausalLM` (GGUF architecture `qwen3moe`): 6 layers, hidden
size 256, 4 query heads and 2 key/value heads of 64, RMSNorm on queries and keys,
rotary positions (halves, base 10000), in every layer 64 SwiGLU experts of width 64
of which 4 work per token (softmax over all experts, top 4, weights renormalised),
no shared expert, tied embeddings. {total:,} parameters, {active:,} used per token
(the embedding counted once, as the output matrix). Vocabulary 4096, byte-level BPE
with the Qwen2 pre-tokenizer; context length 2048 in the file, trained on sequences
of at most 512 tokens.

Chat format: ChatML (`<|im_start|>role\\n...<|im_end|>\\n`), end of answer `<|im_end|>`.

## Data

| package (Debian 12) | version | topic | MB used | licence |
|---|---|---|---|---|
{rows}

Training tokens available: {", ".join(f"{t} {size[t] / 1e6:.2f} M" for t in TOPICS)}. The chat set is
synthetic (`tools/demo_model/chat.py`: templates, definitions from WordNet).
About one document in 43 is held out; long documents are cut at 24,000
characters first, so a held-out piece may have a trained-on neighbour from the
same file.

## Training

From scratch on the CPU, one thread, matrix products in bfloat16, weights in float32.
AdamW (0.9, 0.95, weight decay 0.1 on matrices), peak learning rate 2e-3, warmup 150
steps, linear decay by the clock, gradient norm clipped at 1. Load balancing loss of
the Switch Transformer with coefficient 0.01. {check['step']} steps,
{check['tokens_seen']:,} tokens, {check['training_seconds'] / 60:.0f} minutes of wall-clock time on a shared machine.

{notes}## Perplexity

{check['perplexity']['method'].replace('; ', ';' + chr(10))}.
The second column is the same measure on the first windows of the whole validation split
(documents joined by `<|endoftext|>`). Predicted tokens in brackets.

| topic | heldout_*.txt | validation split |
|---|---|---|
{ppl}

## Routing

{check['routing']['note'].replace('; ', ';' + chr(10))}.
Per topic: entropy in bits, share of the busiest expert and its number.

| layer | entropy, all | busiest | least busy | prose | code | german | chat | prose-code | prose-german | code-german | prose-chat |
|---|---|---|---|---|---|---|---|---|---|---|---|
{routing}

## Limits

Trained on {check['tokens_seen'] / 1e6:.2f} million tokens, far too few for a model of this size: it has the look of
English prose, code and German, but no facts and little grammar. The chat set was seen
with and without the system prompt "You are the Spillway demo model."; other system
prompts are unknown to it. German is technical documentation only.

## Licence

The weights carry no licence of their own beyond that of the project as far as its
authors hold rights; the texts they were trained on, and the held-out samples, remain
under the licences above.
"""
    with open(f"{args.out}/MODEL_CARD.md", "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
