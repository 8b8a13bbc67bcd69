# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Attention written out in NumPy, in float64: a second computation of what the package returns."""

import numpy as np


def heads_of(x, heads):
    """Key heads repeated for the query heads that read them."""
    return np.repeat(x, heads // x.shape[1], axis=1)


def softplus(x):
    return np.logaddexp(0, x)


def softmax(q, k, v, seen, *, bias=0.0, sink=None, scale=None):
    """Outputs and log-sum-exps, (B, H, Lq, Dv) and (B, H, Lq); rows that see nothing are 0 and -inf."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    heads = q.shape[1]
    k, v = heads_of(k, heads), heads_of(v, heads)
    a = np.einsum("bhid,bhjd->bhij", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale) + bias
    return weighted(np.where(seen, a, -np.inf), v, sink)


def weighted(a, v, sink=None):
    """The same from logits; sink: (H), a logit without a value."""
    top = a.max(-1, initial=-np.inf)
    if sink is not None:
        top = np.maximum(top, np.reshape(sink, (1, -1, 1)))
    top = np.where(np.isfinite(top), top, 0)
    w = np.exp(a - top[..., None])
    total = w.sum(-1)
    if sink is not None:
        total = total + np.exp(np.reshape(sink, (1, -1, 1)) - top)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.where(total[..., None] > 0, np.einsum("bhij,bhjd->bhid", w, v) / total[..., None], 0)
        return out, np.log(total) + top


def visibility(rng, batch, heads, queries, keys):
    """A random mask of the package, and the pairs that it shows: (B, 1 or H, Lq, Lk), bool."""
    from attune import masks

    i, j = np.arange(queries)[:, None] + keys - queries, np.arange(keys)[None, :]

    def leaf():
        kind = rng.integers(8)
        if kind == 0:
            return masks.causal(), np.broadcast_to(j <= i, (1, 1, queries, keys))
        if kind == 1:
            left, right = rng.integers(0, 5, 2)
            return masks.window(int(left), int(right)), ((j >= i - left) & (j <= i + right))[None, None]
        if kind == 2:
            lengths = rng.integers(0, keys + 1, batch)
            return masks.padding(lengths), np.broadcast_to(j < lengths[:, None, None, None], (batch, 1, queries, keys))
        if kind == 3:
            ids = rng.integers(0, 3, (batch, max(queries, keys)))
            a, b = ids[:, ids.shape[1] - queries :], ids[:, ids.shape[1] - keys :]
            return masks.documents(a, b), (a[:, :, None] == b[:, None, :])[:, None]
        if kind == 4:
            table = rng.random((1, heads, queries, keys)) < 0.7
            return masks.visible(table), table
        if kind == 5:
            sinks, width = int(rng.integers(0, 3)), int(rng.integers(1, 5))
            return masks.sink_window(sinks, width), (((j < sinks) | (j > i - width)) & (j <= i))[None, None]
        if kind == 6:
            return masks.causal(align="start"), (j <= i - keys + queries)[None, None]
        n = int(rng.integers(0, keys + 1))
        return masks.prefix(n), ((j < n) | (j <= i))[None, None]

    mask, seen = leaf()
    for _ in range(rng.integers(0, 3)):
        other, also = leaf()
        mask, seen = (mask & other, seen & also) if rng.random() < 0.5 else (mask | other, seen | also)
    return mask, np.broadcast_to(seen, (batch, seen.shape[1], queries, keys))
