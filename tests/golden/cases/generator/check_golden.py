#!/usr/bin/env python3
"""Independent double-precision check of the golden files: closed-form numpy/scipy code written from README.md (NOT core/ops),
closed-form VJPs (no AD).  Prints the worst scaled error per operator.  usage: check_golden.py"""
import sys, json, glob, os, math
import numpy as np, scipy.special as sp, scipy.stats as st
HERE = os.path.dirname(os.path.abspath(__file__)); SET = 'open'
def num(x): return float(x) if isinstance(x, str) else x
def A(d): return np.array([num(t) for t in d['data']], float).reshape(d['shape'])
worst = {}; count = {}; names = set(); bad = []
def cmp(case, key, got, tol=1e-9, scale=None):
    e = A(case['expected'][key]); got = np.asarray(got, float).reshape(e.shape)
    m = np.isfinite(e)
    if not np.array_equal(np.isfinite(got), m): err = math.inf
    else:
        s = max(np.max(np.abs(e[m])) if m.any() else 0, scale or 0, 1e-300)
        err = float(np.max(np.abs(got[m] - e[m])) / s) if m.any() else 0.0
        if not m.all() and not np.array_equal(np.nan_to_num(got[~m], nan=7.7), np.nan_to_num(e[~m], nan=7.7)): err = math.inf
    k = (case['operator'], key); worst[k] = max(worst.get(k, 0), err); count[k] = count.get(k, 0) + 1
    if not err < tol: bad.append((case['name'], key, err))
