# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Values and gradients of presets against NumPy, in every type and layout."""

import copy
import os
import pickle
import weakref

import numpy as np
import pytest

import attune
import dense
from attune import masks

TYPES = {np.float32: 2e-5, np.float64: 1e-12, np.float16: 4e-3}


def problem(rng, kind=np.float64, most=9):
    batch, groups, each = (int(n) for n in rng.integers(1, 4, 3))
    queries, keys, width, values = (int(n) for n in rng.integers(1, most, 4))
    heads = groups * each
    q, k, v = (
        strided(rng, (batch, h, n, w), kind)
        for h, n, w in ((heads, queries, width), (groups, keys, width), (heads if rng.random() < 0.5 else groups, keys, values))
    )
    return q, k, v


def strided(rng, shape, kind):
    """An array whose axes lie in memory in a random order, with gaps, reversed or shared."""
    order = rng.permutation(4)
    x = rng.standard_normal([shape[a] * 2 for a in order]).astype(kind)
    x = x.transpose(np.argsort(order))
    x = x[tuple(slice(None, None, 2) if rng.random() < 0.5 else slice(0, n) for n in shape)]
    x = x[tuple(slice(None, None, -1) if rng.random() < 0.2 else slice(None) for _ in shape)]
    return x[tuple(slice(0, n) for n in shape)]


def test_softmax_random_problems(rng, many):
    op = attune.op("softmax")
    for number in range(500 if many else 60):
        kind = list(TYPES)[number % 3]
        q, k, v = problem(rng, kind)
        mask, seen = dense.visibility(rng, *q.shape[:3], k.shape[2])
        out, lse = op(q, k, v, mask=mask, returns=("out", "lse"), threads=int(rng.integers(1, 4)))
        expected, expected_lse = dense.softmax(q, k, v, seen)
        assert out.dtype == kind and lse.dtype == (np.float64 if kind == np.float64 else np.float32)
        where = f"number {number}, {mask!r}, {kind.__name__}, {q.shape}, {k.shape}, {v.shape}"
        assert np.allclose(out.astype(float), expected, atol=TYPES[kind], rtol=TYPES[kind]), where
        assert np.allclose(lse, expected_lse, atol=1e-11 if kind == np.float64 else 2e-5, rtol=2e-6), where


def test_sink_bias_and_scale(rng):
    q, k, v = problem(rng)
    mask, seen = dense.visibility(rng, *q.shape[:3], k.shape[2])
    logit = rng.standard_normal(q.shape[1])
    out = attune.op("sink")(q, k, v, logit=logit, mask=mask, scale=0.3)
    assert np.allclose(out, dense.softmax(q, k, v, seen, sink=logit, scale=0.3)[0], atol=1e-12)
    bias = rng.standard_normal((q.shape[2], k.shape[2]))
    out = attune.op("biased")(q, k, v, bias=bias, mask=mask)
    assert np.allclose(out, dense.softmax(q, k, v, seen, bias=bias)[0], atol=1e-12)


def test_principled(rng):
    q, k, v = problem(rng)
    heads, keys = q.shape[1], k.shape[2]
    gq, gk = rng.standard_normal((*q.shape[:3], 2)), rng.standard_normal((q.shape[0], k.shape[1], keys, 2))
    alpha, beta, gamma = rng.standard_normal((3, heads))
    out, ground = attune.op("principled")(
        q, k, v, gate_q=gq, gate_k=gk, alpha=alpha, beta=beta, gamma=gamma, mask=masks.causal(), returns=("out", "ground_weight")
    )
    i, j = np.arange(q.shape[2])[:, None] + keys - q.shape[2], np.arange(keys)
    seen = j <= i
    per_head = lambda x: np.reshape(x, (1, -1, 1, 1))
    s = np.einsum("bhid,bhjd->bhij", q, dense.heads_of(k, heads)) / np.sqrt(q.shape[-1])
    visible = np.clip(i + 1, 1, keys)[None, None]
    s = s + dense.softplus(per_head(alpha)) * np.log(visible) * (s - per_head(gamma))
    u = np.einsum("bhid,bhjd->bhij", gq, dense.heads_of(gk, heads))
    s = s - dense.softplus(per_head(beta)) * dense.softplus(-u)
    g = per_head(gamma)
    w, excess = np.exp(s) * seen, np.maximum(np.exp(g) - np.exp(s), 0) * seen
    total = (w + excess).sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.where(total[..., None] > 0, np.einsum("bhij,bhjd->bhid", w, dense.heads_of(v, heads)) / total[..., None], 0)
        expected_ground = np.where(total > 0, excess.sum(-1) / total, ground)
    assert np.allclose(out, expected, atol=1e-11)
    assert np.allclose(ground, expected_ground, atol=1e-11)


