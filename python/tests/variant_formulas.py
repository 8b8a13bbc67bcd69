# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The variants of python/examples/variants.py as their papers write them, in NumPy and float64.

A function of a variant draws its problem: arguments with gradients, and the formula of the output. x is what a call
gives, seen the visible pairs (B or 1, H or 1, Lq, Lk).
"""

import numpy as np

import attune
from attune import masks
from variant_case import (
    B,
    D,
    DV,
    H,
    LK,
    LQ,
    Case,
    attended,
    differences,
    distances,
    dots,
    of_head,
    qkv,
    scaled,
    shares,
    softmax,
    sums,
    weighted,
)

# --- rotary positions -------------------------------------------------------------------------------------------------


def turned_dots(x, frequencies, i, j):
    """<R(i) q, R(j) k>: pairs (r, r + R) are complex numbers, of which R(p) turns the phase."""
    n = len(frequencies)
    q, k = (x[name][..., :n] + 1j * x[name][..., n : 2 * n] for name in "qk")
    turn = np.exp(1j * (i - j)[..., None] * frequencies)
    rest = np.einsum("bhid,bhjd->bhij", x["q"][..., 2 * n :], x["k"][..., 2 * n :])
    return np.einsum("bhir,bhjr,ijr->bhij", q, k.conj(), turn).real + rest


def rotary(r, frequencies, angles, factor=1.0):
    def score(x):
        return factor**2 * turned_dots(x, frequencies, case.i, case.j) / np.sqrt(D)

    case = Case(qkv(r), attended(score), {"angles": angles})
    return case


def theta(features, base=10000.0):
    return np.array([base ** (-2 * n / features) for n in range(features // 2)])


def ntk(r):
    return rotary(r, theta(D, 10000 * 4 ** (D / (D - 2))), attune.rotary.angles(attune.rotary.ntk(D, 4), LK))


def partial_rotary(r):
    return rotary(r, theta(2), attune.rotary.angles(attune.rotary.plain(2), LK))


def yarn(r):
    def pair(turns):
        return D / 2 * np.log(2048 / (turns * 2 * np.pi)) / np.log(10000)

    first, last = max(np.floor(pair(32)), 0), min(np.ceil(pair(1)), D - 1)
    g = np.clip((np.arange(D // 2) - first) / (last - first), 0, 1)
    m = 0.1 * np.log(4) + 1
    angles = attune.rotary.angles(attune.rotary.yarn(D, 4, 2048), LK, attune.rotary.yarn_factor(4))
    return rotary(r, (1 - g) * theta(D) + g * theta(D) / 4, angles, m)


def alibi_rotary(r):
    def score(x):
        turned = turned_dots(x, theta(D), case.i, case.j) / np.sqrt(D)
        return turned - of_head(x["slope"]) * abs(case.i - case.j)

    given = {**qkv(r), "slope": np.array([0.25, 0.0625])}
    case = Case(given, attended(score), {"angles": attune.rotary.angles(attune.rotary.plain(D), LK)})
    return case


def retention(r):
    def formula(x, seen):
        g = np.exp(-of_head(x["rate"]))
        decays = sum(np.where(n <= case.i, g ** (case.i - n), 0) for n in range(LK))
        s = turned_dots(x, theta(D), case.i, case.j) / np.sqrt(D) * g ** (case.i - case.j) / np.sqrt(decays)
        s = np.where(seen, s, 0)
        return weighted(s / np.maximum(abs(s.sum(-1, keepdims=True)), 1), x["v"])

    given = {**qkv(r), "rate": -np.log1p(-(2.0 ** -np.array([5, 6])))}
    case = Case(given, formula, {"angles": attune.rotary.angles(attune.rotary.plain(D), LK)})
    return case


# --- positions --------------------------------------------------------------------------------------------------------


def of_distance(r, term, **parameters):
    """Softmax attention with a term of |i - j| and of parameters."""

    def score(x):
        return scaled(x) + term(x, abs(case.i - case.j))

    case = Case({**qkv(r), **{name: np.array(p) for name, p in parameters.items()}}, attended(score))
    return case


def kerple_log(r):
    def term(x, n):
        return -of_head(x["r1"]) * np.log(1 + of_head(x["r2"]) * n)

    return of_distance(r, term, r1=[0.7, 1.3], r2=[0.5, 2.0])


def kerple_power(r):
    return of_distance(r, lambda x, n: -of_head(x["r1"]) * n ** of_head(x["r2"]), r1=[0.7, 0.3], r2=[0.5, 1.7])


def fire(r):
    def term(x, n):
        place = np.maximum(case.i, of_head(x["least"]))
        at = np.log(1 + of_head(x["g"]) * n) / np.log(1 + of_head(x["g"]) * place)
        unit = np.maximum(x["hidden"][0, 0, 0] * at[..., None] + x["hidden"][0, 0, 1], 0)
        return np.einsum("xhiju,xhu->hij", unit, x["out"][:, :, 0])[None]

    tables = {"hidden": r.normal(size=(1, 1, 2, 32)), "out": 0.3 * r.normal(size=(1, H, 1, 32))}
    case = of_distance(r, term, g=[0.8, 1.4], least=[3.3, 4.6], **tables)
    return case


def sandwich(r):
    def term(x, n):
        n = case.i - case.j
        angle = x["frequency"] * n.reshape(1, 1, 1, -1)
        s = np.sum(x["cosine"] * np.cos(angle) + x["sine"] * np.sin(angle), 2)
        return s.reshape(1, H, *n.shape)

    width = 16
    heads = H / (8 * np.arange(1, H + 1)).reshape(1, H, 1, 1) * np.ones((1, 1, width // 2, 1))
    tables = {"cosine": heads, "sine": np.zeros((1, 1, width // 2, 1)), "frequency": theta(width).reshape(1, 1, -1, 1)}
    case = of_distance(r, term, **tables)
    return case


def cope(r):
    def score(x):
        open = np.where(case.seen, 1 / (1 + np.exp(-dots(x))), 0)
        p = np.minimum(np.cumsum(open[..., ::-1], -1)[..., ::-1], x["position_scores"].shape[-1] - 1)
        below = np.floor(p)
        above = np.minimum(below + 1, x["position_scores"].shape[-1] - 1)
        low, high = (np.take_along_axis(x["position_scores"], n.astype(int), -1) for n in (below, above))
        return scaled(x) + (1 - p + below) * low + (p - below) * high

    def formula(x, seen):
        case.seen = seen
        return attended(score)(x, seen)

    case = Case(qkv(r, position_scores=(B, H, LQ, 4)), formula)
    return case


def stick_breaking(r):
    def formula(x, seen):
        part = np.where(seen, 1 / (1 + np.exp(-scaled(x))), 0)
        w = np.zeros_like(part)
        left = np.ones(part.shape[:3])
        for j in reversed(range(LK)):
            w[..., j] = part[..., j] * left
            left = left * (1 - part[..., j])
        return weighted(w, x["v"])

    return Case(qkv(r), formula, offset=1)


# --- scalars per position ---------------------------------------------------------------------------------------------


def fox(r):
    return Case({**qkv(r), **sums(r)}, attended(lambda x: scaled(x) + differences(x)), idle=("sort_q",))


cable = fox


def gated_power(r):
    def formula(x, seen):
        return weighted(shares(scaled(x) ** 2 * np.exp(differences(x)), seen), x["v"])

    return Case({**qkv(r), **sums(r)}, formula, idle=("sort_q",))


def ssd(r):
    def formula(x, seen):
        return weighted(np.where(seen, dots(x) * np.exp(differences(x)), 0), x["v"])

    return Case({**qkv(r), **sums(r)}, formula)


def edges(r):
    """A graph in which every node has the neighbor 0."""
    table = r.random((1, 1, LQ, LK)) < 0.6
    table[..., 0] = True
    return {"mask": masks.visible(table), "shown": table}


def gat(r):
    def score(x):
        e = differences(x)
        return np.where(e > 0, e, 0.2 * e)

    given = {name: r.normal(size=(B, H, n, 1)) for name, n in (("sort_q", LQ), ("sort_k", LK))}
    return Case({**given, "v": r.normal(size=(B, H, LK, DV))}, attended(score), **edges(r))


def gatv2(r):
    def score(x):
        e = x["q"][:, :, :, None] + x["k"][:, :, None]
        return np.einsum("bhijd,xhyd->bhij", np.where(e > 0, e, 0.2 * e), x["metric"])

    return Case(qkv(r, metric=(1, H, 1, D)), attended(score), **edges(r))


# --- products and distances -------------------------------------------------------------------------------------------


def cosine(r):
    given = qkv(r, bias=(1, H, LQ, LK))
    for name in "qk":
        given[name] /= np.linalg.norm(given[name], axis=-1, keepdims=True)
    given["tau"] = np.array([0.07, 0.3])
    return Case(given, attended(lambda x: dots(x) / of_head(x["tau"]) + x["bias"]))


def epanechnikov(r):
    def formula(x, seen):
        return weighted(shares(np.maximum(1 - distances(x) / of_head(x["tau"]), 0), seen), x["v"])

    return Case({**qkv(r), "tau": np.array([15.0, 40.0])}, formula)


def student_t(r):
    def formula(x, seen):
        nu = of_head(x["nu"])
        return weighted(shares((1 + distances(x) / nu) ** (-(nu + 1) / 2), seen), x["v"])

    return Case({**qkv(r), "nu": np.array([0.7, 5.0])}, formula)


def lorentz(r):
    def formula(x, seen):
        mass = np.exp(-of_head(x["beta"]) * np.arccosh(-dots(x)) + np.swapaxes(x["key_bias"], 2, 3))
        return weighted(shares(mass, seen), x["v"])

    given = qkv(r, key_bias=(B, H, LK, 1))
    for name, sign in (("q", -1), ("k", 1)):
        given[name][..., 0] = sign * np.sqrt(1 + np.sum(given[name][..., 1:] ** 2, -1))
    return Case({**given, "beta": np.array([0.7, 1.5])}, formula)


def mla(r):
    latent = 3
    cache = r.normal(size=(B, 1, LK, latent + 2))
    given = {"q": r.normal(size=(B, H, LQ, latent + 2)), "k": cache, "v": cache[..., :latent]}
    return Case({**given, "scale": np.array(8**-0.5)}, attended(lambda x: dots(x) * x["scale"]))


# --- normalizers ------------------------------------------------------------------------------------------------------


def of_masses(r, mass, total, score=scaled, **parameters):
    """Weights mass(a) / total(mass(a), a, number of visible keys)."""

    def formula(x, seen):
        a = score(x)
        m = np.where(seen, mass(a), 0)
        return weighted(m / total(x, m, np.where(seen, a, 0), seen.sum(-1, keepdims=True)), x["v"])

    return Case({**qkv(r), **parameters}, formula)


def polynomial(r):
    return of_masses(r, lambda a: a**4, lambda x, m, a, n: 1 + m.sum(-1, keepdims=True), dots)


def relu_squared(r):
    return of_masses(r, lambda a: np.maximum(a, 0) ** 2, lambda x, m, a, n: n)


def softpick(r):
    def total(x, m, a, n):
        return of_head(x["eps"]) + abs(np.exp(a) - 1).sum(-1, keepdims=True)

    return of_masses(r, lambda a: np.maximum(np.exp(a) - 1, 0), total, eps=np.array([1e-3, 0.2]))


# --- factors of weights and values, folds -----------------------------------------------------------------------------


def laser(r):
    def formula(x, seen):
        return weighted(softmax(scaled(x), seen), x["v"] * np.exp(x["value_gate"]))

    given = qkv(r, value_gate=(B, H, LK, DV))
    return Case({**given, "v": np.ones((B, H, LK, DV))}, formula)


def philox_words(counter, seed):
    """Philox4x32-10 (Salmon et al. 2011) as its authors write it."""
    c, (k0, k1), word = list(counter), (seed & 0xFFFFFFFF, seed >> 32), 2**32
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second // word ^ c[1] ^ k0, second % word, first // word ^ c[3] ^ k1, first % word]
        k0, k1 = (k0 + 0x9E3779B9) % word, (k1 + 0xBB67AE85) % word
    return c


def dropout(r):
    rate, seed = 0.3, 0x123456789ABCD

    def formula(x, seen):
        factor = np.zeros((B, H, LQ, LK))
        for b, h, i, j in np.ndindex(factor.shape):
            drawn = philox_words((j // 4, i + LK - LQ, h, b), seed)[j % 4] // 256 / 2**24
            factor[b, h, i, j] = 0 if drawn < rate else 1 / (1 - rate)
        return weighted(softmax(scaled(x), seen) * factor, x["v"])

    return Case(qkv(r), formula, {"rate": rate, "seed": seed})


def differential(r):
    def formula(x, seen):
        w = softmax(scaled(x), seen)
        return weighted(w[:, 0::2] + of_head(x["fold_1"]) * w[:, 1::2], x["v"])

    return Case({**qkv(r, heads=2 * H), "fold_1": np.array([-0.8, -0.3])}, formula)


def talking_heads(r):
    heads = 3

    def formula(x, seen):
        w = softmax(scaled(x), seen)
        mixed = sum(x[f"fold_{g}"].reshape(heads, 1, 1) * w[:, g] for g in range(heads))
        return weighted(mixed[:, None], x["v"])

    given = qkv(r, 1, heads)
    shared = {name: np.broadcast_to(given[name], (heads, *given[name].shape[1:])) for name in "qk"}
    rows = {f"fold_{g}": r.normal(size=(heads, 1, 1)) for g in range(heads)}
    return Case({**shared, "v": r.normal(size=(heads, 1, LK, DV)), **rows}, formula)


# --- masks and places -------------------------------------------------------------------------------------------------


def blocks(r, heads):
    """A mask of chosen blocks of two keys, of which the first always is one."""
    chosen = r.random((heads, LQ, (LK + 1) // 2)) < 0.5
    chosen[..., 0] = True
    seen = np.repeat(chosen, 2, -1)[None, ..., :LK]
    return {"mask": masks.block_sparse(chosen, 1, 2), "shown": seen}


def moba(r):
    return Case(qkv(r), attended(scaled), **blocks(r, H))


def nsa(r):
    return Case(qkv(r), attended(scaled), **blocks(r, 1))


def bias_of_places(x, rows, columns, reach):
    """B[y_i - y_j, x_i - x_j] for all pairs of places of a grid, its rows one after the other."""
    y, column = np.divmod(np.arange(rows * columns), columns)
    dy, dx = y[:, None] - y + reach, column[:, None] - column + reach
    inside = (abs(dy - reach) <= reach) & (abs(dx - reach) <= reach)
    side = 2 * reach + 1
    return x["values"][:, :, np.where(inside, dy * side + dx, 0), 0]


def swin(r):
    side = 3
    given = qkv(r, queries=side**2, keys=side**2, values=(1, H, (2 * side - 1) ** 2, 1))
    score = attended(lambda x: scaled(x) + bias_of_places(x, side, side, side - 1))
    return Case(given, score, {"side": side})


def natten(r):
    rows, columns, radius = 4, 5, 1
    y, x = np.divmod(np.arange(rows * columns), columns)
    middle_y, middle_x = np.clip(y, radius, rows - 1 - radius), np.clip(x, radius, columns - 1 - radius)
    near = (abs(y - middle_y[:, None]) <= radius) & (abs(x - middle_x[:, None]) <= radius)
    given = qkv(r, queries=rows * columns, keys=rows * columns, values=(1, H, (4 * radius + 1) ** 2, 1))
    score = attended(lambda x: scaled(x) + bias_of_places(x, rows, columns, 2 * radius))
    return Case(given, score, {"rows": rows, "columns": columns, "radius": radius}, shown=near)
