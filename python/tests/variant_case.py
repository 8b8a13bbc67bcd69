# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""What the formulas of variant_formulas.py have in common: a problem, scores and weights in NumPy."""

import numpy as np

B, H, LQ, LK, D, DV = 2, 2, 5, 7, 4, 3


class Case:
    """given: arguments with gradients. formula(x, seen): the output. more: other arguments. mask, shown: its own.

    idle: arguments whose gradient is 0. softmax ignores what it adds to all keys.
    """

    def __init__(self, given, formula, more=None, mask=None, shown=True, offset=None, idle=()):
        self.given, self.formula, self.more, self.mask, self.shown = given, formula, more or {}, mask, shown
        queries = (given["q"] if "q" in given else given["sort_q"]).shape[2]
        keys = given["v"].shape[2]
        offset_of_call = keys - queries if offset is None else offset
        self.offset, self.idle = offset, idle
        self.i, self.j = np.arange(queries)[:, None] + offset_of_call, np.arange(keys)[None, :]


def qkv(r, batch=B, heads=H, queries=LQ, keys=LK, width=D, of_values=H, **more):
    shapes = {"q": (batch, heads, queries, width), "k": (batch, heads, keys, width), "v": (batch, of_values, keys, DV)}
    return {name: r.normal(size=shape) for name, shape in {**shapes, **more}.items()}


def sums(r):
    """The same cumulative sums for queries and keys, as a model computes them."""
    of_keys = -np.cumsum(r.random((B, H, LK, 1)), 2)
    return {"sort_q": of_keys[:, :, LK - LQ :].copy(), "sort_k": of_keys}


def dots(x):
    q, k = x["q"], x["k"]
    return np.einsum("bhid,bhjd->bhij", q, np.broadcast_to(k, (k.shape[0], q.shape[1], *k.shape[2:])))


def scaled(x):
    return dots(x) / np.sqrt(x["q"].shape[-1])


def distances(x):
    return np.sum((x["q"][:, :, :, None] - x["k"][:, :, None]) ** 2, -1)


def differences(x):
    return x["sort_q"] - np.swapaxes(x["sort_k"], 2, 3)


def of_head(p):
    """A parameter (H) next to scores."""
    return np.reshape(p, (1, -1, 1, 1))


def softmax(s, seen):
    s = np.where(seen, s, -np.inf)
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True)


def shares(mass, seen):
    mass = np.where(seen, mass, 0)
    return mass / mass.sum(-1, keepdims=True)


def weighted(w, v):
    return np.einsum("bhij,bhjd->bhid", w, np.broadcast_to(v, (v.shape[0], w.shape[1], *v.shape[2:])))


def attended(score):
    """The formula of softmax attention with these scores."""
    return lambda x, seen: weighted(softmax(score(x), seen), x["v"])
