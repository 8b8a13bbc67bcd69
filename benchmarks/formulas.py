# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The operators as a research repository writes them: a few lines of plain PyTorch, which materialise the scores.

q, k, v (B, H, L, D). hidden: boolean (L, L), true where a query may not see a key, or None. visible: (L, 1), how many it sees.
Parameters of heads are (H,), of queries (B, H, L). Differentiated by autograd; also what torch.compile is given.
"""
import math

import torch
import torch.nn.functional as F


def scores(q, k):
    return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])


def hide(a, hidden, value=float("-inf")):
    return a if hidden is None else a.masked_fill(hidden, value)


def by_head(x):
    return x[:, None, None]


def softmax(q, k, v, hidden, visible):
    return torch.softmax(hide(scores(q, k), hidden), -1) @ v


# ---- other scores ----------------------------------------------------------------------------------------------------------------


def ssmax(q, k, v, hidden, visible, factor):
    """Scalable-Softmax: the scores times factor log K."""
    return torch.softmax(hide(by_head(factor) * torch.log(visible) * scores(q, k), hidden), -1) @ v


def alibi(q, k, v, hidden, visible, slope):
    place = torch.arange(q.shape[2], dtype=q.dtype)
    return torch.softmax(hide(scores(q, k) - by_head(slope) * (place[:, None] - place).abs(), hidden), -1) @ v


def softcap(q, k, v, hidden, visible, cap):
    return torch.softmax(hide(cap * torch.tanh(scores(q, k) / cap), hidden), -1) @ v


def fox(q, k, v, hidden, visible, sort_q, sort_k):
    """Forgetting attention: sums of log f, sort_q (B, H, Lq, 1) and sort_k (B, H, Lk, 1)."""
    return torch.softmax(hide(scores(q, k) + sort_q - sort_k.transpose(-1, -2), hidden), -1) @ v


def turned(x):
    """R(p) x: pairs (r, r + D/2) of the features of position p, turned by p 10000^(-2r / D)."""
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * 10000.0 ** (-torch.arange(half) / half)
    c, s, a, b = angle.cos(), angle.sin(), x[..., :half], x[..., half:]
    return torch.cat([a * c - b * s, a * s + b * c], -1)


def rope(q, k, v, hidden, visible):
    return softmax(turned(q), turned(k), v, hidden, visible)


def scalar_row(sort_q, q, sort_k, k, v, tau):
    """One row of -(sort_q - sort_k)^2 / tau against all keys; q and k are not used."""
    return torch.softmax(-((sort_q - sort_k) ** 2) / tau, -1) @ v


def hybrid_row(sort_q, q, sort_k, k, v, tau):
    """The same beside a dot product."""
    return torch.softmax(k @ q / math.sqrt(k.shape[-1]) - (sort_q - sort_k) ** 2 / tau, -1) @ v


def hybrid(q, k, v, hidden, visible, sort_q, sort_k, tau):
    """A dot product and -(sort_q - sort_k)^2 / tau, one number per position each."""
    return torch.softmax(hide(scores(q, k) - (sort_q - sort_k.transpose(-1, -2)) ** 2 / by_head(tau), hidden), -1) @ v


def stick_breaking(q, k, v, hidden, visible):
    """A key takes the share sigmoid(z) of what later visible keys left of 1."""
    z = scores(q, k)
    left = hide(F.logsigmoid(-z), hidden, 0.0)
    later = left.flip(-1).cumsum(-1).flip(-1) - left
    return torch.exp(hide(F.logsigmoid(z) + later, hidden)) @ v


# ---- other weights ---------------------------------------------------------------------------------------------------------------


def _with_constant_mass(a, level):
    """Weights e^a / (e^level + sum e^a)."""
    m = torch.maximum(a.amax(-1, keepdim=True), level)
    e = torch.exp(a - m)
    return e / (e.sum(-1, keepdim=True) + torch.exp(level - m))


def off_by_one(q, k, v, hidden, visible):
    return _with_constant_mass(hide(scores(q, k), hidden), torch.zeros((), dtype=q.dtype)) @ v


def sink(q, k, v, hidden, visible, logit):
    return _with_constant_mass(hide(scores(q, k), hidden), by_head(logit)) @ v


def differential(q, k, v, hidden, visible, minus_lambda):
    """softmax(q1 k1) v + minus_lambda softmax(q2 k2) v; q and k hold the two terms of a head side by side."""
    first, second = (torch.softmax(hide(scores(q[:, n::2], k[:, n::2]), hidden), -1) for n in (0, 1))
    return (first + by_head(minus_lambda) * second) @ v


def dropped(q, k, v, hidden, visible, rate, seed, factor):
    """Dropout with its factors given: 0, or 1 / (1 - rate)."""
    return (torch.softmax(hide(scores(q, k), hidden), -1) * factor) @ v


def dropout(q, k, v, hidden, visible, rate, seed, factor):
    """Dropout with the random numbers of PyTorch."""
    return F.dropout(torch.softmax(hide(scores(q, k), hidden), -1), rate) @ v


def affine(q, k, v, hidden, visible, alpha, average):
    """Affine-scaled attention: alpha p + (average - alpha) / K on the visible keys."""
    alpha = alpha[..., None]
    return hide(alpha * torch.softmax(hide(scores(q, k), hidden), -1) + (average - alpha) / visible, hidden, 0.0) @ v


def sigmoid(q, k, v, hidden, visible):
    return torch.sigmoid(hide(scores(q, k) - torch.log(visible), hidden)) @ v


def self_adjusted(q, k, v, hidden, visible):
    """(a - low) / (high - low) softmax(a), low and high the extreme logits, 0 among them."""
    a = scores(q, k)
    low, high = (hide(a, hidden, 0.0).amin(-1, keepdim=True).clamp(max=0), hide(a, hidden, 0.0).amax(-1, keepdim=True).clamp(min=0))
    return ((a - low) / (high - low) * torch.softmax(hide(a, hidden), -1)) @ v


def principled(q, k, v, hidden, visible, gate_q, gate_k, v0, alpha, beta, gamma):
    """Principled Attention: margin amplification, a softplus gate, a ground that takes the mass no key earned."""
    gamma = gamma[..., None]
    s = scores(q, k)
    gate = F.softplus(beta)[..., None] * F.softplus(-(gate_q @ gate_k.transpose(-1, -2)))
    a = hide(gamma + (1 + F.softplus(alpha)[..., None] * torch.log(visible)) * (s - gamma) - gate, hidden)
    m = torch.maximum(a.amax(-1, keepdim=True), gamma)
    e = torch.exp(a - m)
    w = e / hide(torch.maximum(e, torch.exp(gamma - m)), hidden, 0.0).sum(-1, keepdim=True)
    return w @ v + (1 - w.sum(-1, keepdim=True)) * v0[:, None, :]


# ---- random numbers --------------------------------------------------------------------------------------------------------------


def dropout_factors(b, h, length, rate, seed):
    """(b, h, length, length): what gate::dropout multiplies weights with. Philox4x32-10 (Salmon et al. 2011)."""
    low = 0xFFFFFFFF
    axis = lambda n, at: torch.arange(n).view([-1 if a == at else 1 for a in range(4)])
    words = [axis((length + 3) // 4, 3), axis(length, 2), axis(h, 1), axis(b, 0)]
    words = torch.broadcast_tensors(*words)
    keys = [seed & low, seed >> 32]
    product = lambda constant, x: ((x >> 16) * constant, (x & 0xFFFF) * constant)  # 64 bits without a sign would overflow
    for _ in range(10):
        high, less = [], []
        for constant, x in ((0xD2511F53, words[0]), (0xCD9E8D57, words[2])):
            upper, lower = product(constant, x)
            middle = upper + (lower >> 16)
            high.append(middle >> 16)
            less.append(((middle & 0xFFFF) << 16) | (lower & 0xFFFF))
        words = [high[1] ^ words[1] ^ keys[0], less[1], high[0] ^ words[3] ^ keys[1], less[0]]
        keys = [(keys[0] + 0x9E3779B9) & low, (keys[1] + 0xBB67AE85) & low]
    drawn = (torch.stack(words, -1).flatten(-2)[..., :length] >> 8) / 2.0**24
    return (drawn >= rate) / (1 - rate)


# ---- a candidate set -------------------------------------------------------------------------------------------------------------


class _Sparse(torch.autograd.Function):
    """Weights p of sparsemax or entmax; their Jacobian is diag(s) - s s^T / sum s with s = p^(2 - alpha) on the support."""

    @staticmethod
    def forward(ctx, a, alpha):
        p = {1.5: _entmax15, 2.0: _sparsemax}[alpha](a)
        ctx.save_for_backward(p)
        ctx.alpha = alpha
        return p

    @staticmethod
    def backward(ctx, by_p):
        (p,) = ctx.saved_tensors
        s = p.sqrt() if ctx.alpha == 1.5 else (p > 0).to(p.dtype)
        g = by_p * s
        return g - s * (g.sum(-1, keepdim=True) / s.sum(-1, keepdim=True)), None


def _at_support(sorted_logits, threshold):
    """The threshold of each row: the candidate that as many logits as it counts exceed."""
    support = (threshold < sorted_logits).sum(-1, keepdim=True)
    return threshold.gather(-1, support - 1)


def _sparsemax(a):
    """[a - tau]_+ by sorting. Martins & Astudillo 2016."""
    a = a - a.amax(-1, keepdim=True)
    z, _ = a.sort(-1, descending=True)
    count = torch.arange(1, a.shape[-1] + 1, dtype=a.dtype)
    return (a - _at_support(z, (z.cumsum(-1) - 1) / count)).clamp(min=0)


def _entmax15(a):
    """[a / 2 - tau]_+^2 by sorting. Peters et al. 2019."""
    a = (a - a.amax(-1, keepdim=True)) / 2
    z, _ = a.sort(-1, descending=True)
    count = torch.arange(1, a.shape[-1] + 1, dtype=a.dtype)
    mean, square = z.cumsum(-1) / count, (z * z).cumsum(-1) / count
    tau = mean - ((1 - count * (square - mean * mean)) / count).clamp(min=0).sqrt()
    return (a - _at_support(z, tau)).clamp(min=0) ** 2


def sparsemax(q, k, v, hidden, visible):
    return _Sparse.apply(hide(scores(q, k), hidden), 2.0) @ v


def entmax15(q, k, v, hidden, visible):
    return _Sparse.apply(hide(scores(q, k), hidden), 1.5) @ v


def entmax_bisected(q, k, v, hidden, visible, alpha):
    """[(alpha - 1) a - tau]_+^(1 / (alpha - 1)), the threshold by 40 bisections."""
    a = (alpha - 1) * hide(scores(q, k), hidden)
    high = a.amax(-1, keepdim=True)
    low = high - 1
    for _ in range(40):
        middle = (low + high) / 2
        inside = ((a - middle).clamp(min=0) ** (1 / (alpha - 1))).sum(-1, keepdim=True) >= 1
        low, high = torch.where(inside, middle, low), torch.where(inside, high, middle)
    p = (a - low).clamp(min=0) ** (1 / (alpha - 1))
    return p / p.sum(-1, keepdim=True) @ v


def top_k(q, k, v, hidden, visible, kept):
    a = hide(scores(q, k), hidden)
    least = a.topk(min(kept, a.shape[-1]), -1).values[..., -1:]
    return torch.softmax(a.masked_fill(a < least, float("-inf")), -1) @ v
