"""Qwen3-MoE language model (the computation of HF Qwen3MoeForCausalLM) for the CPU.

Under torch.cpu.amp.autocast the matrix products run in bfloat16, all else in float32.

Shapes: B sequences, S positions, T = B*S tokens, H hidden size, E experts,
K experts per token, F expert width, V vocabulary.
"""
import dataclasses
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclasses.dataclass
class Config:
    vocab_size: int = 4096
    hidden_size: int = 256
    num_hidden_layers: int = 6
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    num_experts: int = 64
    num_experts_per_tok: int = 4
    moe_intermediate_size: int = 64
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    max_position_embeddings: int = 2048


class RMSNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        x = x.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def rope_tables(config, length):
    """cos and sin, both [length, head_dim], NeoX layout (two halves)."""
    half = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim
    angle = torch.outer(torch.arange(length, dtype=torch.float64), config.rope_theta ** -half)
    angle = torch.cat([angle, angle], -1)
    return angle.cos().float(), angle.sin().float()


def rotate(x, cos, sin):
    """x [B, S, heads, head_dim]; cos, sin [S, 1, head_dim]."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class Attention(nn.Module):
    BLOCK = 128     # queries per block; keys right of the block are never touched

    def __init__(self, c):
        super().__init__()
        self.c = c
        q, kv = c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
        self.q_proj = nn.Linear(c.hidden_size, q, bias=False)
        self.k_proj = nn.Linear(c.hidden_size, kv, bias=False)
        self.v_proj = nn.Linear(c.hidden_size, kv, bias=False)
        self.o_proj = nn.Linear(q, c.hidden_size, bias=False)
        self.q_norm = RMSNorm(c.head_dim, c.rms_norm_eps)
        self.k_norm = RMSNorm(c.head_dim, c.rms_norm_eps)

    def forward(self, x, cos, sin):
        """x [B, S, H] -> [B, S, H], causal."""
        c, (B, S, _) = self.c, x.shape
        heads, kv = c.num_attention_heads, c.num_key_value_heads
        q = rotate(self.q_norm(self.q_proj(x).view(B, S, heads, c.head_dim)), cos, sin)
        k = rotate(self.k_norm(self.k_proj(x).view(B, S, kv, c.head_dim)), cos, sin)
        v = self.v_proj(x).view(B, S, kv, c.head_dim)
        group = heads // kv
        # query heads of one group sit below each other: [B*kv, group, S, d]
        q = q.view(B, S, kv, group, c.head_dim).permute(0, 2, 3, 1, 4).reshape(B * kv, group, S, c.head_dim)
        k = k.transpose(1, 2).reshape(B * kv, S, c.head_dim)
        v = v.transpose(1, 2).reshape(B * kv, S, c.head_dim)
        out, scale = [], 1 / math.sqrt(c.head_dim)
        for a in range(0, S, self.BLOCK):
            b = min(a + self.BLOCK, S)
            qb = (q[:, :, a:b] * scale).reshape(B * kv, group * (b - a), c.head_dim)
            score = torch.bmm(qb, k[:, :b].transpose(1, 2)).view(B * kv, group, b - a, b)
            mask = torch.full((b - a, b), float("-inf")).triu(a + 1)
            prob = (score.float() + mask).softmax(-1).view(B * kv, group * (b - a), b)
            out.append(torch.bmm(prob, v[:, :b]).view(B, kv, group, b - a, c.head_dim))
        y = torch.cat(out, 3).permute(0, 3, 1, 2, 4).reshape(B, S, heads * c.head_dim)
        return self.o_proj(y)


class Experts(torch.autograd.Function):
    """SwiGLU experts on tokens sorted by expert.

    x [N, H], gate_up [E, H, 2F], down [E, F, H], sizes: tokens of each expert (sum N) -> [N, H].
    Gradients by hand: six matrix products per expert, everything else on all N rows at once.
    """

    @staticmethod
    def ranges(sizes):
        end = 0
        for e, n in enumerate(sizes):
            end += n
            if n:
                yield e, slice(end - n, end)

    @staticmethod
    def forward(ctx, x, gate_up, down, sizes):
        gu, y = x.new_empty(x.shape[0], gate_up.shape[2]), torch.empty_like(x)
        for e, r in Experts.ranges(sizes):
            torch.mm(x[r], gate_up[e], out=gu[r])
        g, u = gu.chunk(2, -1)
        h = F.silu(g) * u
        for e, r in Experts.ranges(sizes):
            torch.mm(h[r], down[e], out=y[r])
        ctx.save_for_backward(x, gate_up, down, gu, h)
        ctx.sizes = sizes
        return y

    @staticmethod
    def backward(ctx, dy):
        x, gate_up, down, gu, h = ctx.saved_tensors
        dh, dx = torch.empty_like(h), torch.empty_like(x)
        d_gate_up, d_down = torch.zeros_like(gate_up), torch.zeros_like(down)
        dy = dy.contiguous()
        for e, r in Experts.ranges(ctx.sizes):
            torch.mm(dy[r], down[e].t(), out=dh[r])
            torch.mm(h[r].t(), dy[r], out=d_down[e])
        g, u = gu.chunk(2, -1)
        s = g.sigmoid()
        dgu = torch.cat([dh * u * s * (1 + g * (1 - s)), dh * g * s], -1)
        for e, r in Experts.ranges(ctx.sizes):
            torch.mm(dgu[r], gate_up[e].t(), out=dx[r])
            torch.mm(x[r].t(), dgu[r], out=d_gate_up[e])
        return dx, d_gate_up, d_down, None


class SparseMoe(nn.Module):
    """Router softmax over all experts, top-K, weights renormalised to sum 1."""

    PAD = 32

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.gate = nn.Linear(c.hidden_size, c.num_experts, bias=False)
        self.gate_up = nn.Parameter(torch.empty(c.num_experts, c.hidden_size, 2 * c.moe_intermediate_size))
        self.down = nn.Parameter(torch.empty(c.num_experts, c.moe_intermediate_size, c.hidden_size))
        self.aux_loss = None
        self.load = None        # [E] assignments of the last forward
        self.choice = None      # [T, K] experts of the last forward

    def forward(self, x):
        """x [T, H] -> [T, H].  Tokens are sorted by expert, one matmul pair per expert."""
        c = self.c
        with torch.cpu.amp.autocast(enabled=False):                       # the router stays float32
            prob = self.gate(x).softmax(-1)                               # [T, E]
        weight, expert = prob.topk(c.num_experts_per_tok, -1)             # [T, K]
        weight = weight / weight.sum(-1, keepdim=True)
        flat = expert.reshape(-1)                                         # [T*K]
        order = flat.argsort()
        load = torch.bincount(flat, minlength=c.num_experts)
        # Load balancing loss of the Switch Transformer (Fedus et al. 2021, eq. 4-6) in the
        # top-K form of Mixtral: E * sum_i f_i P_i, f_i = share of the assignments that went
        # to expert i, P_i = mean router probability of expert i.  Equals 1 when balanced.
        self.aux_loss = c.num_experts * (load / flat.numel() * prob.mean(0)).sum()
        self.load, self.choice = load.detach(), expert.detach()
        # Every expert gets its tokens in a slot range padded to a multiple of PAD (weight 0),
        # so that few matmul shapes occur and their kernels are generated only once.
        padded = (load + self.PAD - 1) // self.PAD * self.PAD
        shift = (padded.cumsum(0) - padded) - (load.cumsum(0) - load)     # [E]
        slot = torch.arange(flat.numel()) + shift.repeat_interleave(load)
        token = torch.zeros(int(padded.sum()), dtype=torch.long)
        token[slot] = order // c.num_experts_per_tok
        scale = torch.zeros(len(token)).index_put((slot,), weight.reshape(-1).index_select(0, order))
        dtype = torch.bfloat16 if torch.is_autocast_cpu_enabled() else x.dtype
        y = Experts.apply(x.to(dtype).index_select(0, token), self.gate_up.to(dtype), self.down.to(dtype), padded.tolist())
        y = y * scale[:, None]
        return torch.zeros_like(x).index_add(0, token, y)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.mlp = SparseMoe(c)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        h = self.post_attention_layernorm(x)
        return x + self.mlp(h.reshape(-1, h.shape[-1])).view_as(x)


class Qwen3Moe(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = c = config
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.num_hidden_layers))
        self.norm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        cos, sin = rope_tables(c, c.max_position_embeddings)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                deep = name.endswith(("o_proj.weight", "down"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * c.num_hidden_layers) if deep else 0.02)

    def forward(self, ids):
        """ids [B, S] -> logits [B, S, V] (output matrix = embedding, tied)."""
        S = ids.shape[1]
        cos, sin = self.cos[:S, None], self.sin[:S, None]
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return F.linear(self.norm(x), self.embed_tokens.weight)

    def aux_loss(self):
        """Sum over the layers; num_hidden_layers when all are balanced."""
        return sum(layer.mlp.aux_loss for layer in self.layers)

    def parameter_counts(self):
        """(all, used per token): per token K of E experts, and the tied embedding once as output."""
        c = self.config
        total = sum(p.numel() for p in self.parameters())
        experts = sum(l.mlp.gate_up.numel() + l.mlp.down.numel() for l in self.layers)
        return total, total - experts + experts * c.num_experts_per_tok // c.num_experts


@torch.no_grad()
def generate(model, ids, count, stop=(), temperature=0.0, generator=None):
    """Greedy (temperature 0) or sampled continuation; recomputes the prefix, for short texts."""
    ids = list(ids)
    for _ in range(count):
        logits = model(torch.tensor([ids[-model.config.max_position_embeddings:]]))[0, -1]
        if temperature > 0:
            nxt = int(torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator))
        else:
            nxt = int(logits.argmax())
        if nxt in stop:
            break
        ids.append(nxt)
    return ids


@torch.no_grad()
def perplexity(model, ids, window=512, batch=8, on_batch=None):
    """Windows of `window` tokens, no overlap, remainder dropped; in each window positions
    1..window-1 are predicted; exp of the mean negative log likelihood over all of them."""
    ids = torch.as_tensor(ids, dtype=torch.long)
    ids = ids[: len(ids) // window * window].view(-1, window)
    total, count = 0.0, 0
    for part in ids.split(batch):
        logits = model(part)
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]).double(), part[:, 1:].reshape(-1), reduction="sum")
        total += float(loss)
        count += part[:, 1:].numel()
        if on_batch:
            on_batch(model)
    return math.exp(total / count), count
