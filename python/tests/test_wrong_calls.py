# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Wrong calls end in exceptions that name the argument, its value and the expectation. They never end the process."""

import sys
import types

import numpy as np
import pytest

import attune
from attune import masks

X = np.ones((2, 4, 3, 5), np.float32)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda op: op(X, X), "v has no value; expected an array: softmax reads it"),
        (lambda op: op(), "q has no value"),
        (lambda op: op(X, X, X.astype(float)), "v has the type float64; expected float32, the type of q"),
        (lambda op: op(X.astype(int), X, X), "q has the type int64; expected float32 or float64"),
        (lambda op: op(X.astype(complex), X, X), "q has the type complex128; expected float32"),
        (lambda op: op(X.astype(">f4"), X, X), "q has the type >f4; expected float32"),
        (lambda op: op(X[0], X, X), "q has 3 axes; expected 4: (batch, head, position, feature)"),
        (lambda op: op(X, X[:, :3], X), "k has head extent 3; expected a divisor of 4, the number of query heads"),
        (lambda op: op(X, X[..., :4], X), "k has feature extent 4; expected 5, the width of q"),
        (lambda op: op(X, X[:1], X), "k has batch extent 1; expected 2"),
        (lambda op: op(X, X, X[:, :, :2]), "k has position extent 3; expected 2, the keys of v"),
        (lambda op: op(X, X, X, layout="lbhd"), "layout has the value 'lbhd'; expected \"bhld\" or \"blhd\""),
        (lambda op: op(X, X, X, returns=("out", "weights")), "returns has the output 'weights'; expected some of out, lse"),
        (lambda op: op(X, X, X, mask=X > 0), "mask has the type ndarray; expected a mask of attune.masks, for example masks.visible(table)"),
        (lambda op: op(X, X, X, mask=masks.padding([3, 4])), "lengths[1] has the value 4; expected a number in [0, 3]"),
        (lambda op: op(X, X, X, mask=masks.padding([3])), "lengths has 1 entries; expected 2, one per batch element"),
        (lambda op: op(X, X, X, mask=masks.documents([0, 1])), "2 query and 2 key entries; expected 3 and 3"),
        (lambda op: op(X, X, X, mask=masks.visible(X[0, 0] > 0)), "table has shape (1, 1, 3, 5); expected"),
        (lambda op: op(X, X, X, scale=np.ones(3, np.float32)), "parameter scale has shape (1, 3, 1, 1); expected (1 or 2, 1 or 4, 1 or 3, 1)"),
        (lambda op: op(X, X, X, scale="0.1s"), "kernel.scale has the value '0.1s'; expected a number"),
        (lambda op: op(X, X, X, scale=np.ones((1, 1, 1, 1, 1))), "kernel.scale has 5 axes; expected a number, (heads)"),
        (lambda op: op(X, X, X, scale=np.ones(4, int)), "kernel.scale has the type int64; expected float32, float64"),
        (lambda op: op(X, X, X, mask=True), "mask has the type bool; expected a mask of attune.masks, for example masks.causal()"),
        (lambda op: op(X, X, X, threads=-1), "threads has the value -1; expected a number of threads"),
        (lambda op: op(X, X, X, offset=1.5), "offset has the value 1.5; expected an integer"),
        (lambda op: op(X, X, X, offset=2**80), "expected an integer of 62 bits"),
        (lambda op: op.vjp(X, X, X, dout=X[:1]), "the gradient of out has the shape (1, 4, 3, 5); expected the shape of out"),
        (lambda op: op.vjp(X, X, X, dground_weight=X[..., 0]), "dground_weight has an array; expected None"),
        (lambda op: op.vjp(X, X, X, dout=X, wanted=["gate_q"]), "wanted has the name 'gate_q'; expected some of"),
        (lambda op: op("q", X, X), "q has the type str; expected an array of NumPy, torch or DLPack"),
        (lambda op: op(X, X, X[0, 0, 0]), "v has 1 axes; expected 4"),
        (lambda op: masks.window(-2, 0), "left has the value -2; expected an integer of at least 0"),
        (lambda op: masks.window(2**70, 0), "expected an integer of at least 0, below 2**62"),
        (lambda op: masks.padding([True, False]), "lengths has the type bool; expected integers. A table of booleans is a mask"),
        (lambda op: masks.from_cu_seqlens([False, True]), "cu_seqlens has the type bool; expected integers"),
        (lambda op: op(X, X, X, offset=[True, False]), "offset has the type bool; expected integers"),
        (lambda op: masks.padding(np.array([2**63, 1], np.uint64)), "lengths has a number of at least 2**63; expected integers below"),
        (lambda op: masks.padding([[1, 2], [3]]), "lengths has the value [[1, 2], [3]]; expected integers of 64 bits, and as many"),
        (lambda op: masks.documents([[1, 2], [3]]), "ids has the value [[1, 2], [3]]; expected integers"),
        (lambda op: masks.documents([0, 0, 0], [[1, 2], [3]]), "key_ids has the value [[1, 2], [3]]; expected integers"),
        (lambda op: masks.from_cu_seqlens([[1, 2], [3]]), "cu_seqlens has the value [[1, 2], [3]]; expected integers"),
        (lambda op: masks.from_cu_seqlens([0, 3], [[1, 2], [3]]), "cu_seqlens_k has the value [[1, 2], [3]]; expected integers"),
        (lambda op: masks.visible([[1, 1], [1]]), "table has the value [[1, 1], [1]]; expected bool, uint8"),
        (lambda op: masks.block_sparse([[1, 1], [1]], 2, 2), "table has the value [[1, 1], [1]]; expected bool, uint8"),
        (lambda op: op(X, X, X, offset=[[1], [2, 3]]), "offset has the value [[1], [2, 3]]; expected integers"),
        (lambda op: attune.rotary.angles(attune.rotary.plain(4), [[1, 2], [3]]), "positions has the value [[1, 2], [3]]; expected"),
        (lambda op: masks.causal("left"), "align has the value 'left'; expected \"end\" or \"start\""),
        (lambda op: masks.padding([1.5]), "lengths has the type float64; expected integers"),
        (lambda op: masks.visible(X), "table has the type float32; expected bool, uint8, or integers"),
        (lambda op: masks.block_sparse(X[0, 0] > 0, 0, 2), "query_block has the value 0; expected an integer of at least 1"),
        (lambda op: op(X, X[:1], X[:1]), "attune: k has batch extent 1; expected 2, the batch of q"),
        (lambda op: op(X, X, X[:1]), "attune: v has batch extent 1; expected 2, the batch of q"),
        (lambda op: attune.op("principled")(X, X, X, gate_q=X[:, :2], gate_k=X), "gate_q has head extent 2; expected 4, the heads of q"),
        (lambda op: attune.op("principled")(X, X, X, gate_q=X[:, :, :1], gate_k=X), "gate_q has position extent 1; expected 3, the queries of q"),
        (lambda op: op(X, X[:, :0], X[:, :0]), "v has head extent 0; expected at least 1, a divisor of 4, the number of"),
        (lambda op: op(X, X, X, offset=[1]), "offset has 1 numbers; expected an integer, or 2 of them"),
        (lambda op: op(X, X, X, offset=[0.5, 1]), "offset has the type float64; expected integers"),
        (lambda op: op(X, X, X, scale="1"), "kernel.scale has the value '1'; expected a number"),
        (lambda op: op(X, X, X, scale=["1"]), "scale has the value ['1']; expected a number or an array"),
        (lambda op: op(X, X, X, scale=[[1], [1, 2]]), "scale has the value [[1], [1, 2]]; expected a number or an array"),
        (lambda op: op.vjp(X, X, X), "dout has no value; expected an array, the gradient by out; some of dout, dlse"),
        (lambda op: op.reference_vjp(X, X, X), "dout has no value; expected an array, the gradient by out"),
        (lambda op: op(np.ma.masked_less(X, 0), X, X), "q has a masked array; expected an array without one: x.filled("),
        (lambda op: op(X, X, X, scale=np.ma.ones(4)), "kernel.scale has a masked array"),
        (lambda op: masks.padding(np.ma.ones(2, int)), "lengths has a masked array"),
        (lambda op: masks.visible(np.ma.ones((3, 3), bool)), "table has a masked array"),
        (lambda op: attune.op("sink")(X, X, X), "normalizer.logit has no value"),
        (lambda op: attune.op("sofmax"), "op has the name 'sofmax'; expected one of attune.presets(). Did you mean softmax"),
        (lambda op: attune.op("alibi_attention"), "Did you mean alibi?"),
        (lambda op: attune.op("flash"), "one of attune.presets(). In its place: softmax, which is fused"),
        (lambda op: attune.op(3), "op has the name 3; expected one of attune.presets()"),
    ],
)
def test_the_text_names_argument_value_and_expectation(call, text):
    with pytest.raises(attune.Error) as e:
        call(attune.op("softmax"))
    assert text in str(e.value)


