#!/usr/bin/env python3
"""Numerical checks of the claims that attention states merge associatively, and of the pruning theorem for sparsemax/entmax."""
import numpy as np, math, scipy.special as sp
rng = np.random.default_rng(3)
def split(n): c = np.sort(rng.integers(0, n + 1, 2)); return [slice(0, c[0]), slice(c[0], c[1]), slice(c[1], n)]
worst = {}
def rec(k, a, b): worst[k] = max(worst.get(k, 0), float(np.max(np.abs(np.asarray(a) - np.asarray(b))) / max(1, np.max(np.abs(b)))))
def entmax(s, al):
    x = (al - 1) * s; lo, hi = x.max() - 1, x.max() - len(s) ** (1 - al)
    for _ in range(200):
        m = (lo + hi) / 2; lo, hi = (m, hi) if np.sum(np.maximum(x - m, 0) ** (1 / (al - 1))) > 1 else (lo, m)
    return np.maximum(x - lo, 0) ** (1 / (al - 1)), lo
def halley(s, al):
    x = (al - 1) * s; lo, hi = x.max() - 1, x.max() - len(s) ** (1 - al); t = (lo + hi) / 2; it = 0
    for it in range(50):
        u = np.maximum(x - t, 0); on = u > 0; b = 1 / (al - 1); f = (u[on] ** b).sum() - 1; f1 = -b * (u[on] ** (b - 1)).sum(); f2 = b * (b - 1) * (u[on] ** (b - 2)).sum()
        if f > 0: lo = t
        else: hi = t
        n = t - 2 * f * f1 / (2 * f1 * f1 - f * f2)
        if not (lo < n < hi): n = (lo + hi) / 2
        if abs(n - t) <= 4e-16 * max(1, abs(t)): t = n; break
        t = n
    return t, it + 1
its = []
for _ in range(1500):
    n = int(rng.integers(1, 40)); s = rng.normal(size=n) * rng.choice([.3, 1, 5]); v = rng.normal(size=(n, 3)); P = split(n)
    # self-adjusted normalised: state (m, mn, z, A0, A1) with A1 = sum (s-mn) e^{s-m} v
    S = []
    for p in P:
        t = s[p]
        if t.size == 0: S.append((-np.inf, np.inf, 0., np.zeros(3), np.zeros(3))); continue
        m, mn = t.max(), t.min(); e = np.exp(t - m); S.append((m, mn, e.sum(), e @ v[p], ((t - mn) * e) @ v[p]))
    m = max(x[0] for x in S); mn = min(x[1] for x in S); z = 0; A0 = np.zeros(3); A1 = np.zeros(3)
    for x in S:
        if x[2] == 0: continue
        f = math.exp(x[0] - m); z += f * x[2]; A0 += f * x[3]; A1 += f * (x[4] + (x[1] - mn) * x[3])
    p_ = sp.softmax(s)
    rec('SA x*softmax', (A1 + mn * A0) / z, (s * p_) @ v)
    lo, hi = min(mn, 0), max(m, 0)
    if hi > lo: rec('SA norm0', (A1 + (mn - lo) * A0) / z / (hi - lo), ((s - lo) / (hi - lo) * p_) @ v)
    # affine: softmax state + (count, sum v)
    al, ma = rng.random(2); rec('affine', al * (A0 / z) + (ma - al) / n * v.sum(0), (al * p_ + (ma - al) / n) @ v)
    # online second moment for L_align / entropy: H = lse - sum p s
    rec('entropy online', m + math.log(z) - (p_ @ s), -sp.xlogy(p_, p_).sum())
    # pruning theorem: tau(S1 u S2) >= max(tau(S1), tau(S2)); hence candidates {s > tau_part} contain the final support
    for a_ in (1.25, 1.5, 2.0):
        w, t = entmax(s, a_); parts = [entmax(s[p], a_)[1] for p in P if s[p].size]; assert t >= max(parts) - 1e-12
        keep = np.concatenate([s[p][(a_ - 1) * s[p] > entmax(s[p], a_)[1] - 1e-13] for p in P if s[p].size]); rec(f'entmax prune {a_}', entmax(keep, a_)[1], t)
        th, it = halley(s, a_); rec(f'halley {a_}', th, t); its.append(it)
        assert (a_ - 1) * s.max() - 1 <= t + 1e-12 and t <= (a_ - 1) * s.max() - n ** (1 - a_) + 1e-12
    # radius-window certificate
    ks = np.sort(rng.normal(size=n)); q = rng.normal(); tau = rng.uniform(.02, 1); sc = -(q - ks) ** 2 / tau; a, b = sorted(rng.integers(0, n + 1, 2)); w = sp.softmax(sc); Z = np.exp(sc[a:b]).sum(); T = (a * math.exp(-(max(q - ks[a - 1], 0) if a else 0) ** 2 / tau) if a else 0) + ((n - b) * math.exp(-max(ks[b] - q, 0) ** 2 / tau) if b < n else 0)
    assert w[:a].sum() + w[b:].sum() <= (T / (Z + T) if Z + T > 0 else 1) + 1e-12
for k, e in worst.items(): print(f'{k:22s} worst {e:.1e}')
print('halley iterations: max', max(its), 'mean', round(float(np.mean(its)), 2)); print('pruning theorem and tail certificate: no violation in 1500 trials')
