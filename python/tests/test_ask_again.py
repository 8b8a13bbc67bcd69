# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""A kernel that failed is asked again: its smallest failing call, and the weights that it used."""

import time
from types import SimpleNamespace

import dense
import numpy as np
import pytest

import attune
from attune import _ask_again, masks
from attune._weights_seen import differences, of_keys
from attune.testing import Probe, _Arrays

compiles = pytest.mark.compiles
CAUSAL = masks.causal()


def seen(queries, keys, shift=0):
    return np.arange(keys) <= np.arange(queries)[:, None] + keys - queries + shift


# --- the weights in words ---------------------------------------------------------------------------------------------


def weights(a, shown):
    w = np.where(shown, np.exp(a), 0)
    return w / np.maximum(w.sum(-1, keepdims=True), 1e-300)


def told(change, queries=24, keys=40, unit=2.0**-24):
    """The lines on weights that `change` makes of the logits and the keys that are seen."""
    a, shown = 0.7 * np.random.default_rng(1).standard_normal((queries, keys)), seen(queries, keys)
    other = change(a.copy(), shown.copy())
    return differences(weights(*other), weights(a, shown), range(queries), range(keys), unit)


J = np.arange(40)


@pytest.mark.parametrize(
    "change, first",
    [
        (lambda a, s: (a, seen(24, 40, 1)), "query i sees keys up to i + 17, not i + 16"),
        (lambda a, s: (a, seen(24, 40, -1)), "query i sees keys up to i + 15, not i + 16"),
        (lambda a, s: (a, seen(24, 40, -2)), "query i sees keys up to i + 14, not i + 16"),
        (lambda a, s: (a, s & (J >= 2)), "queries see keys from 2 on, not 0"),
        (lambda a, s: (a, s & (J % 16 != 15)), "keys j with j mod 16 = 15 (15, 31): weight 0 in all queries that see them"),
        (lambda a, s: (a, s & (J % 8 < 6)), "keys j with j mod 8 in 6..7 (6..7, 14..15, 22..23, ... (10 in all)): weight 0"),
        (lambda a, s: (a + np.where(J >= 16, np.log(1.4), 0), s), "keys 16..39: weights times 1.4, compared with the other"),
        (lambda a, s: (a + np.where(J < 8, np.log(1.4), 0), s), "keys 0..7: weights times 1.4, compared with the other keys"),
        (lambda a, s: (a + np.where(J % 4 == 1, np.log(0.9), 0), s), "keys j with j mod 4 = 1 (1, 5, 9, ... (10 in all)): weights"),
        (lambda a, s: (a * 1.25, s), "weights are the exact ones to the power 1.25: logits are 1.25 times the exact ones"),
        (lambda a, s: (np.where(J == 3, np.nan, a), s), "weights are NaN or infinite in all queries, all keys"),
        (lambda a, s: (a, s & ~((J == 7) & (np.arange(24) == 5)[:, None])), "key 7: weight 0, and it should not be, in query 5"),
    ],
    ids="plus1 minus1 minus2 first pages residues split low residue power nan one".split(),
)
def test_patterns_of_weights(change, first):
    lines = told(change)
    assert lines[0].startswith(first), lines
    assert len(lines) <= 5


def test_right_weights_have_no_lines():
    assert told(lambda a, s: (a, s)) == []
    assert told(lambda a, s: (a + 2.0**-9 * np.sin(np.arange(a.size)).reshape(a.shape), s), unit=2.0**-8) == []


def test_a_sum_that_is_off_by_less_than_the_rounding_of_one_weight():
    w = weights(np.zeros((24, 40)), np.ones((24, 40), bool))
    assert differences(w * 0.994, w, range(24), range(40), 2.0**-8) == ["the weights sum to 0.994 times the exact sums"]


