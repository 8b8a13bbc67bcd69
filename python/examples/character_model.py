# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""A model of characters, trained on the CPU with operators that PyTorch does not have.

    python python/examples/character_model.py --steps 300 --plot losses.svg

Three layers of width 128, four heads, 256 characters; the text is the documentation in pydoc_data.topics, which every
Python has. The first --compare steps of each operator run twice, with attune and with the same formula in PyTorch's own
functions ("eager"), one after the other. The losses of both must agree. softmax also runs with PyTorch's
scaled_dot_product_attention.
"""

from __future__ import annotations

import argparse
import json
import math
import pydoc_data.topics
import statistics
import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention, softplus

import attune
import attune.torch as at
from attune import masks

WIDTH, HEADS, LAYERS = 128, 4, 3
CAUSAL = masks.causal()


def text_as_numbers():
    """The text, and how many characters differ."""
    text = "\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    letters = {x: n for n, x in enumerate(sorted(set(text)))}
    return torch.tensor([letters[x] for x in text]), len(letters)


def scores(q, k):
    """(B, H, L, L)."""
    return q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5


def hidden(a):
    """Logits without the keys after the query."""
    return a.masked_fill(torch.ones(a.shape[-2:], dtype=torch.bool).triu(1), -math.inf)


def split(x, heads):
    """(B, L, heads * D) as (B, heads, L, D)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class Layer(nn.Module):
    """Projections around an operator. A subclass has the operator twice: `fused` and `eager`."""

    query_heads = HEADS  # more of them for differential attention

    def __init__(self, inputs=3):
        super().__init__()
        width = WIDTH // HEADS
        self.heads = [self.query_heads, self.query_heads, HEADS, *[HEADS] * (inputs - 3)]
        self.project = nn.Linear(WIDTH, width * sum(self.heads))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, way):
        width = WIDTH // HEADS
        parts = self.project(x).split([width * n for n in self.heads], dim=-1)
        out = getattr(self, way)(x, *(split(part, n) for part, n in zip(parts, self.heads)))
        return self.out(out.transpose(1, 2).flatten(-2))


class Softmax(Layer):
    """softmax: PyTorch has it, too."""

    def fused(self, _, q, k, v):
        return at.softmax(q, k, v, mask=CAUSAL)

    def eager(self, _, q, k, v):
        return hidden(scores(q, k)).softmax(-1) @ v

    def sdpa(self, _, q, k, v):
        return scaled_dot_product_attention(q, k, v, is_causal=True)


class Principled(Layer):
    """Principled attention: learned amplification by log K, a gate by its own queries and keys, a ground value."""

    def __init__(self):
        super().__init__(inputs=5)
        self.alpha, self.beta, self.gamma = (nn.Parameter(torch.full((HEADS,), -4.0)) for _ in range(3))
        self.v0 = nn.Parameter(torch.zeros(HEADS, WIDTH // HEADS))

    def fused(self, _, q, k, v, gq, gk):
        numbers = {"alpha": self.alpha, "beta": self.beta, "gamma": self.gamma, "v0": self.v0}
        return at.principled(q, k, v, gate_q=gq, gate_k=gk, mask=CAUSAL, **numbers)

    def eager(self, _, q, k, v, gq, gk):
        alpha, beta, gamma = (x[:, None, None] for x in (self.alpha, self.beta, self.gamma))
        s, keys = scores(q, k), torch.arange(1, q.shape[2] + 1)[:, None]
        a = s + softplus(alpha) * keys.log() * (s - gamma) - softplus(beta) * softplus(-gq @ gk.transpose(-1, -2))
        a = hidden(a)
        ground = hidden(torch.maximum(a, gamma))
        top = ground.amax(-1, keepdim=True)
        w = (a - top).exp() / (ground - top).exp().sum(-1, keepdim=True)
        return w @ v + (1 - w.sum(-1, keepdim=True)) * self.v0[:, None]


class AffineScaled(Layer):
    """Affine-scaled attention: a factor of the weights from the query, the rest shared by all visible keys."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Linear(WIDTH, HEADS)

    def alpha(self, x):
        return 2 * self.factor(x).sigmoid().transpose(1, 2)  # (B, H, L)

    def fused(self, x, q, k, v):
        return at.affine_scaled(q, k, v, alpha=self.alpha(x), average=1.0, mask=CAUSAL)

    def eager(self, x, q, k, v):
        p, alpha = hidden(scores(q, k)).softmax(-1), self.alpha(x)[..., None]
        keys = torch.arange(1, q.shape[2] + 1)[:, None]
        return (alpha * p + ((1 - alpha) / keys).expand(p.shape).tril()) @ v


class Entmax(Layer):
    """1.5-entmax: many weights are exactly 0."""

    def fused(self, _, q, k, v):
        return at.entmax15(q, k, v, mask=CAUSAL)

    def eager(self, _, q, k, v):
        a = scores(q, k) / 2
        a = a.masked_fill(torch.ones(a.shape[-2:], dtype=torch.bool).triu(1), -1e4)
        a = a - a.amax(-1, keepdim=True).detach()
        down, n = a.sort(-1, descending=True).values, torch.arange(1.0, a.shape[-1] + 1)
        mean = down.cumsum(-1) / n
        spread = (down * down).cumsum(-1) - n * mean * mean
        levels = mean - ((1 - spread) / n).clamp_min(1e-12).sqrt()
        level = levels.gather(-1, (levels <= down).sum(-1, keepdim=True) - 1)
        return (a - level).clamp_min(0).square() @ v


class Differential(Layer):
    """Differential attention: softmax of one half of the heads minus a learned share of the other half's."""

    query_heads = 2 * HEADS
    op = None  # compiled when it is first used

    def __init__(self):
        super().__init__()
        self.minus_lambda = nn.Parameter(torch.full((HEADS,), -0.5))

    def fused(self, _, q, k, v):
        if Differential.op is None:
            Differential.op = attune.compile_operator("fold(softmax_attention(m), {1.0, open})", dtypes="float32")
        return at.attend(Differential.op, q, k, v, mask=CAUSAL, fold_1=self.minus_lambda)

    def eager(self, _, q, k, v):
        w = hidden(scores(q, k)).softmax(-1).unflatten(1, (HEADS, 2))
        return (w[:, :, 0] + self.minus_lambda[:, None, None] * w[:, :, 1]) @ v


OPERATORS = {
    "softmax": Softmax,
    "principled": Principled,
    "affine_scaled": AffineScaled,
    "entmax15": Entmax,
    "differential": Differential,
}


class Block(nn.Module):
    """Attention and two linear layers, each added to its input."""

    def __init__(self, attention):
        super().__init__()
        self.before, self.attention, self.between = nn.LayerNorm(WIDTH), attention(), nn.LayerNorm(WIDTH)
        self.rest = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, way):
        x = x + self.attention(self.before(x), way)
        return x + self.rest(self.between(x))


class Model(nn.Module):
    """Characters to logits of the next character."""

    def __init__(self, attention, letters, length):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(length, WIDTH)
        self.blocks = nn.ModuleList(Block(attention) for _ in range(LAYERS))
        self.last, self.logits = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters)

    def forward(self, x, way):
        y = self.letters(x) + self.places.weight
        for block in self.blocks:
            y = block(y, way)
        return self.logits(self.last(y))


