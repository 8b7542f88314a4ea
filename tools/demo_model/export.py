#!/usr/bin/python3
"""Write the demo model as a GGUF v3 file (arch qwen3moe, F32), with reference results.

Usage: export.py [--build build] [--out out] [--samples]
  <out>/demo-f32.gguf          model and tokenizer
  <out>/check.json             token ids, top logits, held-out perplexity, routing load
  <out>/check_logits.f32       logits of the 32-token prompt, [32, vocab] little-endian float32
  <out>/heldout_<topic>.txt    text that was never trained on
"""
import argparse
import json
import math
import os
import struct

import numpy as np
import torch

from bpe import Tokenizer, documents
from model import Config, Qwen3Moe, generate, perplexity

ALIGNMENT = 32
U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
NORMAL, CONTROL = 1, 3
HELD_OUT_TOPICS = ("prose", "code", "german")
PROMPT = "In the beginning God created the heaven and the earth. The house stood near the river, and the old man said to his wife that he would not go"
CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}")


class GgufWriter:
    """Minimal GGUF v3 writer: key-values, tensor table, aligned F32 data."""

    def __init__(self):
        self.kv, self.tensors = [], []

    @staticmethod
    def _string(s):
        b = s.encode("utf-8")
        return struct.pack("<Q", len(b)) + b

    def _value(self, kind, v):
        return self._string(v) if kind == STRING else struct.pack({U32: "<I", F32: "<f", BOOL: "<?", I32: "<i"}[kind], v)

    def add(self, key, kind, value):
        if isinstance(value, list):
            body = struct.pack("<IIQ", ARRAY, kind, len(value)) + b"".join(self._value(kind, v) for v in value)
        else:
            body = struct.pack("<I", kind) + self._value(kind, value)
        self.kv.append(self._string(key) + body)

    def tensor(self, name, t):
        """t: torch tensor, outermost dimension first (GGUF lists the innermost first)."""
        self.tensors.append((name, t.detach().contiguous().float().numpy().astype("<f4")))

    def write(self, path):
        table, offset = b"", 0
        for name, a in self.tensors:
            dims = a.shape[::-1]
            table += self._string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, 0, offset)
            offset += -(-a.nbytes // ALIGNMENT) * ALIGNMENT
        head = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.kv)) + b"".join(self.kv) + table
        with open(path + ".tmp", "wb") as f:
            f.write(head + b"\0" * (-len(head) % ALIGNMENT))
            for _, a in self.tensors:
                f.write(a.tobytes() + b"\0" * (-a.nbytes % ALIGNMENT))
        os.replace(path + ".tmp", path)