sig = sp.expit; softplus = lambda x: np.logaddexp(0, x)
def scores(c, I):
    p = c['params']; kd = p.get('score', 'dot'); off = p['mask']['offset'] if 'mask' in p else 0
    Lq, Lk = c['shapes']['Lq'], c['shapes']['Lk']
    if kd == 'given': return I['s']
    if kd == 'none_': return np.zeros((Lq, Lk))
    par = lambda n: I[n].reshape(-1, 1)
    if kd == 'scalar': return -(I['qs'][:, None] - I['ks'][None]) ** 2 / par('tau')
    q, k = I['q'], I['k']; D = q.shape[1]; sc = p.get('scale', 1 / math.sqrt(D)); dot = q @ k.T
    d2 = ((q[:, None] - k[None]) ** 2).sum(-1)
    if kd == 'dot': return dot * sc
    if kd == 'rbf': return -d2 / par('tau')
    if kd == 'l2': return -d2 * sc
    if kd == 'scaled_rbf': return 2 * par('gamma_rbf') * dot - par('gamma_rbf') * (k * k).sum(1)[None]
    if kd == 'hybrid': return dot * sc - (I['qs'][:, None] - I['ks'][None]) ** 2 / par('tau')
    if kd == 'idw': return -np.log(par('eps') + d2)
    if kd == 'elliptical_bilinear': return (q * I['m']) @ k.T * sc
    if kd == 'elliptical_mahalanobis': return -0.5 * sc * (I['m'] * (q[:, None] - k[None]) ** 2).sum(-1)
    i, j = np.meshgrid(np.arange(Lq), np.arange(Lk), indexing='ij')
    if kd == 'alibi': return dot * sc - par('slope') * np.abs(i + off - j)
    if kd == 'bias': return dot * sc + I['bias']
    if kd == 'goat': return dot / par('tau') + np.log(I['prior'])
    if kd == 'smca': return dot * sc - (((I['kpos'][None] - I['center'][:, None]) / I['width'][:, None]) ** 2).sum(-1) / p['beta_smca']
    if kd == 'txl':
        r = I['r'][(i + off - j) + len(I['r']) // 2]; return ((q + I['u']) @ k.T + np.einsum('id,ijd->ij', q + I['vb'], r)) * sc
    if kd == 'tupe': return (dot + I['pq'] @ I['pk'].T) / math.sqrt(2 * D)
    raise KeyError(kd)
def score_vjp(c, I, ds):
    """closed-form d(inputs of the score)"""
    p = c['params']; kd = p.get('score', 'dot'); g = {}
    red = lambda n, x: x.sum(1) if I[n].size > 1 else np.array([x.sum()])
    if kd == 'given': return {'s': ds}
    if kd == 'none_': return {}
    par = lambda n: I[n].reshape(-1, 1)
    if kd == 'scalar':
        d = I['qs'][:, None] - I['ks'][None]; t = par('tau'); return {'qs': (-2 * d / t * ds).sum(1), 'ks': (2 * d / t * ds).sum(0), 'tau': red('tau', d * d / t ** 2 * ds)}
    q, k = I['q'], I['k']; D = q.shape[1]; sc = p.get('scale', 1 / math.sqrt(D)); dif = q[:, None] - k[None]; d2 = (dif ** 2).sum(-1); dot = q @ k.T
    if kd in ('dot', 'bias', 'alibi', 'hybrid', 'smca'): g['q'] = sc * ds @ k; g['k'] = sc * ds.T @ q
    if kd == 'bias': g['bias'] = ds
    if kd == 'alibi':
        i, j = np.meshgrid(np.arange(len(q)), np.arange(len(k)), indexing='ij'); g['slope'] = red('slope', -np.abs(i + p['mask']['offset'] - j) * ds)
    if kd == 'hybrid':
        d = I['qs'][:, None] - I['ks'][None]; t = par('tau'); g.update({'qs': (-2 * d / t * ds).sum(1), 'ks': (2 * d / t * ds).sum(0), 'tau': red('tau', d * d / t ** 2 * ds)})
    if kd == 'smca':
        b = p['beta_smca']; z = I['kpos'][None] - I['center'][:, None]; w2 = I['width'][:, None] ** 2 * b
        g['kpos'] = (-2 * z / w2 * ds[..., None]).sum(0); g['center'] = (2 * z / w2 * ds[..., None]).sum(1); g['width'] = (2 * z ** 2 / (I['width'][:, None] * w2) * ds[..., None]).sum(1)
    if kd == 'rbf': t = par('tau'); x = (-2 / t * ds)[..., None] * dif; g = {'q': x.sum(1), 'k': -x.sum(0), 'tau': red('tau', d2 / t ** 2 * ds)}
    if kd == 'l2': x = (-2 * sc * ds)[..., None] * dif; g = {'q': x.sum(1), 'k': -x.sum(0)}
    if kd == 'scaled_rbf': G = I['gamma_rbf'][0]; g = {'q': 2 * G * ds @ k, 'k': 2 * G * (ds.T @ q - k * ds.sum(0)[:, None]), 'gamma_rbf': red('gamma_rbf', (2 * dot - (k * k).sum(1)[None]) * ds)}
    if kd == 'idw': r = 1 / (par('eps') + d2); x = (-2 * r * ds)[..., None] * dif; g = {'q': x.sum(1), 'k': -x.sum(0), 'eps': red('eps', -r * ds)}
    if kd == 'elliptical_bilinear': g = {'q': sc * ds @ k * I['m'], 'k': sc * ds.T @ q * I['m'], 'm': sc * np.einsum('ij,id,jd->d', ds, q, k)}
    if kd == 'elliptical_mahalanobis': x = (-sc * ds)[..., None] * dif * I['m']; g = {'q': x.sum(1), 'k': -x.sum(0), 'm': -0.5 * sc * np.einsum('ij,ijd->d', ds, dif ** 2)}
    if kd == 'goat': t = par('tau'); g = {'q': ds / t @ k, 'k': (ds / t).T @ q, 'tau': red('tau', -dot / t ** 2 * ds), 'prior': ds / I['prior']}
    if kd == 'txl':
        i, j = np.meshgrid(np.arange(len(q)), np.arange(len(k)), indexing='ij'); ix = (i + p['mask']['offset'] - j) + len(I['r']) // 2; r = I['r'][ix]
        a = sc * ds @ k; b = sc * np.einsum('ij,ijd->id', ds, r); dr = np.zeros_like(I['r']); np.add.at(dr, ix.ravel(), (sc * ds[..., None] * (q + I['vb'])[:, None]).reshape(-1, D))
        g = {'q': a + b, 'k': sc * ds.T @ (q + I['u']), 'u': a.sum(0), 'vb': b.sum(0), 'r': dr}
    if kd == 'tupe': s2 = 1 / math.sqrt(2 * D); g = {'q': s2 * ds @ k, 'k': s2 * ds.T @ q, 'pq': s2 * ds @ I['pk'], 'pk': s2 * ds.T @ I['pq']}
    return g
def sparsemax(s):
    u = np.sort(s)[::-1]; cs = np.cumsum(u) - 1; r = np.arange(1, len(s) + 1); kk = r[u - cs / r > 0][-1]; tau = cs[kk - 1] / kk; return np.maximum(s - tau, 0), tau
def entmax15(s):
    x = s / 2; mx = x.max(); x = x - mx; u = np.sort(x)[::-1]; r = np.arange(1, len(s) + 1); m = np.cumsum(u) / r; m2 = np.cumsum(u * u) / r
    d = np.maximum((1 - r * (m2 - m * m)) / r, 0); t = m - np.sqrt(d); kk = np.sum(t <= u); tau = t[kk - 1]; return np.maximum(x - tau, 0) ** 2, tau + mx
def entmax_bis(s, a):
    x = (a - 1) * s; mx = x.max(); x = x - mx; lo, hi = -1.0, 0.0
    for _ in range(200):
        m = (lo + hi) / 2
        if np.sum(np.maximum(x - m, 0) ** (1 / (a - 1))) > 1: lo = m
        else: hi = m
    t = (lo + hi) / 2; return np.maximum(x - t, 0) ** (1 / (a - 1)), t + mx
def attn_case(c):
    p = c['params']; I = {k: A(v) for k, v in c['inputs'].items()}; nz = p['normalizer']; M = I['mask'] > 0 if 'mask' in I else np.ones((c['shapes']['Lq'], c['shapes']['Lk']), bool)
    S = scores(c, I); Lq, Lk = S.shape; v = I['v']; w = np.zeros((Lq, Lk)); lse = []; w0s = []; taus = []; do = I['do']
    gate = np.ones((Lq, v.shape[1]))
    if str(p.get('post', '')).startswith('gate'): gate = np.broadcast_to(sig(I['gate']), (Lq, v.shape[1])).copy()
    dot_raw = do * gate; dS = np.zeros((Lq, Lk)); G = {}
    acc = lambda n, i, val: G.setdefault(n, np.zeros_like(I[n])).__setitem__(i if I[n].size > 1 else 0, G[n][i if I[n].size > 1 else 0] + val)
    P1 = lambda n, i: I[n].reshape(-1)[i if I[n].size > 1 else 0]
    for n in ('sink', 'alpha', 'beta', 'gamma', 'v0', 'g', 'qg', 'kg', 'apre', 'sig_b', 'ss_s', 'ss_b', 'ent_alpha'):
        if n in I: G[n] = np.zeros_like(I[n])
    ama = None
    if nz == 'affine':
        x = I['apre']; al = sig(x) if p['phi'] == 'sigmoid' else np.clip(0.1 * x + 0.5, 0, 1); dphi = al * (1 - al) if p['phi'] == 'sigmoid' else np.where(np.abs(x) < 5, 0.1, 0.0)
        ama = I['alpha_ma'][0]
        if p['ema'] != 'given': ama = p['rho'] * ama + (1 - p['rho']) * al.mean(); cmp(c, 'alpha_ma_new', [ama])
        dama = 0.0; dal = np.zeros(Lq)
    o = np.zeros((Lq, v.shape[1])); rows = []; sups = []
    for i in range(Lq):
        ix = np.flatnonzero(M[i]); K = len(ix); L = math.log(K) if K else 0.0; s = S[i, ix].copy(); gi = v[ix] @ dot_raw[i]; lp = p.get('length', 'none'); s_raw = s.copy(); mul = 1.0
        if lp == 'ssmax': mul = P1('ss_s', i) * L + (P1('ss_b', i) if 'ss_b' in I else 0); s = mul * s
        if lp == 'logn': mul = L / math.log(p['n0']); s = mul * s
        if lp == 'margin': cc = softplus(P1('alpha', i)); mul = 1 + cc * L; s = s + cc * L * (s - P1('gamma', i))
        ds = np.zeros(K)
        if nz == 'principled':
            v0 = I['v0']
            if K == 0: w0s.append(1.0); lse.append(-np.inf); o[i] = v0; G['v0'] += dot_raw[i]; continue
            a_, b_, g_ = P1('alpha', i), (P1('beta', i) if 'beta' in I else 0.0), P1('gamma', i); cc = softplus(a_)
            gg = I['qg'][i] @ I['kg'][ix].T if 'qg' in I else (I['g'][i, ix] if 'g' in I else None)
            amp = cc * L; b = softplus(b_) * softplus(-gg) if gg is not None else 0.0
            a = s + (amp * (s - g_) if amp != 0 else 0) - b; m = max(a.max(), g_)
            ea = np.exp(a - m); below = a < g_; eg = math.exp(g_ - m); short = eg * -np.expm1(np.minimum(a - g_, 0)); z = ea.sum() + short.sum()
            # sum over max(e^g,e^a) = sum e^a + shortfall
            ww = ea / z; w0 = short.sum() / z; w[i, ix] = ww; w0s.append(w0); lse.append(m + math.log(z)); o[i] = ww @ v[ix] + w0 * v0
            Dv_ = gi - v0 @ dot_raw[i]; R = ww @ Dv_; da = ww * Dv_ - np.where(~below, ww, 0) * R; dgd = -R * below.sum() * eg / z
            ds = (1 + amp) * da; G['v0'] += w0 * dot_raw[i]
            acc('alpha', i, (sig(a_) * L * (s - g_) * da).sum()); acc('gamma', i, dgd - amp * da.sum())
            if gg is not None:
                acc('beta', i, -(sig(b_) * softplus(-gg) * da).sum()); dg = softplus(b_) * sig(-gg) * da
                if 'qg' in I: G['qg'][i] += dg @ I['kg'][ix]; G['kg'][ix] += dg[:, None] * I['qg'][i]
                else: G['g'][i, ix] = dg
            wv = ww
        elif K == 0:
            if nz == 'softmax': lse.append(-np.inf)
            if nz == 'off_by_one': lse.append(0.0); w0s.append(1.0)
            if nz == 'sink': lse.append(P1('sink', i)); w0s.append(1.0)
            if nz == 'affine': rows.append(0.0)
            continue
        else:
            if nz in ('softmax', 'off_by_one', 'sink'):
                ext = s if nz == 'softmax' else np.append(s, 0.0 if nz == 'off_by_one' else P1('sink', i)); l = sp.logsumexp(ext); wv = np.exp(s - l); lse.append(l)
                ds = wv * (gi - wv @ gi)
                if nz != 'softmax': w0s.append(math.exp(ext[-1] - l))
                if nz == 'sink': acc('sink', i, -w0s[-1] * (wv @ gi))
            elif nz == 'affine':
                pr = sp.softmax(s); N = K if p['N'] == 'visible' else Lk; wv = al[i] * pr + (ama - al[i]) / N; rows.append(wv.sum())
                ds = al[i] * pr * (gi - pr @ gi); dal[i] += pr @ gi - gi.sum() / N; dama += gi.sum() / N
            elif nz in ('sparsemax', 'entmax'):
                al_ = 2.0 if nz == 'sparsemax' else I['ent_alpha'][0]
                wv, t = sparsemax(s) if al_ == 2 else entmax15(s) if al_ == 1.5 else entmax_bis(s, al_); taus.append(t); sups.append((wv > 0).sum())
                sg = np.where(wv > 0, np.where(wv > 0, wv, 1) ** (2 - al_), 0); ds = sg * (gi - sg @ gi / sg.sum())
                if nz == 'entmax':
                    h = np.where(wv > 0, -wv * np.log(np.where(wv > 0, wv, 1)), 0); pt = sg / sg.sum(); G['ent_alpha'][0] += gi @ ((wv - pt) / (al_ - 1) ** 2 + (h - pt * h.sum()) / (al_ - 1))
            elif nz == 'sigmoid':
                bb = -L if p.get('bias') == 'neg_log_n' else P1('sig_b', i); wv = sig(s + bb); ds = gi * wv * sig(-(s + bb))
                if 'sig_b' in I: acc('sig_b', i, ds.sum())
            elif nz.startswith('self_adjust'):
                pr = sp.softmax(s); lse.append(sp.logsumexp(s)); mn, mx = s.min(), s.max(); jm, jx = s.argmin(), s.argmax(); gm = gx = True
                if nz == 'self_adjust_x': f = s; df = np.ones(K); wv = f * pr; ds = gi * pr + (pr * (gi * f - (pr * gi) @ f))
                else:
                    if nz == 'self_adjust_norm0':
                        if mn > 0: mn = 0; gm = False
                        if mx < 0: mx = 0; gx = False
                    if not p.get('grad_minmax', True): gm = gx = False
                    r = mx - mn
                    if r == 0: wv = np.zeros(K); ds = np.zeros(K)
                    else:
                        f = (s - mn) / r; wv = f * pr; ds = gi * pr / r + pr * (gi * f - (pr * gi) @ f); t = (gi * pr)
                        if gm: ds[jm] += (t * (s - mx)).sum() / r ** 2
                        if gx: ds[jx] -= (t * (s - mn)).sum() / r ** 2
            elif nz == 'exp_unnormalized': wv = np.exp(s); ds = gi * wv
            elif nz == 'sliced_relu':
                d = I['qs'][i] - I['ks'][ix]; r = np.maximum(d, 0); on = (d > 0) * 1.0; md = p['sr_mode']
                if md == 'sum': wv = r; dr = gi
                if md == 'mean': wv = r / K; dr = gi / K
                if md == 'centered': wv = r / K - r.mean() / K; dr = (gi - gi.mean()) / K
                if md == 'normalized': z = r.sum(); wv = r / z if z > 0 else 0 * r; dr = (gi - wv @ gi) / z if z > 0 else 0 * r
                G.setdefault('qs', np.zeros(Lq)); G.setdefault('ks', np.zeros(Lk)); G['qs'][i] += (dr * on).sum(); G['ks'][ix] -= dr * on
            w[i, ix] = wv; o[i] = wv @ v[ix]
        if lp == 'ssmax': acc('ss_s', i, L * (ds @ s_raw)); 'ss_b' in I and acc('ss_b', i, ds @ s_raw)
        if lp == 'margin': acc('alpha', i, sig(P1('alpha', i)) * L * (ds @ (s_raw - P1('gamma', i)))); acc('gamma', i, -cc * L * ds.sum())
        dS[i, ix] = ds * mul
    if nz == 'affine':
        G['apre'] = dal * dphi
        d_apre_direct = dal.copy()
        # beta = (ama - al)/N already in dal ; EMA in graph
        if p['ema'] == 'update_grad': G['apre'] = (dal + dama * (1 - p['rho']) / Lq) * dphi
    ext = max(1.0, np.abs(S).max()) ; tol = 1e-9 * max(1, ext / 1e3)
    tol = max(tol, 1e-11)
    cmp(c, 'w', w, tol); cmp(c, 'o', o * gate, tol)
    if lse and 'lse' in c['expected']: cmp(c, 'lse', lse)
    if w0s: cmp(c, 'w0', w0s, tol, 1e-12)
    if taus:
        cmp(c, 'tau', taus)
        if 'support' in c['expected']: cmp(c, 'support', sups)
    if rows: cmp(c, 'rowsum', rows, tol, 1e-3)
    G['v'] = w.T @ dot_raw
    if 'gate' in I: x = do * o * sig(I['gate']) * sig(-I['gate']); G['gate'] = x if I['gate'].shape[1] > 1 else x.sum(1, keepdims=True)
    G.update({k: t for k, t in score_vjp(c, I, dS).items()})
    for g in c['grads']:
        cmp(c, g, G[g[2:]], max(tol, 1e-10), scale=c['grad_scale'][g])
def other(c):
    cmp = globals()['cmp']
    op = c['operator']; I = {k: A(v) for k, v in c['inputs'].items()}; p = c['params']
    if op == 'ks_two_sample':
        r = st.ks_2samp(I['a'], I['b']); cmp(c, 'D', [r.statistic]); n, m = I['a'].size, I['b'].size
        cmp(c, 'p_asymptotic', [min(1, sp.kolmogorov(r.statistic * math.sqrt(n * m / (n + m))))], 1e-7)
    elif op == 'jacobian_softmax':
        q = sp.softmax(I['l'] / I['T'][0]); J = -np.outer(q, q) / I['T'][0]; np.fill_diagonal(J, [q[i] * np.delete(q, i).sum() / I['T'][0] for i in range(len(q))]); cmp(c, 'p', q); cmp(c, 'spectral', [np.linalg.norm(J, 2)]); cmp(c, 'frobenius', [np.linalg.norm(J)]); cmp(c, 'max_entry', [np.abs(J).max()])
        cmp(c, 'lse_lambda', [I['T'][0] * sp.logsumexp(I['l'] / I['T'][0])])
        assert A(c['expected']['spectral'])[0] <= A(c['expected']['bound_corrected_1_over_2T'])[0]
    elif op == 'jacobian_general':
        l, T = I['l'], I['T'][0]; F, dF = {'exp': (np.exp(l / T), np.exp(l / T) / T), 'softplus': (softplus(l / T), sig(l / T) / T), 'square1': (1 + (l / T) ** 2, 2 * l / T ** 2), 'affine': (l / T + p['c'], np.ones_like(l) / T)}[p['F']]
        a = F / F.sum(); J = (np.eye(len(l)) - a[:, None]) * dF[None] / F.sum(); cmp(c, 'alpha', a); cmp(c, 'spectral', [np.linalg.norm(J, 2)])
        e = c['expected']; assert A(e['spectral'])[0] <= A(e['bound_corrected_tight'])[0] * (1 + 1e-12) <= A(e['bound_corrected_minmax'])[0] * (1 + 1e-9)
    elif op == 'entropy':
        w = I['w']; cmp(c, 'entropy', -sp.xlogy(w, w).sum(1)); cmp(c, 'entropy_normalized_mass', [st.entropy(r) for r in w])
    elif op == 'grad_norm_stats':
        g = I['g']; cmp(c, 'mean', [g.mean()]); cmp(c, 'var_sample', [g.var(ddof=1)]); cmp(c, 'mad', [st.median_abs_deviation(g)]); cmp(c, 'median', [np.median(g)])
        for k in (6, 9): cmp(c, f'spikes_k{k}', [(g > np.median(g) + k * st.median_abs_deviation(g)).sum()])
    elif op == 'primitives':
        x = I['x']
        def cmpr(c, key, got, tol=1e-14):   # elementwise relative
            e = A(c['expected'][key]); ok = np.isfinite(e) & (np.abs(e) > 1e-300); r = np.max(np.abs(got[ok] - e[ok]) / np.abs(e[ok])); worst[(op, key)] = max(worst.get((op, key), 0), r); count[(op, key)] = count.get((op, key), 0) + 1
            if not r < tol: bad.append((c['name'], key, r))
        cmp = cmpr; spx = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))); cmp(c, 'softplus', spx); cmp(c, 'sigmoid', sig(x)); cmp(c, 'logsigmoid', -(np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(x))))); cmp(c, 'linear_clipping', np.clip(x / 10 + .5, 0, 1))
        with np.errstate(all='ignore'): cmp(c, 'expm1', np.expm1(x)); cmp(c, 'log1p', np.log1p(x)); a = -np.abs(x); cmp(c, 'log1mexp_negabs', np.where(a > -math.log(2), np.log(-np.expm1(a)), np.log1p(-np.exp(a))))
    elif op == 'gqa' or op == 'grouped_value':
        H, G = c['shapes']['H'], c['shapes']['G']; M = I['mask'] > 0; O = []
        for h in range(H):
            g = h * G // H; s = I['q'][h] @ I['k'][g].T / math.sqrt(I['q'].shape[2]) if op == 'gqa' else -(I['qs'][h][:, None] - I['ks'][h][None]) ** 2 / I['tau'][h]
            O.append(sp.softmax(np.where(M, s, -np.inf), axis=1) @ I['v'][g])
        cmp(c, 'o', O)
    elif op == 'merge_states': cmp(c, 'o', sp.softmax(I['s']) @ I['v']); cmp(c, 'lse', [sp.logsumexp(I['s'])])
    elif op == 'ema':
        a = p['init']; L = []
        for b in I['alpha_batches']: a = p['rho'] * a + (1 - p['rho']) * b.mean(); L.append(a)
        cmp(c, 'alpha_ma', L)
    elif op == 'maxent':
        z, T = I['z'], I['T'][0]; q = I['q'] / I['q'].sum(); w = sp.softmax(z / T); cmp(c, 'T_lse', [T * sp.logsumexp(z / T)]); cmp(c, 'gap_T_KL', [T * st.entropy(q, w)])
        e = c['expected']; assert abs(A(e['objective_star'])[0] - A(e['T_lse'])[0]) < 1e-13 and abs(A(e['objective_star'])[0] - A(e['objective_q'])[0] - A(e['gap_T_KL'])[0]) < 1e-13
    elif op == 'grouping_stability':
        e = c['expected']; cmp(c, 'op_norm_dK', [np.linalg.norm(I['kg'] - I['kh'], 2)]); assert A(e['drift'])[0] <= A(e['bound_tight_logit'])[0] <= A(e['bound_tight_op'])[0]
    elif op == 'rbf_identity': cmp(c, 'softmax', A(c['expected']['rbf']), 1e-15)
    elif op == 'implicit_kernel': cmp(c, 'softmax', A(c['expected']['product_normalized']), 1e-15)
    elif op == 'product_of_experts': cmp(c, 'softmax_sum', A(c['expected']['product_renormalized']), 1e-15); cmp(c, 'softmax_sum', sp.softmax(I['s_dot'] + I['s_rbf']))
    elif op == 'finite_difference_jacobian':
        d = I['dl'] / np.linalg.norm(I['dl']); cmp(c, 'g', [np.linalg.norm(sp.softmax((I['l'] + e * d) / I['T'][0]) - sp.softmax(I['l'] / I['T'][0])) / e for e in I['eps']], 1e-7)
        assert (A(c['expected']['g']) <= A(c['expected']['bound_corrected']) * (1 + 1e-12)).all()
    elif op == 'distance_theorem1':
        e = {k: A(t) for k, t in c['expected'].items()}; al, x, N = I['alpha'], I['x'], p['N']; S = np.argsort(-al, kind='stable')[:N]; s = al[S] @ x[S]
        cmp(c, 'd_tilde', [sum(np.linalg.norm(al[i] * x[i] - s) for i in range(len(al)) if i not in S)])
        assert e['d_tilde'][0] <= e['theorem1_fixed_bound_subnormalized'][0] * (1 + 1e-12)
        assert e['theorem1_random_main_corrected'][0] * (1 - 1e-12) <= e['E_exact_enumerated'][0] <= e['theorem1_random_upper_variance'][0] * (1 + 1e-12)
        assert e['E_exact_enumerated'][0] <= (e['theorem1_random_main_corrected'] + e['theorem1_eps_bound'])[0] * (1 + 1e-12)
    elif op == 'geometric_theorem2':
        e = {k: A(t) for k, t in c['expected'].items()}; assert (e['dist_selected'] <= 1 + 1e-9).all(); assert (e['dist_selected'] <= e['xi'] * (1 + 1e-6)).all()
    elif op == 'sorted_window':
        e = {k: A(t) for k, t in c['expected'].items()}; assert e['true_tail_fraction'][0] <= e['certified_tail_fraction'][0] * (1 + 1e-12) + 1e-300; assert e['output_error'][0] <= e['output_error_bound_certified'][0] * (1 + 1e-12) + 1e-300
        sc = (I['dot'] if 'dot' in I else 0) - (I['qs'][0] - I['ks']) ** 2 / I['tau'][0]; w = sp.softmax(sc); cmp(c, 'o_full', w @ I['v']); pm = e['perm'].astype(int); lo, hi = int(e['lo'][0]), int(e['hi'][0]); cmp(c, 'true_tail_fraction', [np.delete(w[pm], np.arange(lo, hi)).sum()], 1e-9, 1e-3)
        assert (np.diff(I['ks'][pm]) >= 0).all(); cmp(c, 'insertion', [np.searchsorted(I['ks'][pm], I['qs'][0])])
        if hi > lo: cmp(c, 'o_window', sp.softmax(sc[pm][lo:hi]) @ I['v'][pm][lo:hi])
    elif op == 'sliced_relu': cmp(c, 'o', np.maximum(I['qs'][:, None] - I['ks'][None], 0) @ I['v'])
    elif op == 'l_align':
        pass
    elif op == 'l_spread':
        k = np.sort(I['ks']); n = len(k); a, b = A(c['expected']['range']); t = np.linspace(a, b, n) if p['targets'] == 'linspace' else a + (b - a) * (np.arange(n) + .5) / n; cmp(c, 'loss', [np.mean((k - t) ** 2)])
        if p['range'] == 'adaptive': cmp(c, 'range', [k.mean() - 3 * k.std(), k.mean() + 3 * k.std()])
        d = np.empty(n); d[np.argsort(I['ks'], kind='stable')] = 2 / n * (k - t); cmp(c, 'd_ks', d)
    elif op == 'l_tau': cmp(c, 'loss', [p['lambda'] * np.log1p(I['tau']).sum()]); cmp(c, 'd_tau', p['lambda'] / (1 + I['tau']))
    elif op == 'cor1_bounds':
        p_ = sp.softmax(I['k'] @ I['q'] / I['T'][0]); D = np.linalg.norm(I['q']) * np.linalg.norm(I['k'], axis=1).max(); L = len(p_); cmp(c, 'alpha', p_); cmp(c, 'Delta', [D]); cmp(c, 'upper', [math.exp(2 * D / I['T'][0]) / L]); e = c['expected']
        assert (A(e['lower'])[0] <= A(e['lower_tight'])[0] <= p_.min()) and (p_.max() <= A(e['upper_tight'])[0] <= A(e['upper'])[0])
    elif op == 'length_scaling_law':
        g, ss, cc = I['gap'][0], I['ss'][0], softplus(I['alpha'][0]); K = np.array(p['K'], float); cmp(c, 'softmax', sp.expit(g - np.log(K - 1))); cmp(c, 'ssmax', sp.expit(ss * np.log(K) * g - np.log(K - 1))); cmp(c, 'principled_norm_no_ground', sp.expit((1 + cc * np.log(K)) * g - np.log(K - 1)))
    elif op == 'topk_captured_mass':
        o = []
        for i, q in enumerate(I['qs']): ix = np.argsort(np.abs(q - I['ks']), kind='stable'); o.append([I['w'][i][ix[:k]].sum() / I['w'][i].sum() for k in p['k']])
        cmp(c, 'captured', o)
    elif op == 'evict_geometric':
        k = I['ks']; lo, hi = I['recent_qs'].min() - p['r'], I['recent_qs'].max() + p['r']; m = (k >= lo) & (k <= hi)
        if 'sink_zone' in p: m |= (k >= p['sink_zone'][0]) & (k <= p['sink_zone'][1])
        cmp(c, 'keep', np.flatnonzero(m))
    elif op == 'density_compression':
        k, v, mu = I['ks'], I['v'], I['mult']; b = np.floor((k - p['k0']) / p['h']).astype(int); u = np.unique(b); M_ = np.array([mu[b == t].sum() for t in u]); rk = np.array([(mu * k)[b == t].sum() for t in u]) / M_; rv = np.array([(mu[:, None] * v)[b == t].sum(0) for t in u]) / M_[:, None]
        cmp(c, 'rep_keys', rk); cmp(c, 'rep_values', rv); cmp(c, 'o_compressed_with_multiplicity', sp.softmax(np.log(M_) - (I['qs'][0] - rk) ** 2 / I['tau'][0]) @ rv); cmp(c, 'o_exact', sp.softmax(np.log(mu) - (I['qs'][0] - k) ** 2 / I['tau'][0]) @ v)
    elif op == 'head_coverage': cmp(c, 'coverage', 1 - (1 - I['p'][0]) ** np.arange(1, p['H'] + 1 if 'H' in p else c['shapes']['H'] + 1))
    else: return False
    return True