@pytest.mark.parametrize("none", [X[:0], X[:, :0], X[:, :, :0]], ids=["batch", "heads", "queries"])
def test_no_rows_are_an_empty_result(none):
    out, lse = attune.op("softmax")(none, none, none, returns=("out", "lse"))
    assert out.shape == none.shape and lse.shape == none.shape[:3]
    gradients = attune.op("softmax").vjp(none, none, none, dout=none)
    assert all(gradients[name].shape == none.shape for name in "qkv")


def test_ids_may_be_booleans():
    ids = np.array([True, True, False])
    assert np.array_equal(attune.op("softmax")(X, X, X, mask=masks.documents(ids)), attune.op("softmax")(X, X, X, mask=masks.documents([1, 1, 0])))


@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_are_arrays(kind):
    op = attune.op("sink")
    numbers = kind([0.5, 1, 2, 3])
    given = {"mask": masks.causal(), "offset": kind([0, 1])}
    arrays = {"mask": masks.causal(), "offset": np.array([0, 1])}
    out = op(X, X, X, logit=np.array(numbers), **arrays)
    assert np.array_equal(op(X, X, X, logit=numbers, **given), out)
    by_logit = op.vjp(X, X, X, logit=numbers, dout=X, **given)["normalizer.logit"]
    assert np.array_equal(by_logit, op.vjp(X, X, X, logit=np.array(numbers), dout=X, **arrays)["normalizer.logit"])
    x = X.astype(float)
    assert np.array_equal(op(x.tolist(), x, x, logit=1), op(x, x, x, logit=1))