def write_gguf(model, tok, path):
    c, w = model.config, GgufWriter()
    total, active = model.parameter_counts()
    arch = "qwen3moe"
    w.add("general.architecture", STRING, arch)
    w.add("general.type", STRING, "model")
    w.add("general.name", STRING, f"Spillway Demo {total / 1e6:.0f}M-A{active / 1e6:.1f}M")
    w.add("general.size_label", STRING, f"{total / 1e6:.0f}M-A{active / 1e6:.1f}M")
    w.add("general.description", STRING, "Small mixture-of-experts model for demonstrating expert routing; not meant to be clever")
    w.add("general.license", STRING, "other")
    w.add("general.license.name", STRING, "see MODEL_CARD.md")
    w.add("general.languages", STRING, ["en", "de"])
    w.add("general.file_type", U32, 0)
    w.add("general.alignment", U32, ALIGNMENT)
    for key, kind, value in (
            ("block_count", U32, c.num_hidden_layers),
            ("context_length", U32, c.max_position_embeddings),
            ("embedding_length", U32, c.hidden_size),
            ("feed_forward_length", U32, c.moe_intermediate_size * c.num_experts_per_tok),
            ("attention.head_count", U32, c.num_attention_heads),
            ("attention.head_count_kv", U32, c.num_key_value_heads),
            ("attention.key_length", U32, c.head_dim),
            ("attention.value_length", U32, c.head_dim),
            ("attention.layer_norm_rms_epsilon", F32, c.rms_norm_eps),
            ("rope.freq_base", F32, c.rope_theta),
            ("rope.dimension_count", U32, c.head_dim),
            ("expert_count", U32, c.num_experts),
            ("expert_used_count", U32, c.num_experts_per_tok),
            ("expert_feed_forward_length", U32, c.moe_intermediate_size),
            ("vocab_size", U32, c.vocab_size)):
        w.add(f"{arch}.{key}", kind, value)
    w.add("tokenizer.ggml.model", STRING, "gpt2")
    w.add("tokenizer.ggml.pre", STRING, "qwen2")
    w.add("tokenizer.ggml.tokens", STRING, tok.tokens)
    w.add("tokenizer.ggml.token_type", I32, [CONTROL if i >= tok.eot else NORMAL for i in range(len(tok.tokens))])
    w.add("tokenizer.ggml.merges", STRING, [f"{a} {b}" for a, b in tok.merges])
    w.add("tokenizer.ggml.bos_token_id", U32, tok.eot)
    w.add("tokenizer.ggml.eos_token_id", U32, tok.im_end)
    w.add("tokenizer.ggml.padding_token_id", U32, tok.eot)
    w.add("tokenizer.ggml.add_bos_token", BOOL, False)
    w.add("tokenizer.chat_template", STRING, CHAT_TEMPLATE)

    w.tensor("token_embd.weight", model.embed_tokens.weight)
    w.tensor("output_norm.weight", model.norm.weight)
    for i, layer in enumerate(model.layers):
        a, m, p = layer.self_attn, layer.mlp, f"blk.{i}."
        gate, up = m.gate_up.chunk(2, -1)                      # [E, H, F] each
        for name, t in (("attn_norm", layer.input_layernorm.weight), ("attn_q", a.q_proj.weight),
                        ("attn_k", a.k_proj.weight), ("attn_v", a.v_proj.weight), ("attn_output", a.o_proj.weight),
                        ("attn_q_norm", a.q_norm.weight), ("attn_k_norm", a.k_norm.weight),
                        ("ffn_norm", layer.post_attention_layernorm.weight), ("ffn_gate_inp", m.gate.weight),
                        ("ffn_gate_exps", gate.transpose(1, 2)),       # [E, F, H] -> ne [H, F, E]
                        ("ffn_up_exps", up.transpose(1, 2)),           # [E, F, H] -> ne [H, F, E]
                        ("ffn_down_exps", m.down.transpose(1, 2))):    # [E, H, F] -> ne [F, H, E]
            w.tensor(p + name + ".weight", t)
    w.write(path)


def held_out_text(build, topic, size=24_000):
    """About `size` bytes from the validation split, at most 3000 characters per document,
    the sources taken in turn so that every package is represented."""
    by_source = {}
    for line in open(f"{build}/corpus/{topic}.valid.jsonl", encoding="utf-8"):
        d = json.loads(line)
        by_source.setdefault(d["src"].split("/")[0].split("-")[0], []).append(d["text"])
    text, queues = "", list(by_source.values())
    while any(queues) and len(text.encode()) < size:
        for q in queues:
            if q and len(text.encode()) < size:
                part = q.pop(0)[:3000]
                text += part[:part.rfind("\n") + 1] + "\n"
    return text


class Load:
    """Counts the expert assignments per layer."""

    def __init__(self, config):
        self.count = torch.zeros(config.num_hidden_layers, config.num_experts)

    def __call__(self, model):
        self.count += torch.stack([l.mlp.load for l in model.layers]).float()

    def share(self):
        return self.count / self.count.sum(-1, keepdim=True)