def test_a_boundary_that_is_rounded_to_tiles():
    lines = told(lambda a, s: (a, J <= (np.arange(24)[:, None] + 16) // 8 * 8 + 7))
    assert lines[0].startswith("the last key that a query sees is off by +1 to +7 in queries 0..6, 8..14, 16..22: ")
    assert "query 0 sees keys up to 23, not 16" in lines[0]


def test_a_window_that_starts_late():
    i = np.arange(24)[:, None] + 16
    exact, wrong = (weights(np.zeros((24, 40)), (J <= i) & (J > i - n)) for n in (8, 7))
    assert differences(wrong, exact, range(24), range(40), 2.0**-24)[0] == "query i sees keys from i + 10 on, not i + 9"


def test_a_window_that_the_operator_does_not_have():
    i = np.arange(24)[:, None] + 16
    exact, wrong = (weights(np.zeros((24, 40)), (J <= i) & (J > i - n)) for n in (99, 30))
    line = differences(wrong, exact, range(24), range(40), 2.0**-24)[0]
    assert line == (
        "the first key that a query sees is off by +1 to +10: it is i - 13 for query i in queries 14..23: "
        "query 23 sees keys from 10, not 0"
    )


def test_weights_that_do_not_sum_to_one():
    w = weights(np.zeros((4, 6)), np.ones((4, 6), bool))
    assert differences(w * 1.02, w, range(4), range(6), 2.0**-24)[0] == "the sum of the weights is off by +0.02 in all queries"


def test_two_queries_with_the_largest_differences():
    w = weights(np.zeros((4, 6)), np.ones((4, 6), bool))
    other = w.copy()
    other[2, 3], other[2, 4] = 0, 0.3
    assert differences(other, w, range(10, 14), range(6), 2.0**-24)[-1] == (
        "query 12: keys 3 0 (exact 0.167), 4 0.3 (exact 0.167)"
    )


def test_words_of_keys():
    assert of_keys([1, 2, 3], range(9)) == "keys 1..3" and of_keys([7], range(9)) == "key 7"
    assert of_keys([0, 4, 8], range(9)) == "keys j with j mod 4 = 0 (0, 4, 8)"
    assert of_keys(list(range(9)), range(9)) == "all keys"


# --- the smallest failing call ----------------------------------------------------------------------------------------


def drawn(
    batch=1, heads=4, key_heads=2, queries=24, keys=40, width=16, mask=CAUSAL, dtype=np.float32, layout="bhld", offset=None
):
    """A probe by hand: probes() compiles a library."""
    rng, to = np.random.default_rng(7), _Arrays(dtype, "numpy", None)
    one = Probe(attune.op("softmax"), dict(mask=mask, offset=offset, layout=layout), to, "random", "all", 1)
    for name, h, n in (("q", heads, queries), ("k", key_heads, keys), ("v", key_heads, keys)):
        x = rng.standard_normal((batch, h, n, width))
        one.inputs[name] = to.of(np.ascontiguousarray(x.transpose(0, 2, 1, 3)) if layout == "blhd" else x)
    return one


def kernel(shift=0, shown=None, factor=None, wrong_head=None, turned=False):
    """Causal attention in NumPy with a planted defect."""

    def run(q, k, v):
        q, k, v = ((x.transpose(0, 2, 1, 3) if turned else x) for x in (q, k, v))
        queries, keys = q.shape[2], k.shape[2]
        scale = np.full((q.shape[1], 1, 1), q.shape[3] ** -0.5)
        if wrong_head is not None:
            scale[wrong_head : wrong_head + 1] *= 1.2
        s = seen(queries, keys, shift) & (True if shown is None else shown(np.arange(keys)))
        bias = 0 if factor is None else np.log(factor(np.arange(keys)))
        out = dense.softmax(q, k, v, s, bias=bias, scale=scale)[0].astype(q.dtype)
        return out.transpose(0, 2, 1, 3) if turned else out

    return run


@pytest.fixture
def again(monkeypatch):
    """Asks a kernel again, with a verdict that no compiler is needed for: out is near to the operator's."""
    asked = []

    def verdict(operator, *, q, k, v, out, mask=None, offset=None, layout="bhld"):
        asked.append((q.shape, k.shape))
        right = operator(*(x.astype(np.float64) for x in (q, k, v)), mask=mask, offset=offset, layout=layout)
        if out.shape != right.shape:
            raise attune.Error("out has another shape")
        wrong = not np.allclose(out, right, rtol=0, atol=1e-2 if out.dtype == np.float16 else 1e-4)
        return SimpleNamespace(decision="FAIL" if wrong else "PASS", reasons=["out is wrong"])

    monkeypatch.setattr(_ask_again, "verdict", verdict)

    def ask(run, probe, **how):
        ask.asked = asked
        asked.clear()
        return probe.ask_again(run, **how)

    return ask


def test_a_mask_that_shows_one_key_more(again):
    text = again(kernel(shift=1), drawn())
    assert text.startswith("smallest failing call: 1 head of 4 (head 0), 2 queries of 24 (0..1), 2 keys of 40 (0..1)\n")
    assert "\n  without the last query it passes\n" in text
    assert "weights seen (24 x 40 of head 0, values one-hot):\n  query i sees keys up to i + 17, not i + 16\n" in text


def test_pages_without_their_last_key(again):
    text = again(kernel(shown=lambda j: j % 16 != 15), drawn())
    assert "1 query of 24 (query 0), 16 keys of 40 (0..15)\n  without the last key it passes" in text
    assert "keys j with j mod 16 = 15 (15, 31): weight 0 in all queries that see them" in text


def test_a_split_with_a_stale_maximum(again):
    text = again(kernel(factor=lambda j: np.where(j >= 32, 1.4, 1)), drawn())
    assert "1 query of 24 (query " in text and "33 keys of 40 (0..32)" in text
    assert "keys 32..39: weights times 1.4, compared with the other keys" in text


def test_one_head_is_wrong(again):
    text = again(kernel(wrong_head=3), drawn())
    assert text.startswith("smallest failing call: 4 heads, 1 query of 24")
    assert "head 3 alone passes" in text and "of head 3, values one-hot" in text
    assert "logits are 1.2 times the exact ones" in text


def test_one_batch_element_is_wrong(again):
    probe = drawn(batch=3)
    marked = float(probe.q[2, 0, 0, 0])

    def run(q, k, v):
        out = kernel()(q, k, v)
        out[q[:, 0, 0, 0] == marked] *= 2
        return out

    text = again(run, probe)
    assert text.startswith("smallest failing call: 1 batch element of 3 (batch element 2), 1 head of 4 (head 0), 1 query")


def test_values_that_are_read_at_other_features(again):
    text = again(lambda q, k, v: kernel()(q, k, np.where(np.abs(v) > 1, v * 2, v)), drawn())
    assert "are the exact ones: look at how values are read and results are written" in text


def test_a_kernel_that_refuses_shapes(again):
    def run(q, k, v):
        if q.shape[2] % 8 or k.shape[2] % 8:
            raise ValueError("multiples of 8 only")
        return kernel(shift=1)(q, k, v)

    text = again(run, drawn())
    assert text.startswith("smallest failing call: 1 head of 4 (head 0), 8 queries of 24 (")
    assert "8 keys of 40" in text


def test_a_kernel_that_takes_one_shape_only(again):
    def run(q, k, v):
        if q.shape + k.shape != (1, 4, 24, 16, 1, 2, 40, 16):
            raise ValueError("another shape")
        return kernel(shift=1)(q, k, v)

    text = again(run, drawn())
    assert text.startswith("smallest failing call: 4 heads, 24 queries, 40 keys\n")
    assert "query i sees keys up to i + 17, not i + 16" in text


def test_no_call_is_made_that_the_mask_does_not_mean(again):
    again(kernel(shift=1), drawn(queries=30, keys=20))
    assert all(k[2] - q[2] >= -10 for q, k in again.asked)
    table = masks.visible(seen(24, 40))
    text = again(kernel(shift=1), drawn(mask=table))
    assert "1 head of 4 (head 0), 24 queries, 40 keys\n" in text
    assert {(q[2], k[2]) for q, k in again.asked} == {(24, 40)}
    again(lambda q, k, v: 2 * kernel(shift=3)(q, k, v), drawn(offset=16))
    assert {k[2] for _, k in again.asked} == {40} and len({q[2] for q, _ in again.asked}) > 3


def test_key_heads_are_cut_with_the_heads_that_share_them(again):
    again(kernel(shift=1, wrong_head=5), drawn(heads=6, key_heads=3))
    assert {(q[1], k[1]) for q, k in again.asked} <= {(6, 3), (4, 2), (3, 2), (2, 1), (1, 1)}
    assert all(q[1] % k[1] == 0 for q, k in again.asked)


def test_layouts(again):
    text = again(kernel(shift=1, turned=True), drawn(layout="blhd"))
    assert "2 queries of 24 (0..1), 2 keys of 40 (0..1)" in text and "query i sees keys up to i + 17, not i + 16" in text


def test_sixteen_bits(again):
    text = again(kernel(shift=1), drawn(dtype=np.float16))
    assert "with inputs of float32 it fails, too" in text

    def rounds(q, k, v):
        out = kernel()(q, k, v)
        return out if q.dtype == np.float32 else out * np.float16(1.25)

    assert "with inputs of float32 it passes" in again(rounds, drawn(dtype=np.float16))


def test_a_kernel_whose_results_differ(again):
    assert again(kernel(), drawn()) == "asked again, the same call passes: the results differ from run to run"


def test_a_slow_kernel_has_its_time(again):
    def run(q, k, v):
        time.sleep(0.2)
        return kernel(shift=1)(q, k, v)

    started = time.perf_counter()
    text = again(run, drawn(), seconds=1)
    assert time.perf_counter() - started < 2
    assert text.startswith("smallest failing call: 1 head of 4") and text.endswith("the time for asking again (1 s) was over")
    probe = drawn()
    probe._took = 30
    assert again(run, probe, seconds=1) == "not asked again: 1 s are too few for another call" and again.asked == []


def test_inputs_stay_as_they_are(again):
    def run(q, k, v):
        out = kernel(shift=1)(q, k, v)
        for x in (q, k, v):
            x[:] = 0
        return out

    probe = drawn()
    before = {name: x.copy() for name, x in probe.inputs.items()}
    assert "2 queries of 24" in again(run, probe)
    assert all(np.array_equal(x, probe.inputs[name]) for name, x in before.items())


def test_an_operator_that_cannot_be_compiled(again, monkeypatch):
    def weights(self, part):
        raise attune.CompileError("attune: no compiler\nand more")

    monkeypatch.setattr(_ask_again.Asking, "weights", weights)
    text = again(kernel(shift=1), drawn())
    assert text.startswith("smallest failing call: 1 head of 4") and text.endswith("weights not seen: attune: no compiler")


@compiles
def test_the_value_of_a_ground_is_no_weight(again, monkeypatch):
    def verdict(operator, *, out, **call):
        right = operator(**{n: x.astype(np.float64) if isinstance(x, np.ndarray) else x for n, x in call.items()})
        return SimpleNamespace(decision="PASS" if np.allclose(out, right, atol=1e-4) else "FAIL", reasons=["out is wrong"])

    monkeypatch.setattr(_ask_again, "verdict", verdict)
    probe, rng = drawn(), np.random.default_rng(1)
    probe.operator = attune.op("principled")
    probe._call.update({"length_scale.gamma": 0.5, "normalizer.gamma": 0.5})
    for name, shape in dict(gate_q=(1, 4, 24, 16), gate_k=(1, 2, 40, 16), v0=(1, 4, 1, 16)).items():
        probe.inputs[name] = rng.standard_normal(shape).astype(np.float32)

    def run(q, k, v, **more):
        numbers = {"length_scale.gamma": 0.5, "normalizer.gamma": 0.5}
        return probe.operator(q, k, v, mask=CAUSAL & masks.window(2, 0), **more, **numbers)

    text = again(run, probe)
    assert "values one-hot):\n" in text and "i + 14 for query i" in text, text


def test_equal_questions_have_equal_answers(again):
    assert again(kernel(shift=1), drawn()) == again(kernel(shift=1), drawn())


def test_wrong_seconds():
    with pytest.raises(attune.Error, match="seconds has the value -1; expected seconds, or 0"):
        drawn().ask_again(kernel(), seconds=-1)


# --- assert_attention -------------------------------------------------------------------------------------------------

SMALL = dict(mask=CAUSAL, queries=12, keys=20, width=16, heads=4, key_heads=2, dtype=np.float32, gradients=False)


def clean(run):
    """A kernel that takes NaN in keys and values that no query sees."""
    return lambda q, k, v: run(q, *(np.where(np.isnan(x), 0, x).astype(x.dtype) for x in (k, v)))


@compiles
def test_an_assertion_asks_again():
    with pytest.raises(AssertionError) as failed:
        attune.testing.assert_attention(clean(kernel(shift=1)), "softmax", **SMALL)
    lines = str(failed.value).split("\n")
    assert lines[2] == "  smallest failing call: 1 head of 4 (head 0), 2 queries of 12 (0..1), 2 keys of 20 (0..1)"
    assert "    query i sees keys up to i + 9, not i + 8" in lines
    with pytest.raises(AssertionError) as failed:
        attune.testing.assert_attention(clean(kernel(shift=1)), "softmax", **SMALL, ask_again=0)
    assert "smallest failing call" not in str(failed.value)
    with pytest.raises(attune.Error, match="ask_again has the value 'no'"):
        attune.testing.assert_attention(clean(kernel()), "softmax", **SMALL, ask_again="no")


@compiles
def test_gradients_are_asked_again():
    torch = pytest.importorskip("torch")

    class halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, d):
            d = d.clone()
            d[:, :, 16:] /= 2
            return d

    def run(q, k, v):
        shown = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
        k = halved.apply(k)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=shown, enable_gqa=True)

    how = dict(mask=CAUSAL, queries=3, keys=20, width=8, heads=2, key_heads=1)
    with pytest.raises(AssertionError) as failed:
        attune.testing.assert_attention(run, "softmax", **how)
    text = str(failed.value)
    assert "smallest failing call: 1 head of 2" in text and "17 keys of 20" in text
    assert "weights" not in text.split("meant to be")[0]