def test_unknown_arguments():
    listed = "it has q, k, v, scale, kernel.scale, mask, offset, threads, returns, layout"
    for name, hint in (
        ("sigm", ""),
        ("scal", ". Did you mean scale or kernel.scale?"),
        ("masks", ". Did you mean mask?"),
        ("is_causal", '. In its place: mask=masks.causal(), or masks.causal(align="start") as PyTorch aligns it'),
    ):
        with pytest.raises(TypeError) as e:
            attune.op("softmax")(X, X, X, **{name: 1})
        assert str(e.value) == f"attune: softmax() has no argument {name!r}; {listed}{hint}"


def test_presets_are_attributes():
    assert attune.entmax15 is attune.op("entmax15") and "entmax15" in dir(attune)
    assert not set(attune.presets()) & set(vars(attune))
    with pytest.raises(AttributeError, match="attune has no 'sofmax'; expected one of attune.presets... Did you mean softmax"):
        attune.sofmax
    with pytest.raises(AttributeError, match="__wrapped__"):
        attune.__wrapped__


def test_names_of_exceptions():
    for kind in (attune.Error, attune.CompileError, attune.ExpressionError):
        assert f"{kind.__module__}.{kind.__qualname__}" == f"attune.{kind.__name__}" and getattr(attune, kind.__name__) is kind