def entropy(p):
    return float(-(p * p.clamp_min(1e-12).log2()).sum())


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default="build")
    ap.add_argument("--out", default="out")
    ap.add_argument("--windows", type=int, default=32, help="validation windows per topic for the routing statistics")
    ap.add_argument("--samples", action="store_true", help="print sample generations")
    args = ap.parse_args()
    torch.set_num_threads(1)
    os.makedirs(args.out, exist_ok=True)
    state = torch.load(f"{args.build}/checkpoint.pt")
    model = Qwen3Moe(Config()).eval()
    model.load_state_dict(state["model"])
    tok = Tokenizer.load(f"{args.build}/tokenizer.json")
    write_gguf(model, tok, f"{args.out}/demo-f32.gguf")

    ids = tok.encode(PROMPT)[:32]
    assert len(ids) == 32
    with torch.no_grad():
        logits = model(torch.tensor([ids]))[0]
    logits.numpy().astype("<f4").tofile(f"{args.out}/check_logits.f32.tmp")
    os.replace(f"{args.out}/check_logits.f32.tmp", f"{args.out}/check_logits.f32")
    top = logits[-1].topk(10)
    total, active = model.parameter_counts()
    check = {
        "step": state["step"], "tokens_seen": state["tokens"], "training_seconds": round(state["spent"]),
        "parameters": total, "parameters_per_token": active,
        "prompt": tok.decode(ids), "prompt_ids": ids,
        "top_ids": top.indices.tolist(), "top_logits": top.values.tolist(),
        "greedy_ids": generate(model, ids, 16)[32:],
        "logits_file": "check_logits.f32", "logits_shape": list(logits.shape),
        "tokenizer": {t: tok.encode(t) for t in (
            "Hello world", "def f(x):\n    return x ** 2\n", "Der Fluss ist schön.", "It's 1234  spaces\n\n\tdone",
            "<|im_start|>user\nHi<|im_end|>\n")},
        "perplexity": {"method": "float32; heldout_<topic>.txt encoded without special tokens and without BOS; windows of 512 "
                                 "tokens, no overlap, remainder dropped; positions 1..511 of each window predicted from the "
                                 "same window; exp of the mean negative log likelihood over all predicted tokens"},
    }
    shares, full = {}, {}
    for topic in HELD_OUT_TOPICS:
        text = held_out_text(args.build, topic)
        with open(f"{args.out}/heldout_{topic}.txt", "w", encoding="utf-8", newline="") as f:
            f.write(text)
        ids = tok.encode(text, special=False)
        ppl, count = perplexity(model, ids)
        check["perplexity"][topic] = {"perplexity": ppl, "tokens": len(ids), "windows": len(ids) // 512, "predicted": count}
        load = Load(model.config)
        whole = np.fromfile(f"{args.build}/tokens/{topic}.valid.u16", dtype="<u2").astype(np.int64)[:args.windows * 512]
        ppl, count = perplexity(model, whole, on_batch=load)
        full[topic] = {"perplexity": ppl, "predicted": count}
        shares[topic] = load.share()
    chat = np.fromfile(f"{args.build}/tokens/chat.valid.u16", dtype="<u2").astype(np.int64)[:args.windows * 512]
    load = Load(model.config)
    ppl, count = perplexity(model, chat, on_batch=load)
    full["chat"], shares["chat"] = {"perplexity": ppl, "predicted": count}, load.share()
    check["validation_split"] = full
    mean = sum(shares.values()) / len(shares)
    routing = []
    for i in range(model.config.num_hidden_layers):
        row = {"layer": i, "entropy_bits": entropy(mean[i]), "busiest_share": float(mean[i].max()), "least_share": float(mean[i].min())}
        for t in shares:
            p = shares[t][i]
            row[t] = {"entropy_bits": entropy(p), "busiest_share": float(p.max()), "busiest_expert": int(p.argmax()),
                      "top8_share": float(p.topk(8).values.sum())}
        for a, b in (("prose", "code"), ("prose", "german"), ("code", "german"), ("prose", "chat")):
            row[f"distance_{a}_{b}"] = float((shares[a][i] - shares[b][i]).abs().sum() / 2)
        routing.append(row)
    check["routing"] = {"note": "share of the assignments per expert; uniform = 1/64 = 0.0156, 6 bits; distance = total variation; "
                                f"up to {args.windows} windows of 512 validation tokens per topic, topics weighted equally", "layers": routing}
    with open(f"{args.out}/check.json.tmp", "w") as f:
        json.dump(check, f, indent=1)
    os.replace(f"{args.out}/check.json.tmp", f"{args.out}/check.json")
    print(json.dumps({k: check[k] for k in ("step", "tokens_seen", "perplexity", "validation_split")}, indent=1))
    for r in routing:
        print(f"layer {r['layer']}: entropy {r['entropy_bits']:.2f} bits, busiest {r['busiest_share']:.3f}",
              *(f"{t} {r[t]['entropy_bits']:.2f}/{r[t]['busiest_share']:.3f}" for t in shares),
              f"prose-code {r['distance_prose_code']:.2f} prose-german {r['distance_prose_german']:.2f}")
    if args.samples:
        chat = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
        for p in (chat.format("Who are you?"), chat.format("What is a river?"), chat.format("Write a Python function that adds two numbers."),
                  chat.format("Translate \"the house\" to German."), chat.format("What is 7 + 5?"),
                  "def read_file(path):\n", "She was not surprised to see him, for", "Um die Datei zu öffnen,"):
            prompt = tok.encode(p)
            print("-----", repr(p))
            print(tok.decode(generate(model, prompt, 60, stop=(tok.im_end, tok.eot))[len(prompt):]))


if __name__ == "__main__":
    main()