class Run:
    """A model in training. way: "fused", "eager" or "sdpa"."""

    def __init__(self, name, way, letters, length):
        torch.manual_seed(0)
        self.name, self.way, self.model = name, way, Model(OPERATORS[name], letters, length)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3)
        self.losses, self.times = [], []

    def step(self, x, y):
        start = time.perf_counter()
        loss = cross_entropy(self.model(x, self.way).flatten(0, 1), y.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.times.append(time.perf_counter() - start)
        self.losses.append(loss.item())


def train(names, steps, compare, length, batch, report=print):
    """Runs of all operators. All of them see the same batches, one after the other in the same minute."""
    text, letters = text_as_numbers()
    runs = [Run(name, "fused", letters, length) for name in names]
    others = [Run(name, "eager", letters, length) for name in names]
    others += [Run("softmax", "sdpa", letters, length)] if "softmax" in names else []
    random = torch.Generator().manual_seed(1)
    for step in range(steps):
        starts = torch.randint(len(text) - length, (batch,), generator=random)
        x, y = (torch.stack([text[a + b : a + b + length] for a in starts]) for b in (0, 1))
        for run in [*runs, *(others if step < compare else ())]:
            run.step(x, y)
        if step % 20 == 19:
            report(f"step {step + 1}: " + ", ".join(f"{run.name} {run.losses[-1]:.3f}" for run in runs))
    return runs, others


def plot(runs, path):
    """The losses, smoothed over 10 steps."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for run in runs:
        smooth = [statistics.mean(run.losses[max(0, n - 9) : n + 1]) for n in range(len(run.losses))]
        axes.plot(range(1, len(smooth) + 1), smooth, label=run.name, linewidth=1.2)
    axes.set(xlabel="step", ylabel="loss per character, nats", ylim=(1.5, 3.5))
    axes.legend()
    figure.savefig(path, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--steps", type=int, default=300)
    arguments.add_argument("--compare", type=int, default=40, help="steps that also run with PyTorch's functions")
    arguments.add_argument("--operators", nargs="+", default=list(OPERATORS), choices=list(OPERATORS))
    arguments.add_argument("--length", type=int, default=256)
    arguments.add_argument("--batch", type=int, default=8)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--plot", help="write the losses to this file (needs matplotlib)")
    arguments.add_argument("--json", help="write losses and times to this file")
    given = arguments.parse_args()
    torch.set_num_threads(given.threads)

    runs, others = train(given.operators, given.steps, given.compare, given.length, given.batch)
    print(f"{'operator':<14} {'way':<6} {'ms per step':>11} {'loss':>7}   difference of losses, fused")
    for run in [*runs, *others]:
        fused = next(x for x in runs if x.name == run.name)
        apart = max((abs(a - b) for a, b in zip(run.losses, fused.losses)), default=0.0)
        times = run.times[1 : given.compare] or run.times
        print(f"{run.name:<14} {run.way:<6} {1e3 * statistics.median(times):>11.0f} {run.losses[-1]:>7.3f}   {apart:.1e}")
    if given.json:
        with open(given.json, "w") as f:
            json.dump([{"name": r.name, "way": r.way, "losses": r.losses, "times": r.times} for r in [*runs, *others]], f)
    if given.plot:
        plot(runs, given.plot)


if __name__ == "__main__":
    main()
