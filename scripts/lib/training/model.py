# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The character model of scripts/training, with every operator of the study."""

from __future__ import annotations

import json
import math
import pathlib
import pydoc_data.topics

import torch
from torch import nn
from torch.nn.functional import softplus

import attune
import attune.torch as at
from attune import masks

ROOT = pathlib.Path(__file__).resolve().parents[3]
LAYERS, WIDTH, HEADS = 2, 64, 4
HEAD = WIDTH // HEADS
CAUSAL = masks.causal()
THETA = 30.0  # of rotary positions: the slowest pair turns once in 123 positions, so a longer text has no new angle
OFF = -30.0  # softplus(-30) is 1e-13, and no key has a logit below -30: this part of Principled does nothing



def text_of(name):
    """A text as numbers, and its letters. "topics": pydoc_data.topics, which every Python has, but not every Python the same.
    "alice": an excerpt in this repository."""
    if name == "topics":
        text = "\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    else:
        text = " ".join(json.loads((ROOT / "examples/data/alice_tokens.json").read_text())).replace(" ##", "")
    letters = sorted(set(text))
    number = {x: n for n, x in enumerate(letters)}
    return torch.tensor([number[x] for x in text]), letters


def split(x):
    """(B, L, HEADS * D) as (B, HEADS, L, D)."""
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


class Attention(nn.Module):
    """Projections around an operator: softmax. Others say in extend() what they have in addition."""

    def __init__(self):
        super().__init__()
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def extend(self):
        """Makes the parameters that softmax does not have. All operators draw those of softmax first, from the same seed."""

    def named(self, x, q):
        """The arguments of the operator after q, k and v."""
        return {}

    preset = "softmax"

    def forward(self, x, turn, seen=None):
        q, k, v = (split(part) for part in self.project(x).chunk(3, dim=-1))
        named = self.named(x, q)
        q, k = turned(q, turn), turned(k, turn)
        if seen is not None:
            seen.append(weights(self.preset, q, k, named))
        out = getattr(at, self.preset)(q, k, v, mask=CAUSAL, **named)
        return self.out(out.transpose(1, 2).flatten(-2))


def turned(x, turn):
    """Rotary positions. turn: cosines and sines, (L, HEAD / 2) each."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = turn
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def weights(preset, q, k, named):
    """What the study reads of a call: the weights, (B, H, L, L), by the operator itself with the unit matrix as values; the
    ground weight, (B, H, L), or None; the scalars of hybrid, or None; the scores before any scale."""
    unit = torch.eye(q.shape[2]).expand(q.shape[0], q.shape[1], -1, -1)
    if named.get("v0") is not None:
        named = {**named, "v0": torch.zeros(q.shape[2])}
    call, grounded = getattr(at, preset), "ground_weight" in attune.op(preset).outputs
    found = call(q, k, unit, mask=CAUSAL, returns=("out", "ground_weight") if grounded else ("out",), **named)
    w, ground = found if grounded else (found, None)
    scalars = (named["sort_q"], named["sort_k"]) if "sort_q" in named else None
    return {"weights": w, "ground": ground, "scalars": scalars, "scores": q @ k.transpose(-1, -2)}


class OffByOne(Attention):
    preset = "off_by_one"


class Sink(Attention):
    preset = "sink"

    def extend(self):
        self.logit = nn.Parameter(torch.zeros(HEADS))

    def named(self, x, q):
        return {"logit": self.logit}


class Entmax15(Attention):
    preset = "entmax15"


class SSMax(Attention):
    """The factor starts where its mean over 1 .. 128 keys is 1."""

    preset = "ssmax"

    def extend(self):
        self.scale = nn.Parameter(torch.full((HEADS,), 128 / math.lgamma(129)))

    def named(self, x, q):
        return {"length_scale.scale": self.scale}


class AffineScaled(Attention):
    """alpha by linear clipping, and its moving average, which has no gradient."""

    preset = "affine_scaled"

    def extend(self):
        self.factor = nn.Linear(WIDTH, HEADS)
        self.register_buffer("average", torch.zeros(HEADS))

    def named(self, x, q):
        alpha = (self.factor(x) / 10 + 0.5).clamp(0, 1).transpose(1, 2)
        if self.training:
            self.average = 0.9 * self.average + 0.1 * alpha.detach().mean((0, 2))
        return {"alpha": alpha, "average": self.average}


class AffineScaledTotal(AffineScaled):
    """The bias is divided by the length of the text, not by the number of visible keys."""

    preset = "affine_scaled_total"


class Hybrid(Attention):
    """Scalar sort next to the dot product. tau starts at 0.1, as the paper's does."""

    preset = "hybrid"

    def extend(self):
        self.scalars, self.tau = nn.Linear(WIDTH, 2 * HEADS), nn.Parameter(torch.full((HEADS,), math.log(math.expm1(0.1))))

    def named(self, x, q):
        sort_q, sort_k = self.scalars(x).transpose(1, 2).chunk(2, dim=1)
        return {"sort_q": sort_q, "sort_k": sort_k, "tau": softplus(self.tau)}