def test_layout_and_types_without_a_copy(rng):
    q, k, v = (rng.standard_normal((2, 4, n, 5)).astype(np.float32) for n in (3, 6, 6))
    op = attune.op("softmax")
    out, lse = op(q, k, v, returns=("out", "lse"))
    swapped, same_lse = op(*(x.transpose(0, 2, 1, 3) for x in (q, k, v)), layout="blhd", returns=("out", "lse"))
    assert swapped.shape == (2, 3, 4, 5) and swapped.flags.c_contiguous
    assert np.array_equal(swapped.transpose(0, 2, 1, 3), out) and np.array_equal(lse, same_lse)


def test_a_call_for_rows_alone_writes_to_no_freed_memory(rng):
    q, k, v = (rng.standard_normal((1, 2, 40, 16)) for _ in range(3))
    op = attune.op("softmax")
    for layout in ("bhld", "blhd"):
        first = op(q, k, v, returns="lse", layout=layout)
        others = [np.full(q.shape, 7.0) for _ in range(50)]  # they may get the memory of the output that nobody wanted
        for _ in range(3):
            assert np.array_equal(op(q, k, v, returns=("lse",), layout=layout), first)
        assert all((x == 7).all() for x in others)


def test_calls_keep_no_masks(rng):
    q, k, v = (rng.standard_normal((1, 2, 4, 3)) for _ in range(3))
    tables = []
    for number in range(20):
        table = rng.random((4, 4)) < 0.7
        mask = masks.causal() | masks.visible(table) if number % 2 else masks.visible(table)
        seen = table | np.tri(4, dtype=bool) if number % 2 else table
        for _ in range(2):
            assert np.allclose(attune.op("softmax")(q, k, v, mask=mask), dense.softmax(q, k, v, seen)[0])
        tables.append(weakref.ref(table))
        del mask, table, seen
    assert all(table() is None for table in tables)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_parameters_of_16_bits_are_read_as_float32(rng, kind):
    q, k, v = (rng.standard_normal((1, 2, 5, 4)).astype(kind) for _ in range(3))
    logit = rng.standard_normal(2).astype(np.float16)
    op = attune.op("sink")
    for _ in range(2):
        assert np.array_equal(op(q, k, v, logit=logit), op(q, k, v, logit=logit.astype(np.float32)))
        logit = logit + np.float16(1)
    narrow, wide = (op.vjp(q, k, v, logit=x, dout=q)["normalizer.logit"] for x in (logit, logit.astype(np.float32)))
    assert narrow.dtype == np.float32 and np.array_equal(narrow, wide)


def test_bits_do_not_depend_on_threads(rng):
    q, k, v = (rng.standard_normal((2, 3, 130, 16)).astype(np.float32) for _ in range(3))
    op = attune.op("entmax15")
    one = op(q, k, v, threads=1), op.vjp(q, k, v, dout=q, threads=1)
    for threads in (2, 3, 8):
        assert np.array_equal(op(q, k, v, threads=threads), one[0])
        for name, g in op.vjp(q, k, v, dout=q, threads=threads).items():
            assert np.array_equal(g, one[1][name]), name


@pytest.mark.parametrize("name", ["softmax", "sink", "principled", "entmax15", "biased"])
def test_gradients_against_differences(rng, name):
    op = attune.op(name)
    q, k, v = problem(rng, most=6)
    mask = masks.causal()
    more = {}
    if name == "principled":
        more = {
            "gate_q": rng.standard_normal((*q.shape[:3], 2)),
            "gate_k": rng.standard_normal((q.shape[0], k.shape[1], k.shape[2], 2)),
            "v0": rng.standard_normal(v.shape[3]),
        }
    if name == "biased":
        more = {"bias": rng.standard_normal((1, q.shape[2], k.shape[2]))}
    for path, start in op.parameters.items():
        more[path] = np.full(q.shape[1], 0.3 if start is None else start) + 0.1 * rng.standard_normal(q.shape[1])
    given = {"q": q, "k": k, "v": v, **more}
    outputs = [n for n in op.outputs if n != "threshold"]
    by = dict(zip(outputs, (rng.standard_normal((*q.shape[:3], v.shape[3])), *rng.standard_normal((2, *q.shape[:3])))))
    if "lse" in by and q.shape[2] > k.shape[2]:
        del by["lse"]  # -inf in rows that see nothing
    g = op.vjp(**given, mask=mask, **{f"d{n}": x for n, x in by.items()})

    def value(**changed):
        results = op(**{**given, **changed}, mask=mask, returns=tuple(by))
        return sum(float((np.nan_to_num(r) * x).sum()) for r, x in zip(results if len(by) > 1 else [results], by.values()))

    for argument, x in given.items():
        along = rng.standard_normal(x.shape)
        h = 1e-5
        slope = (value(**{argument: x + h * along}) - value(**{argument: x - h * along})) / (2 * h)
        assert g[argument].shape == x.shape
        assert abs(slope - (g[argument] * along).sum()) <= 1e-6 * (1 + abs(slope)), (argument, slope, (g[argument] * along).sum())