def align(c):
    I = {k: A(v) for k, v in c['inputs'].items()}; M = I['mask'] > 0; s = I['q'] @ I['k'].T / math.sqrt(I['q'].shape[1]) - (I['qs'][:, None] - I['ks'][None]) ** 2 / I['tau'][0]
    w = sp.softmax(np.where(M, s, -np.inf), axis=1); d = I['qs'][:, None] - I['ks'][None]; cmp(c, 'loss', [(w * d * d).mean()]); cmp(c, 'd_qs', (2 * w * d).sum(1) / w.size); cmp(c, 'd_ks', (-2 * w * d).sum(0) / w.size)
    e = {k: A(t) for k, t in c['expected'].items()}; assert np.allclose(e['per_query'], e['var_term'] + e['offset_term'], rtol=1e-14)
skipped = {}
ncase = 0
for f in sorted(glob.glob(os.path.join(HERE, '..', '*.json'))):
    for c in json.load(open(f))['cases']:
        assert c['name'] not in names, c['name']; names.add(c['name']); ncase += 1
        if f.endswith('edge.json'): skipped['edge(policy)'] = skipped.get('edge(policy)', 0) + 1; continue
        if 'normalizer' in c['params'] and c['operator'] not in ('gqa', 'grouped_value'): attn_case(c)
        elif c['operator'] == 'l_align': align(c)
        elif not other(c): skipped[c['operator']] = skipped.get(c['operator'], 0) + 1
print(SET, 'cases', ncase, 'unique names', len(names)); print('not cross-checked here:', skipped)
agg = {}
for (o, k), e in worst.items(): agg.setdefault(o, []).append((e, k, count[(o, k)]))
for o in sorted(agg): e = max(agg[o]); print(f'{o:28s} tensors {sum(t[2] for t in agg[o]):4d}  worst {e[0]:.2e} ({e[1]})')
print('BAD', len(bad))
for b in bad[:40]: print('  ', b)
