# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""What scripts/training measures in a trained model."""

from __future__ import annotations

import math

import torch
from torch.nn.functional import cross_entropy

LENGTH = 128  # trained
LENGTHS = LENGTH, 2 * LENGTH, 4 * LENGTH
LAST = 64  # queries, and characters, that the lengths share


def rounded(x, digits=4):
    """A number, or lists and dictionaries of numbers, with this many digits."""
    if isinstance(x, torch.Tensor):
        x = x.tolist()
    if isinstance(x, dict):
        return {key: rounded(y, digits) for key, y in x.items()}
    if isinstance(x, (list, tuple)):
        return [rounded(y, digits) for y in x]
    return x if isinstance(x, int) or not math.isfinite(x) else float(f"{x:.{digits}g}")


def windows(text, length):
    """Texts that follow each other, (n, length + 1). The last characters are left out."""
    return text[: (len(text) - 1) // length * length + 1].unfold(0, length + 1, length)


def each_loss(model, x, batch=16):
    """The loss of every character of these texts, (n, length)."""
    found = []
    for part in x.split(batch):
        logits = model(part[:, :-1])
        found.append(cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten(), reduction="none").view(len(part), -1))
    return torch.cat(found)


def losses(model, text):
    """By length: the mean over the whole text, and the mean over the same characters, which end the longest texts."""
    found = {}
    for length in LENGTHS:
        whole = each_loss(model, windows(text, length)).mean()
        same = each_loss(model, windows(text, LENGTHS[-1])[:, -length - 1 :])[:, -LAST:].mean()
        found[str(length)] = {"all": whole.item(), "same": same.item()}
    return found


def seen_in(model, x):
    """Per layer, what model.weights() finds in a call with these texts, and the hidden states."""
    seen = []
    model(x[:, :-1], seen)
    return seen


def positive(w):
    """Weights without the negative ones, as shares of their sum."""
    w = w.clamp_min(0)
    return w / w.sum(-1, keepdim=True).clamp_min(1e-30)


def entropy(w):
    p = positive(w)
    return -(p * p.clamp_min(1e-30).log()).sum(-1)


def of_heads(x):
    """The mean over texts and queries, for each head."""
    return x.mean((0, 2))


def of_rows(seen, at_separator):
    """Per layer and head, and per layer: numbers of the rows of a call at the trained length. The first query is left out.

    at_separator: (n, length), which keys are spaces or ends of lines.
    """
    at_separator = at_separator.float()[:, None, None]
    found = []
    for layer in seen:
        w = layer["weights"]
        visible = torch.ones(w.shape[-2:]).tril().bool()
        row = {
            "first": of_heads(w[:, :, 1:, 0]),
            "separators": of_heads((w * at_separator).sum(-1)[:, :, 1:]),
            "entropy": of_heads(entropy(w)[:, :, 1:]),
            "zero": (w[:, :, visible] == 0).float().mean((0, 2)),
            "negative": (w[:, :, visible] < 0).float().mean((0, 2)),
            "mass": of_heads(w.sum(-1)[:, :, 1:]),
        }
        if layer["ground"] is not None:
            row["ground"] = of_heads(layer["ground"][:, :, 1:])
        if layer["scalars"] is not None:
            row["nearest"] = {k: captured(layer, k) for k in (8, 16, 32, 64)}
        row["mass deviation"] = w.sum(-1).mean(1)[:, 1:].std()
        h = layer["hidden"].abs()
        row["hidden"] = {
            "max": h.max(), "median": h.median(), "kurtosis": (h**4).mean() / (h * h).mean() ** 2,
            "first norm": h[:, 0].norm(dim=-1).mean() / h[:, 1:].norm(dim=-1).mean(),
        }
        found.append(row)
    return found


def captured(layer, k):
    """The share of the weight on the k keys that are nearest on the line, of the last queries."""
    q, keys = layer["scalars"]
    far = (q[..., None] - keys[..., None, :]).abs()
    far = far.masked_fill(torch.ones(far.shape[-2:]).triu(1).bool(), math.inf)[:, :, -LAST:]
    nearest = far.topk(k, dim=-1, largest=False).indices
    return of_heads(layer["weights"][:, :, -LAST:].gather(-1, nearest).sum(-1))


def of_lengths(model, texts):
    """By length: entropy as a share of log K, and the largest weight, of the last queries; means over layers and heads."""
    found = {}
    for length in LENGTHS:
        shares, highest, mass = [], [], []
        for part in texts[:, -length - 1 :].split(4):
            for layer in seen_in(model, part):
                w = layer["weights"][:, :, -LAST:]
                keys = torch.arange(length - LAST + 1, length + 1).log()
                shares.append((entropy(w) / keys).mean())
                highest.append(w.amax(-1).mean())
                mass.append(w.sum(-1).mean())
        means = (torch.stack(x).mean() for x in (shares, highest, mass))
        found[str(length)] = dict(zip(("entropy share", "highest weight", "mass"), means))
    return found


def learned(model):
    """The parameters that an operator has, for each layer: numbers, or the lengths of vectors."""
    found = {}
    for block in model.blocks:
        for name, p in [*block.attention.named_parameters(), *block.attention.named_buffers()]:
            if "." not in name:
                found.setdefault(name, []).append(p if p.dim() == 1 else p.norm(dim=-1))
    return found


def gradient_norms(norms):
    """Of the first 500 steps, as the paper of affine-scaled attention counts: spikes are norms above median + k MAD."""
    g = torch.tensor(norms[:500], dtype=torch.float64)
    middle = g.quantile(0.5)
    off = (g - middle).abs().quantile(0.5)
    spikes = {f"spikes {k}": int((g > middle + k * off).sum()) for k in (6, 9)}
    return {"mean": g.mean().item(), "deviation": g.std().item(), **spikes}


def measured(model, text, letters):
    """All numbers of a trained model. text: what it has not been trained on."""
    model.eval()
    with torch.no_grad():
        texts = windows(text, LENGTHS[-1])
        texts = texts[:: max(1, len(texts) // 16)][:16]
        short = texts[:, -LENGTH - 1 :]
        is_separator = torch.tensor([x in " \n" for x in letters])
        return {
            "validation": rounded(losses(model, text), 5),
            "layers": rounded(of_rows(seen_in(model, short), is_separator[short[:, :-1]])),
            "lengths": rounded(of_lengths(model, texts)),
            "learned": rounded(learned(model)),
        }


def size_of_scores(model, texts):
    """The mean of |q k|, which training changes."""
    training = model.training
    model.eval()
    with torch.no_grad():
        visible = torch.ones(LENGTH, LENGTH).tril().bool()
        found = [layer["scores"][:, :, visible].abs().mean() for layer in seen_in(model, texts)]
    model.train(training)
    return torch.stack(found).mean().item()