def test_wanted_gradients_alone(rng):
    q, k, v = problem(rng)
    op = attune.op("softmax")
    dout = rng.standard_normal((*q.shape[:3], v.shape[3]))
    every = op.vjp(q, k, v, dout=dout)
    assert set(every) == {"q", "k", "v", "kernel.scale"}
    only = op.vjp(q, k, v, dout=dout, wanted=["k", "scale"])
    assert set(only) == {"k", "kernel.scale"}
    assert all(np.array_equal(only[name], every[name]) for name in only)


@pytest.mark.skipif("top_k" not in attune.presets(built=True), reason="built without top_k")
def test_constants(rng):
    op = attune.op("top_k")
    assert op.constants == {"k": 8.0}
    q, k, v = (rng.standard_normal((1, 1, 5, 4)) for _ in range(3))
    best = v[:, :, np.argmax(np.einsum("id,jd->ij", q[0, 0], k[0, 0]), axis=1)]
    assert np.allclose(op(q, k, v, constant_k=1), best)
    with pytest.raises(attune.Error, match="constant k has the value 2.5; expected a whole number"):
        op(q, k, v, constant_k=2.5)


def test_offset(rng):
    q, k, v = (rng.standard_normal((2, 1, n, 4)) for n in (2, 6, 6))
    op = attune.op("softmax")
    both = op(q, k, v, mask=masks.causal(), offset=np.array([1, 3]))
    for b, start in enumerate((1, 3)):
        alone = op(q[b : b + 1], k[b : b + 1], v[b : b + 1], mask=masks.causal(), offset=start)
        assert np.array_equal(both[b], alone[0])


def test_empty_and_unseen_rows():
    op = attune.op("softmax")
    x = np.ones((1, 1, 3, 2))
    out, lse = op(x, x, x, mask=masks.padding([0]), returns=("out", "lse"))
    assert np.array_equal(out, np.zeros_like(x)) and np.all(lse == -np.inf)
    assert op(x[:, :, :0], x, x).shape == (1, 1, 0, 2)
    assert np.array_equal(op(x, x[:, :, :0], x[:, :, :0]), np.zeros_like(x))
    assert op(x[:0], x[:0], x[:0]).shape == (0, 1, 3, 2)


def test_nan_in_padding_stays_outside(rng):
    q, k, v = (rng.standard_normal((1, 2, 4, 3)) for _ in range(3))
    k[:, :, 2:] = v[:, :, 2:] = np.nan
    out = attune.op("softmax")(q, k, v, mask=masks.padding([2]))
    assert np.isfinite(out).all()


def test_pickle_and_copy(rng):
    q, k, v = problem(rng)
    op, mask = attune.op("softmax"), masks.documents(np.zeros(q.shape[2], int), np.arange(k.shape[2]) % 2) | masks.causal()
    same = pickle.loads(pickle.dumps((op, mask)))
    for o, m in (same, copy.deepcopy((op, mask))):
        assert np.array_equal(o(q, k, v, mask=m), op(q, k, v, mask=mask))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork(rng):
    q, k, v = (rng.standard_normal((1, 4, 70, 8)) for _ in range(3))
    op = attune.op("softmax")
    expected = op(q, k, v, threads=2)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(op(q, k, v, threads=2), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_dlpack(rng):
    class Foreign:
        """An array of a library that speaks nothing but DLPack."""

        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **more):
            return self.x.__dlpack__()

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    q, k, v = (np.ascontiguousarray(x) for x in problem(rng))
    op = attune.op("softmax")
    assert np.array_equal(op(*map(Foreign, (q, k, v))), op(q, k, v))


def test_places_of_headers():
    assert os.path.exists(os.path.join(attune.get_include(), "attune", "attune.hpp"))
    assert attune.__version__.count(".") == 2
