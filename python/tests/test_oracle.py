# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""attune.reference, attune.verdict and attune.testing: exact numbers, planted defects, right kernels, wrong arguments."""

import decimal
import json

import dense
import numpy as np
import pytest

import attune
from attune import _headers, masks
from attune._compile import _compiler

compiles = pytest.mark.compiles
CAUSAL = masks.causal()


def drawn(rng, kind=np.float32, queries=9, keys=14, width=16, heads=4, key_heads=2):
    shapes = (1, heads, queries, width), (1, key_heads, keys, width), (1, key_heads, keys, width)
    return tuple(rng.standard_normal(shape).astype(kind) for shape in shapes)


def seen(queries, keys):
    return np.arange(keys) <= np.arange(queries)[:, None] + keys - queries


# --- exact results ----------------------------------------------------------------------------------------------------


@compiles
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_reference_is_dense_numpy(kind, rng):
    q, k, v = drawn(rng, kind)
    exact = attune.reference("softmax", q, k, v, mask=CAUSAL)
    out, lse = dense.softmax(q, k, v, seen(9, 14))
    near = dict(rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(exact.out, out, **near)
    np.testing.assert_allclose(exact.lse, lse, **near)
    scores = np.einsum("bhid,bhjd->bhij", q.astype(np.float64), dense.heads_of(k, 4).astype(np.float64)) / 4
    np.testing.assert_allclose(exact.scores, np.where(seen(9, 14), scores, -np.inf), **near)
    np.testing.assert_allclose(exact.weights, np.exp(exact.logits - exact.lse[..., None]), **near)
    assert np.array_equal(exact.visible, np.broadcast_to(seen(9, 14), (1, 4, 9, 14)))
    assert exact.out.dtype == np.float64 and exact.visible.dtype == np.bool_
    assert exact.ground_weight is None and exact.threshold is None
    turned = (np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in (q, k, v))
    assert np.array_equal(attune.reference("softmax", *turned, mask=CAUSAL, layout="blhd").out, exact.out.transpose(0, 2, 1, 3))


@compiles
def test_scores_and_logits_are_told_apart(rng):
    q, k, v, gq, gk = (rng.standard_normal((1, 2, n, 8)) for n in (4, 6, 6, 4, 6))
    op, call = attune.op("principled"), dict(gate_q=gq, gate_k=gk, mask=CAUSAL)
    named = {"length_scale.gamma": 0.5, "normalizer.gamma": 0.5}
    exact = op.reference(q, k, v, **call, **named)
    out, ground = op(q, k, v, returns=("out", "ground_weight"), **call, **named)
    np.testing.assert_allclose(exact.out, out, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(exact.ground_weight, ground, rtol=1e-11)
    np.testing.assert_allclose(exact.weights.sum(-1) + exact.ground_weight, 1, rtol=1e-12)
    plain = np.einsum("bhid,bhjd->bhij", q, k) * 8**-0.5
    np.testing.assert_allclose(exact.scores, np.where(seen(4, 6), plain, -np.inf), rtol=1e-12)
    visible = exact.visible
    assert np.abs(exact.logits[visible] - exact.scores[visible]).max() > 0.1


@compiles
def test_fifty_digits_are_correctly_rounded(rng):
    q, k, v = drawn(rng, queries=3, keys=5, width=4, heads=2, key_heads=1)
    op = attune.op("softmax")
    exact = op.reference(q, k, v, mask=CAUSAL, digits=50)
    with decimal.localcontext() as context:
        context.prec = 60
        q, k, v = (np.vectorize(lambda x: decimal.Decimal(float(x)), otypes=[object])(x) for x in (q, k, v))
        for h in range(2):
            for i in range(3):
                masses = [(q[0, h, i] @ k[0, 0, j] / 2).exp() for j in range(i + 3)]
                assert exact.lse[0, h, i] == float(sum(masses).ln())
                for d in range(4):
                    assert exact.out[0, h, i, d] == float(sum(m * v[0, 0, j, d] for j, m in enumerate(masses)) / sum(masses))


@compiles
def test_gradients_of_the_reference(rng):
    q, k, v = drawn(rng, np.float64)
    dout, dlse = rng.standard_normal((1, 4, 9, 16)), rng.standard_normal((1, 4, 9))
    op = attune.op("softmax")
    exact = op.reference_vjp(q, k, v, mask=CAUSAL, dout=dout, dlse=dlse, scale=0.3)
    other = op.vjp(q, k, v, mask=CAUSAL, dout=dout, dlse=dlse, scale=0.3)
    assert exact.keys() == other.keys()
    for name in exact:
        np.testing.assert_allclose(exact[name], other[name], rtol=1e-11, atol=1e-12, err_msg=name)
    direction, step = rng.standard_normal(k.shape), 1e-5

    def value(k):
        out, lse = dense.softmax(q, k, v, seen(9, 14), scale=0.3)
        return (out * dout).sum() + (lse * dlse).sum()

    slope = (value(k + step * direction) - value(k - step * direction)) / (2 * step)
    np.testing.assert_allclose((exact["k"] * direction).sum(), slope, rtol=1e-7)
    only = op.reference_vjp(q.astype(np.float32), k.astype(np.float32), v.astype(np.float32), dout=dout, wanted=("q",))
    assert only.keys() == {"q"} and only["q"].dtype == np.float64


# --- verdicts ---------------------------------------------------------------------------------------------------------


@compiles
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_right_kernels_pass(kind, rng):
    q, k, v = drawn(rng, kind)
    out, lse = dense.softmax(q, k, v, seen(9, 14))
    rows = lse.astype(np.float64 if kind == np.float64 else np.float32)
    report = attune.verdict("softmax", q, k, v, mask=CAUSAL, out=out.astype(kind), lse=rows)
    assert report and report.decision == "PASS" and report.stored == np.dtype(kind).name
    assert report.cause is None and report.reasons == []
    assert report.elements.out.outside == 0 and report.elements.out.count == out.size
    assert 0 < report.elements.lse.worst.error_over_bound <= 1
    assert 0 < report.residuals.out.overall < 1.5 and not report.residuals.out.found
    turned = (np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in (q, k, v, out.astype(kind)))
    q, k, v, out = turned
    assert attune.verdict("softmax", q, k, v, mask=CAUSAL, out=out, lse=rows, layout="blhd")


@compiles
def test_a_region_with_too_large_residuals_is_named(rng):
    """The size of the residuals, in the region and everywhere; the text has the size and the place, too."""
    q, k, v = drawn(rng)
    out, _ = dense.softmax(q, k, v, seen(9, 14))
    out = out.astype(np.float32)
    out[:, 1] *= np.float32(1.001)
    report = attune.verdict("softmax", q, k, v, mask=CAUSAL, out=out)
    found = report.residuals.out
    assert not report and found.found and found.where == "in head 1"
    assert found.times > found.limit and found.times > found.overall > 1
    assert f"the residuals are {found.overall:.3g} times what rounding leaves" in str(report)
    assert "in head 1" in str(report)


@compiles
def test_a_report_of_infinities_is_json():
    q, k, v = (np.random.default_rng(n).standard_normal((1, 2, 6, 4), dtype=np.float32) for n in range(3))
    op = attune.op("softmax")
    out, lse = op(q, k, v, mask=masks.causal(), offset=-1, returns=("out", "lse"))  # query 0 sees no key

    def refuse(text):
        raise ValueError(text)

    report = attune.verdict(op, q, k, v, out=out, lse=lse, mask=masks.causal())
    told = json.loads(report.json, parse_constant=refuse)
    assert told["decision"] == "FAIL" and told["verdict"]["outputs"]["elements"]["lse"]["worst"]["got"] == "-inf"
    assert report.cause.name == "mask shifted by -1"
    assert not any(np.isnan(finding.z) for finding in report.findings)


@compiles
def test_a_wrong_scale_is_named(rng):
    q, k, v = drawn(rng)
    out, _ = dense.softmax(q, k, v, seen(9, 14), scale=17**-0.5)
    report = attune.verdict("softmax", q, k, v, mask=CAUSAL, out=out.astype(np.float32))
    assert not report and report.decision == "FAIL"
    assert report.cause.name == "kernel.scale"
    assert str(report).startswith("FAIL\n  " + report.cause.words)
    scale = next(f for f in report.findings if f.name == "kernel.scale")
    assert abs(scale.estimate - ((16 / 17) ** 0.5 - 1)) < 1e-3
    worst = report.elements.out.worst
    assert worst.got == out.astype(np.float32)[worst.batch, worst.head, worst.query, worst.feature]
    told = json.loads(report.json)
    assert told["decision"] == "FAIL" and told["verdict"]["outputs"]["cause"]["name"] == "kernel.scale"


@compiles
def test_a_mask_of_the_wrong_corner_is_named(rng):
    q, k, v = drawn(rng)
    out, _ = dense.softmax(q, k, v, np.arange(14) <= np.arange(9)[:, None])
    report = attune.verdict("softmax", q, k, v, mask=CAUSAL, out=out.astype(np.float32))
    assert report.cause.name == "mask aligned top-left"


@compiles
def test_what_inputs_cannot_tell(rng):
    q, k, v = drawn(rng, np.float16)
    out = dense.softmax(q, k, v, seen(9, 14))[0].astype(np.float16)
    call = dict(mask=CAUSAL, out=out)
    assert attune.verdict("softmax", q, k, v, **call, must_detect={"kernel.scale": 0.5})
    report = attune.verdict("softmax", q, k, v, **call, must_detect="scale=1e-9")
    assert report.decision == "UNDECIDABLE" and "would go unnoticed" in report.reasons[0]
    with pytest.raises(attune.Error, match='must_detect has the name "nothing"'):
        attune.verdict("softmax", q, k, v, **call, must_detect=["nothing"])


@compiles
def test_narrow_numbers_in_wide_arrays(rng):
    q, k, v = drawn(rng)
    out = dense.softmax(q, k, v, seen(9, 14))[0]
    narrow = out.astype(np.float16).astype(np.float32)
    report = attune.verdict("softmax", q, k, v, mask=CAUSAL, out=narrow)
    assert report.decision == "FAIL" and report.hints == ['every number is a float16: if the kernel wrote those, say dtype="float16"']
    assert attune.verdict("softmax", q, k, v, mask=CAUSAL, out=narrow, dtype="float16")
    with pytest.raises(attune.Error, match="numbers of fp16"):
        attune.verdict("softmax", q, k, v, mask=CAUSAL, out=out.astype(np.float32), dtype="fp16")


@compiles
def test_float32_in_float64(rng):
    """Also where the inputs have more digits."""
    q, k, v = drawn(rng, np.float64)
    dout = rng.standard_normal((1, 4, 9, 16))
    out = dense.softmax(*(x.astype(np.float32) for x in (q, k, v)), seen(9, 14))[0].astype(np.float32)
    report = attune.verdict("softmax", q, k, v, mask=CAUSAL, out=out.astype(np.float64))
    assert report.cause.name == "computed in fp32"
    assert report.hints == ['every number is a float32: if the kernel wrote those, say dtype="float32"']
    assert attune.verdict("softmax", q, k, v, mask=CAUSAL, out=out.astype(np.float64), dtype="float32").hints == []
    g = attune.op("softmax").vjp(*(x.astype(np.float32) for x in (q, k, v)), mask=CAUSAL, dout=dout.astype(np.float32))
    report = attune.verdict("softmax", q, k, v, mask=CAUSAL, dout=dout, **{f"d{n}": g[n].astype(np.float64) for n in "qkv"})
    assert report.cause.name == "computed in fp32" and len(report.hints) == 1


@compiles
def test_results_that_are_nan(rng):
    q, k, v = drawn(rng)
    out = np.full((1, 4, 9, 16), np.nan, np.float32)
    report = attune.verdict("softmax", q, k, v, mask=CAUSAL, out=out)
    assert report.reasons[0] == "all elements of out are NaN; no known defect explains it"
    assert report.elements.out.nan == out.size and "weights off" not in str(report)


@compiles
def test_a_sink_too_many_is_named(rng):
    q, k, v = drawn(rng)
    out = attune.op("sink")(q, k, v, mask=CAUSAL, logit=0.0)
    report = attune.verdict("softmax", q, k, v, mask=CAUSAL, out=out)
    assert report.cause.name == "a sink of logit 0 that the operator does not have"


@compiles
def test_gradients(rng):
    q, k, v = drawn(rng)
    dout = rng.standard_normal((1, 4, 9, 16)).astype(np.float32)
    op = attune.op("softmax")
    g = op.vjp(q, k, v, mask=CAUSAL, dout=dout)
    out = op(q, k, v, mask=CAUSAL)
    call = dict(mask=CAUSAL, dout=dout)
    report = attune.verdict(op, q, k, v, **call, out=out, dq=g["q"], dk=g["k"], dv=g["v"])
    assert report and set(report.elements) == {"out", "dq", "dk", "dv"} and set(report.reports) == {"outputs", "gradients"}
    wrong = op.vjp(q, k, v, mask=CAUSAL, dout=dout, scale=0.26)
    report = attune.verdict(op, q, k, v, **call, out=out, dq=wrong["q"], dk=wrong["k"])
    assert report.decision == "FAIL" and report.reports.outputs.decision == "PASS"
    assert report.elements.dq.outside > 0 and str(report).startswith("outputs: PASS\n")


@compiles
def test_gradients_of_parameters(rng):
    q, k, v = drawn(rng)
    dout, logit = rng.standard_normal((1, 4, 9, 16)).astype(np.float32), np.array([0.5, -1, 0, 2], np.float32)
    op = attune.op("sink")
    g = op.vjp(q, k, v, mask=CAUSAL, dout=dout, logit=logit)
    call = dict(mask=CAUSAL, dout=dout, logit=logit)
    report = attune.verdict(op, q, k, v, **call, gradients=g)
    assert report and set(report.elements) == {"dq", "dk", "dv", "dkernel.scale", "dnormalizer.logit"}
    assert report.elements["dnormalizer.logit"].count == 4
    one = g["normalizer.logit"]
    assert attune.verdict(op, q, k, v, **call, dlogit=one) and not attune.verdict(op, q, k, v, **call, dlogit=-one)
    # Numbers of 16 bits have an error of their own, and 32 bits promise more.
    narrow = one.astype(np.float16)
    assert attune.verdict(op, q, k, v, **call, dq=g["q"], dlogit=narrow)
    assert not attune.verdict(op, q, k, v, **call, dq=g["q"], dlogit=narrow.astype(np.float32))
    with pytest.raises(attune.Error, match=r"dnormalizer.logit.*shape"):
        attune.verdict(op, q, k, v, **call, dlogit=one[:3])


@compiles
def test_lse_of_base_two(rng):
    q, k, v = drawn(rng)
    out, lse = attune.op("softmax")(q, k, v, mask=CAUSAL, returns=("out", "lse"))
    two = (lse / np.log(2)).astype(np.float32)
    call = dict(mask=CAUSAL, out=out)
    assert attune.verdict("softmax", q, k, v, **call, lse=two, lse_base=2)
    report = attune.verdict("softmax", q, k, v, **call, lse=two)
    assert not report and "base" in report.reasons[0]
    report = attune.verdict("softmax", q, k, v, **call, lse=lse, lse_base=2)
    assert not report and "base" in report.reasons[0]


# --- probes -----------------------------------------------------------------------------------------------------------


def plain(scale=None, align="end"):
    """A kernel in NumPy."""

    def kernel(q, k, v):
        queries, keys = q.shape[2], k.shape[2]
        shown = seen(queries, keys) if align == "end" else np.arange(keys) <= np.arange(queries)[:, None]
        v = np.where(np.isnan(v), 0, v)  # of keys that no query sees
        k = np.where(np.isnan(k), 0, k)
        out, lse = dense.softmax(q, k, v, shown, scale=scale)
        return out.astype(np.float32), lse.astype(np.float32)

    return kernel


SMALL = dict(mask=CAUSAL, queries=12, keys=20, width=16, heads=4, key_heads=2, dtype=np.float32, gradients=False)


def fails(kernel, words, **more):
    """The text of the AssertionError that judges the kernel."""
    with pytest.raises(AssertionError, match=words) as failed:
        attune.testing.assert_attention(kernel, "softmax", **{**SMALL, **more})
    return str(failed.value)


@compiles
def test_probes_of_a_kernel_in_numpy():
    verdicts = attune.testing.assert_attention(plain(), "softmax", must_detect={"kernel.scale": 0.01}, **SMALL)
    assert {probe.name for probe, _ in verdicts} >= {"random", "values one", "two keys", "block edge 63"}
    text = fails(plain(scale=17**-0.5), r"^behaves as if kernel.scale were -(2\.9|3)", seeds=(5,))
    assert "'random', seed 5" in text.split("\n")[1]
    fails(plain(align="start"), "^behaves as if: mask aligned top-left")
    fails(plain(), "^UNDECIDABLE: kernel.scale: 1e-12 would go unnoticed", must_detect={"scale": 1e-12})
    fails(plain(), "^UNDECIDABLE: sink: no probe shows it", must_detect=["sink"])


@compiles
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_that_overflow(dtype):
    def kernel(q, k, v):
        shown = seen(q.shape[2], k.shape[2])
        k, v = (dense.heads_of(np.where(np.isnan(x), 0, x), q.shape[1]) for x in (k, v))
        with np.errstate(all="ignore"):
            w = np.where(shown, np.exp(q @ k.swapaxes(2, 3) / dtype(q.shape[3] ** 0.5)), dtype(0))
            return w / w.sum(-1, keepdims=True) @ v

    fails(kernel, "^behaves as if: exponentials overflow and underflow", dtype=dtype)


@compiles
def test_a_named_cause_is_reported_before_a_nameless_one():
    calls = []

    def kernel(q, k, v):
        calls.append(q)
        out, _ = plain(scale=17**-0.5 if len(calls) > 1 else None)(q, k, v)
        return out + (0.1 * np.sin(np.arange(out.size) ** 2).reshape(out.shape).astype(np.float32) if len(calls) == 1 else 0)

    assert "'random'" not in fails(kernel, "^behaves as if kernel.scale")


@compiles
def test_what_kernels_need_not_promise_is_judged_if_the_caller_is_strict():
    window = {**SMALL, "mask": masks.window(3, 0), "queries": 4}

    def kernel(q, k, v):  # 0 times NaN of a key that no query sees is NaN
        at = np.arange(k.shape[2] - q.shape[2], k.shape[2])[:, None] - np.arange(k.shape[2])
        out, lse = dense.softmax(q, k, v, (at >= 0) & (at <= 3))
        return out.astype(np.float32), lse.astype(np.float32)

    assert not [p for p, _ in attune.testing.assert_attention(kernel, "softmax", **window) if p.name == "hidden NaN"]
    text = fails(kernel, "elements of out are NaN", **window, strict=True).split("\n")
    assert "'hidden NaN'" in text[1] and "which reveals reads what no query sees" in text[1]
    assert text[2] == "  contract of strict=True: NaN in keys and values that no query sees never reaches a result"

    def own(q, k, v):
        return attune.op("softmax")(q, k, v, mask=window["mask"], returns=("out", "lse"))

    assert [p for p, _ in attune.testing.assert_attention(own, "softmax", **window, strict=True) if p.name == "hidden NaN"]


@compiles
def test_probes_are_the_same_for_a_seed():
    call = dict(mask=CAUSAL, heads=2, queries=5, keys=7, width=4, dtype=np.float16)
    a, b, c = (attune.testing.probes("softmax", seed=seed, **call) for seed in (3, 3, 4))
    assert np.array_equal(a[0].q, b[0].q) and not np.array_equal(a[0].q, c[0].q)
    assert a[0].q.dtype == np.float16 and a[0].k.shape == (1, 2, 7, 4) and a[0].dout.shape == (1, 2, 5, 4)
    turned = attune.testing.probes("softmax", seed=3, layout="blhd", **call)
    assert np.array_equal(turned[0].k.transpose(0, 2, 1, 3), a[0].k)
    assert str(a[1]) == "values_one_seed_3" and a[1].reveals.startswith("the sum of weights")


# --- wrong calls ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, text",
    [
        (dict(), "verdict has no results; expected out, what the kernel computed"),
        (dict(lse=1), "lse has an array, and out has none"),
        (dict(dq=1), "dq has an array, and dout has none"),
        (dict(dout=1, out=1), "dout has an array; expected None, or also gradients of it"),
        (dict(out=1.5), "out has the type float; expected an array"),
        (dict(gradients=[1]), "gradients has the type list; expected a dict as op.vjp() returns it"),
        (dict(gradients={"logit": 1}), "gradients has the name 'logit'; expected some of"),
        (dict(gradients={"q": 1}, dq=1), "dq has two arrays; expected the argument, or its entry in gradients"),
        (dict(out=np.zeros(3, np.int64)), "the type of out has the value"),
        (dict(out=np.zeros(3), dtype="float8"), "dtype has the value 'float8'; expected float64, float32"),
        (dict(out=np.zeros(3), arithmetic="bf16"), "arithmetic has the value 'bf16'; expected float32 or float64"),
        (dict(out=np.zeros(3), must_detect={"scale": -1}), "must_detect has the entry 'scale': -1"),
        (dict(out=np.zeros(3), ground_weight=np.zeros(3)), "ground_weight has an array; expected None: softmax has no"),
    ],
)
def test_wrong_verdicts(given, text):
    q = np.zeros((1, 1, 2, 4))
    with pytest.raises(attune.Error) as refused:
        attune.verdict("softmax", q, q, q, **given)
    assert text in str(refused.value)


def test_wrong_references():
    q = np.zeros((1, 1, 2, 4))
    for given, text in [(dict(digits=30), "digits has the value 30; expected None for float64, or 50")]:
        with pytest.raises(attune.Error, match=text):
            attune.reference("softmax", q, q, q, **given)
    with pytest.raises(attune.Error, match="op has the type int; expected an operator of attune, or the name"):
        attune.reference(7, q, q, q)
    with pytest.raises(TypeError, match="has no argument 'sharpness'"):
        attune.reference("softmax", q, q, q, sharpness=1)


def test_wrong_probes():
    for given, text in [
        (dict(heads=4, key_heads=3), "key_heads has the value 3; expected a divisor of 4"),
        (dict(queries=0), "queries has the value 0; expected a whole number of at least 1"),
        (dict(seed=-1), "seed has the value -1"),
        (dict(dtype="bfloat16", arrays="numpy"), "NumPy has no bfloat16"),
        (dict(arrays="jax"), "arrays has the value 'jax'"),
    ]:
        with pytest.raises(attune.Error, match=text):
            attune.testing.probes("softmax", **given)


@compiles
def test_shapes_of_results(rng):
    q, k, v = drawn(rng)
    with pytest.raises(attune.Error, match=r"out has shape \(1, 4, 9, 15\); expected \(1, 4, 9, 16\)"):
        attune.verdict("softmax", q, k, v, out=np.zeros((1, 4, 9, 15)))
    # An lse of 16 bits is judged as such.
    assert not attune.verdict("softmax", q, k, v, out=np.zeros((1, 4, 9, 16)), lse=np.zeros((1, 4, 9), np.float16))
    with pytest.raises(attune.Error, match="out has 3 axes"):
        attune.verdict("softmax", q, k, v, out=np.zeros((4, 9, 16)))


@compiles
def test_missing_headers():
    words = _compiler(None)
    with pytest.raises(attune.CompileError, match="needs the headers of Eigen.*libeigen3-dev.*ATTUNE_CXX='.* -isystem"):
        _headers.flags([*words, "-nostdinc"], "verdict")
    assert _headers.flags([*words, "-nostdinc"], "statistics") == []