def wild(rng):
    """Something that may or may not be an argument."""
    kind = rng.integers(12)
    shape = tuple(int(n) for n in rng.choice([0, 1, 2, 3, 4], rng.integers(0, 6)))
    types = [np.float32, np.float64, np.float16, np.int64, np.int8, bool, complex, object, "U3", ">f8", "M8[s]"]
    if kind < 5:
        x = np.zeros(shape, np.float32 if rng.random() < 0.7 else types[rng.integers(len(types))])
        return np.broadcast_to(x, (*shape[:0], *x.shape)) if rng.random() < 0.2 else x
    if kind == 5:
        return np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (2, 4, 3, 5), (0, 0, 0, 0))
    if kind == 6:
        return np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (2**15, 2**15, 2**15, 2**14), (0, 0, 0, 0))
    if kind == 7:
        return np.zeros((2, 4, 3, 20), np.uint8).view(np.float32)[..., :5] if rng.random() < 0.5 else np.zeros((2, 4, 3, 23), np.uint8)[..., 1:21].view()
    return [None, 0, -1, 1.5, np.nan, np.inf, 2**70, "x", b"x", [], [1, 2], {}, object(), X, lambda: 0, masks.causal()][rng.integers(16)]


def test_wild_calls(rng, many):
    """Random arguments: an exception of the three kinds, or a result."""
    names = ["q", "k", "v", "gate_q", "gate_k", "v0", "bias", "scale", "gamma", "alpha", "logit", "mask", "offset", "threads", "layout", "returns"]
    makers = [
        lambda: masks.padding(wild(rng)),
        lambda: masks.documents(wild(rng), wild(rng)),
        lambda: masks.visible(wild(rng)),
        lambda: masks.block_sparse(wild(rng), wild(rng), wild(rng)),
        lambda: masks.from_cu_seqlens(wild(rng)),
        lambda: masks.window(wild(rng), wild(rng)),
        lambda: masks.prefix(wild(rng)),
    ]
    counts = {"refused": 0, "done": 0}
    for _ in range(2000 if many else 400):
        op = attune.op(["softmax", "principled", "entmax15", "biased", "sink"][rng.integers(5)])
        given = {"q": X, "k": X, "v": X}
        for name in rng.choice(names, rng.integers(1, 4), replace=False):
            given[str(name)] = wild(rng)
        try:
            if rng.random() < 0.3:
                given["mask"] = makers[rng.integers(len(makers))]()
            if rng.random() < 0.3:
                given.pop("returns", None)
                op.vjp(**given, dout=X if rng.random() < 0.5 else wild(rng))
            else:
                op(**given)
            counts["done"] += 1
        except (attune.Error, TypeError, MemoryError) as e:
            assert str(e), given
            counts["refused"] += 1
    assert counts["refused"] > 100


def test_arrays_that_dlpack_does_not_pass_are_refused_for_the_true_reason(monkeypatch):
    class Array:
        dtype = "bfloat16"

        def __dlpack__(self, **more):
            raise BufferError("Unsupported dtype in DLTensor.")

        def __dlpack_device__(self):
            return 1, 0

    q, other = Array(), Array()
    with pytest.raises(attune.Error, match=r"q has the type bfloat16 in an array that NumPy does not read by DLPack; expected numpy.asarray\(x\)"):
        attune.op("softmax")(q, q, q)
    other.dtype = "float32"
    with pytest.raises(attune.Error, match=r"q has an array that DLPack does not pass to the CPU \(Unsupported dtype"):
        attune.op("softmax")(other, other, other)
    jax = types.ModuleType("jax")
    jax.core = types.SimpleNamespace(Tracer=Array)  # of jax.jit and jax.grad
    monkeypatch.setitem(sys.modules, "jax", jax)
    with pytest.raises(attune.Error, match="q has a tracer of JAX, which has no numbers; expected an array"):
        attune.op("softmax")(q, q, q)