class Principled(Attention):
    """parts: which of the three do something. level: of alpha, beta and gamma. starts: their first values. ground_value: learned.

    With these starts the first step is nearly softmax: softplus(-4) is 0.018, and no key has a logit below -1 yet.
    """

    preset = "principled"
    parts, level, ground_value = ("margin", "gate", "ground"), "head", True
    starts = {"alpha": -4.0, "beta": -4.0, "gamma": -1.0}
    of_part = {"alpha": "margin", "beta": "gate", "gamma": "ground"}

    def extend(self):
        if "gate" in self.parts:
            self.gate = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        for name, part in self.of_part.items():
            if part in self.parts:
                setattr(self, name, nn.Parameter(torch.full((1 if self.level == "layer" else HEADS,), self.starts[name])))
                if self.level == "query":
                    setattr(self, name + "_of_q", nn.Parameter(torch.zeros(HEADS, HEAD)))
        if "ground" in self.parts and self.ground_value:
            self.v0 = nn.Parameter(torch.zeros(HEADS, HEAD))

    def number(self, name, q):
        if self.of_part[name] not in self.parts:
            return OFF
        n = getattr(self, name).expand(HEADS)
        if self.level == "query":
            n = n[:, None] + torch.einsum("bhld,hd->bhl", q, getattr(self, name + "_of_q"))
        return n

    def named(self, x, q):
        if "gate" in self.parts:
            gate_q, gate_k = (split(part) for part in self.gate(x).chunk(2, dim=-1))
        else:
            gate_q = gate_k = x.new_zeros(*q.shape[:3], 1)
        given = {name: self.number(name, q) for name in self.of_part}
        return {**given, "gate_q": gate_q, "gate_k": gate_k, "v0": getattr(self, "v0", None)}


class Block(nn.Module):
    """Attention and two linear layers, each added to its input."""

    def __init__(self, attention, inner):
        super().__init__()
        self.before, self.attention, self.between = nn.LayerNorm(WIDTH), attention(), nn.LayerNorm(WIDTH)
        self.rest = nn.Sequential(nn.Linear(WIDTH, inner), nn.GELU(), nn.Linear(inner, WIDTH))

    def forward(self, x, turn, seen=None):
        x = x + self.attention(self.before(x), turn, seen)
        return x + self.rest(self.between(x))


class Model(nn.Module):
    """Characters to logits of the next character."""

    def __init__(self, seed, letter_count, attention, inner=4 * WIDTH):
        super().__init__()
        torch.manual_seed(seed)
        self.letters = nn.Embedding(letter_count, WIDTH)
        nn.init.normal_(self.letters.weight, std=0.1)
        self.blocks = nn.ModuleList(Block(attention, inner) for _ in range(LAYERS))
        self.last, self.logits = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letter_count)
        torch.manual_seed(seed + 2**20)
        for block in self.blocks:
            block.attention.extend()

    def turn(self, length):
        table = attune.rotary.angles(attune.rotary.plain(HEAD, THETA), length)
        return torch.as_tensor(table, dtype=torch.float32).chunk(2, dim=-1)

    def forward(self, x, seen=None):
        """seen: a list that gets, per layer, what weights() finds and the hidden state after the layer."""
        y, turn = self.letters(x), self.turn(x.shape[1])
        for block in self.blocks:
            y = block(y, turn, seen)
            if seen is not None:
                seen[-1]["hidden"] = y
        return self.logits(self.last(y))


def principled(**changed):
    return type("Principled", (Principled,), changed)


# Rows of the study: what is trained, and with how many seeds.
ROWS = {
    "softmax": (Attention, 5),
    "sink": (Sink, 5),
    "entmax15": (Entmax15, 5),
    "principled": (Principled, 5),
    "off_by_one": (OffByOne, 2),
    "ssmax": (SSMax, 2),
    "affine_scaled": (AffineScaled, 5),
    "affine_scaled_total": (AffineScaledTotal, 2),
    "hybrid": (Hybrid, 2),
    "margin": (principled(parts=("margin",)), 2),
    "gate": (principled(parts=("gate",)), 2),
    "ground": (principled(parts=("ground",)), 2),
    "margin + gate": (principled(parts=("margin", "gate")), 2),
    "margin + ground": (principled(parts=("margin", "ground")), 2),
    "gate + ground": (principled(parts=("gate", "ground")), 2),
    "v0 = 0": (principled(ground_value=False), 2),
    "per layer": (principled(level="layer"), 2),
    "per query": (principled(level="query"), 2),
    "gamma from -4": (principled(starts={**Principled.starts, "gamma": -4.0}), 2),
    "all from 0": (principled(starts=dict.fromkeys(Principled.starts, 0.0)), 2),
    "wider softmax": (Attention, 2),
}
# The gates of Principled have 2 WIDTH^2 parameters per layer, as have WIDTH more inner features.
INNER = {"wider softmax": 5 * WIDTH}


def model_of(row, seed, letter_count):
    return Model(seed, letter_count, ROWS[row][0], INNER.get(row, 4 * WIDTH))
